// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/links.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "heed/analysis/gates.h"
#include "heed/analysis/testing.h"
#include "heed/nn/attention_weights.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

// Every layer's weights [H,T,S] and values [H,S,Dv], with key heads repeated, as the events show them.
struct Layer {
  std::string path;
  nn::AttentionRole role;
  int64_t H, T, S, Dv;
  std::vector<double> weights, values, gates;
  Tensor projection;
  double weight(int64_t h, int64_t t, int64_t s) const { return weights[static_cast<size_t>((h * T + t) * S + s)]; }
  const double* value(int64_t h, int64_t s) const { return values.data() + (h * S + s) * Dv; }
};

class Whole final : public nn::ObserverBeside {
 public:
  Whole(Parallel& parallel, Workspace& workspace, nn::Observer* other)
      : ObserverBeside(other), parallel_(parallel), workspace_(workspace) {}
  void attention(const nn::AttentionEvent& e) override {
    const kernels::reference::Inputs& in = e.inputs_f64;
    Layer layer{e.path, e.role, in.q.shape(1), in.q.shape(2), in.k.shape(2), in.v.shape(3), {}, {}, {}, e.projection};
    layer.weights = nn::attention_weights(e, workspace_, parallel_).to_doubles();
    for (int64_t h = 0; h < layer.H; ++h) {
      layer.gates.push_back(in.head_gate ? in.head_gate(h) : 1);
      for (int64_t s = 0; s < layer.S; ++s) {
        for (int64_t i = 0; i < layer.Dv; ++i) {
          layer.values.push_back(in.v(0, h * in.k.shape(1) / layer.H, s, i));
        }
      }
    }
    layers.push_back(layer);
  }
  std::vector<Layer> layers;

 private:
  Parallel& parallel_;
  Workspace& workspace_;
};

// Adds `step` to one weight of one head: its output moves by the value of the key, times the gate.
class Nudge final : public nn::ObserverBeside {
 public:
  Nudge(const Layer& layer, int64_t head, int64_t t, int64_t s, double step, nn::Observer* other)
      : ObserverBeside(other), layer_(layer), head_(head), t_(t), s_(s), step_(step) {}
  Var head_outputs(const Context&, const std::string& path, int64_t, const Var& outputs) override {
    if (path != layer_.path) return outputs;
    const Tensor moved = outputs.value().clone();
    double* numbers = moved.data<double>() + t_ * moved.shape(2) + head_ * layer_.Dv;
    for (int64_t i = 0; i < layer_.Dv; ++i) {
      numbers[i] += step_ * layer_.gates[static_cast<size_t>(head_)] * layer_.value(head_, s_)[i];
    }
    return moved;
  }

 private:
  const Layer& layer_;
  int64_t head_, t_, s_;
  double step_;
};

class LinksTest : public AnalysisTest {
 protected:
  std::vector<Layer> layers_of(const Question& question, nn::Observer* observer = nullptr) {
    Whole whole(parallel_, workspace_, observer);
    question.measure(pass(&whole));
    std::erase_if(whole.layers, [](const Layer& l) { return l.path == "decoder.first"; });  // no token looks there
    return whole.layers;
  }

  using Definition = std::function<double(const Layer&, int64_t head, const std::vector<int64_t>& queries, int64_t s)>;
  void expect(const std::vector<HeadLinks>& came, const std::vector<Layer>& layers, const Queries& queries,
              double tolerance, const Definition& definition) {
    size_t next = 0;
    for (const Layer& layer : layers) {
      const auto& chosen = layer.role == nn::AttentionRole::self ? queries.source : queries.target;
      for (int64_t head = 0; head < layer.H && !chosen.empty(); ++head, ++next) {
        ASSERT_LT(next, came.size());
        EXPECT_EQ(came[next].layer, layer.path);
        EXPECT_EQ(came[next].role, layer.role);
        EXPECT_EQ(came[next].head, head);
        ASSERT_EQ(std::ssize(came[next].links), layer.S);
        for (int64_t s = 0; s < layer.S; ++s) {
          EXPECT_NEAR(came[next].links[static_cast<size_t>(s)], definition(layer, head, chosen, s), tolerance)
              << layer.path << '.' << head << " key " << s;
        }
      }
    }
    EXPECT_EQ(next, came.size());
  }
};

const Queries kTwo{.source = {1, 2}, .target = {2}};

Queries queries_for(const Question& question) {
  Queries queries = kTwo;
  if (question.tokens(nn::TextSide::source) == 0) queries.source.clear();
  if (question.tokens(nn::TextSide::target) == 0) queries.target.clear();
  return queries;
}

TEST_F(LinksTest, WeightsAreTheMeanOfTheQueriesRows) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 1);
    const Question question(*model, pair_for(model->task()));
    const Queries queries = queries_for(question);
    expect(weight_links(pass(), question, queries), layers_of(question), queries, 1e-12,
           [](const Layer& layer, int64_t head, const std::vector<int64_t>& chosen, int64_t s) {
             double sum = 0;
             for (const int64_t t : chosen) sum += layer.weight(head, t, s);
             return sum / static_cast<double>(chosen.size());
           });
  }
}

TEST_F(LinksTest, ValuesAreWeightsTimesTheNormOfWhatGoesOn) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 2);
    const Question question(*model, pair_for(model->task()));
    const Queries queries = queries_for(question);
    std::vector<HeadGate> half;
    for (const Layer& layer : layers_of(question)) half.push_back({layer.path, 0, -0.5});
    Gates gates(half);
    expect(value_links(pass(&gates), question, queries), layers_of(question, &gates), queries, 1e-11,
           [](const Layer& layer, int64_t head, const std::vector<int64_t>& chosen, int64_t s) {
             const double* v = layer.value(head, s);
             const double gate = layer.gates[static_cast<size_t>(head)];
             double squares = 0;
             for (int64_t row = 0; layer.projection && row < layer.projection.shape(0); ++row) {
               const double* w = layer.projection.data<double>() + row * layer.projection.shape(1) + head * layer.Dv;
               squares += std::pow(gate * std::inner_product(v, v + layer.Dv, w, 0.0), 2);
             }
             if (!layer.projection) squares = std::pow(gate, 2) * std::inner_product(v, v + layer.Dv, v, 0.0);
             double sum = 0;
             for (const int64_t t : chosen) sum += layer.weight(head, t, s) * std::sqrt(squares);
             return sum / static_cast<double>(chosen.size());
           });
  }
}

TEST_F(LinksTest, GradientsAreThoseOfDifferencesByTheWeight) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 3);
    const Question question(*model, pair_for(model->task()), {.position = 2});
    const Queries queries = queries_for(question);
    Gates gates({{"encoder.0.self", 0, 0.5}, {"decoder.1.cross", 1, -2}});
    if (family.name == "bahdanau") {
      EXPECT_EQ(error_of([&] { gradient_links(pass(), question, queries); }),
                "links: all contexts are fed to a recurrent cell, expected attention with outputs of its own");
      continue;
    }
    constexpr double kStep = 1e-5;
    const auto definition = [&](const Layer& layer, int64_t head, const std::vector<int64_t>& chosen, int64_t s) {
      double sum = 0;
      for (const int64_t t : chosen) {
        Nudge more(layer, head, t, s, kStep, &gates), less(layer, head, t, s, -kStep, &gates);
        const double change = question.measure(pass(&more)) - question.measure(pass(&less));
        sum += layer.weight(head, t, s) * change / (2 * kStep);
      }
      return sum;
    };
    const auto links = gradient_links(pass(&gates), question, queries);
    double largest = 0;
    for (const HeadLinks& one : links) {
      for (const double link : one.links) largest = std::max(largest, std::abs(link));
    }
    EXPECT_GT(largest, 0);
    expect(links, layers_of(question, &gates), queries, 1e-7 * std::max(1.0, largest), definition);
  }
}

TEST_F(LinksTest, InSinglePrecisionAreTheSame) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto exact = drawn(family.options, 4), single = drawn(family.options, 4, DType::f32);
    const Question a(*exact, pair_for(exact->task())), b(*single, pair_for(exact->task()));
    const Queries queries = queries_for(a);
    for (const auto& method : {weight_links, value_links, gradient_links}) {
      if (method == gradient_links && family.name == "bahdanau") continue;
      const auto x = method(pass(), a, queries), y = method(pass(), b, queries);
      ASSERT_EQ(x.size(), y.size());
      double largest = 1;
      for (const HeadLinks& one : x) {
        for (const double link : one.links) largest = std::max(largest, std::abs(link));
      }
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t s = 0; s < x[i].links.size(); ++s) EXPECT_NEAR(x[i].links[s], y[i].links[s], 1e-4 * largest);
      }
    }
  }
}

TEST_F(LinksTest, SayWhatIsNotThere) {
  const auto model = drawn(transformer(models::TransformerKind::encoder_decoder), 5);
  const Question question(*model, pair_for(model->task()));
  EXPECT_EQ(error_of([&] { weight_links(pass(), question, {.source = {6}}); }),
            "links: a query of the source is 6, expected 0 to 5");
  EXPECT_EQ(error_of([&] { gradient_links(pass(), question, {.target = {-1}}); }),
            "links: a query of the target is -1, expected 0 to 3");
  const auto blind = drawn(recurrent(models::Query::none), 5);
  for (const auto& method : {weight_links, value_links, gradient_links}) {
    EXPECT_EQ(error_of([&] { method(pass(), Question(*blind, pair_for(blind->task())), {.target = {0}}); }),
              "the model has no attention, expected one that has heads");
  }
}

TEST_F(LinksTest, ValuesNeedAProjectionThatWasNotPacked) {
  models::ModelOptions options = transformer(models::TransformerKind::encoder);
  const auto model = models::make_unfilled_model(options, {.gradients = false, .flat = false});
  for (const auto& entry : model->parameters().entries()) entry.value.fill(0.1);
  model->pack(DType::f32, parallel_);
  EXPECT_EQ(
      error_of([&] {
        value_links(pass(), Question(*model, {{3, 4}, {0, 1}}), {.source = {0}});
      }),
      "links: the projection of layer 'encoder.0.self' was packed for inference, expected a model that was opened "
      "without packing");
}

}  // namespace
}  // namespace heed::analysis
