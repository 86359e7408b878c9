// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/links.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "heed/analysis/kept_attention.h"
#include "heed/base/error.h"
#include "heed/ops/elementwise.h"

namespace heed::analysis {
namespace {

const std::vector<int64_t>& queries_of(const KeptAttention& layer, const Queries& queries) {
  return layer.query_side() == nn::TextSide::source ? queries.source : queries.target;
}

void check_queries(const Question& question, const Queries& queries) {
  const auto check = [&](const char* name, nn::TextSide side, const std::vector<int64_t>& chosen) {
    for (const int64_t query : chosen) {
      if (query >= 0 && query < question.tokens(side)) continue;
      throw Error(std::string("links: a query of the ") + name + " is " + std::to_string(query) + ", expected 0 to " +
                  std::to_string(question.tokens(side) - 1));
    }
  };
  check("source", nn::TextSide::source, queries.source);
  check("target", nn::TextSide::target, queries.target);
}

// `add(layer, head, query i, its row of weights [S], links)` for all heads and chosen queries of the layers.
using AddRow = std::function<void(const KeptAttention&, int64_t head, size_t query, const double* row,
                                  std::vector<double>& links)>;
std::vector<HeadLinks> gather(const Context& context, const std::vector<KeptAttention>& layers, const Queries& queries,
                              const AddRow& add) {
  std::vector<HeadLinks> all;
  for (const KeptAttention& layer : layers) {
    const std::vector<int64_t>& chosen = queries_of(layer, queries);
    if (chosen.empty()) continue;
    const Tensor rows = layer.weights(context, chosen);
    const auto count = static_cast<int64_t>(chosen.size());
    for (int64_t head = 0; head < layer.heads(); ++head) {
      HeadLinks one{layer.path, layer.role, head, std::vector<double>(static_cast<size_t>(layer.keys()))};
      for (int64_t i = 0; i < count; ++i) {
        const double* row = rows.data<double>() + (head * count + i) * layer.keys();
        add(layer, head, static_cast<size_t>(i), row, one.links);
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

// |W_h v_s| of all keys s: by the square, v^T (W_h^T W_h) v.
std::vector<double> value_norms(const KeptAttention& layer, int64_t head) {
  const int64_t S = layer.keys(), Dv = layer.v.shape(3), width = layer.projected ? layer.projection.shape(0) : 0;
  const Tensor values =
      layer.v.reshaped({layer.v.size() / (S * Dv), S * Dv}).slice(layer.kv_head(head), 1).converted(DType::f64);
  std::vector<double> square(static_cast<size_t>(Dv * Dv));
  for (int64_t i = 0; i < Dv && !layer.projected; ++i) square[static_cast<size_t>(i * Dv + i)] = 1;
  const Tensor weight = layer.projected ? layer.projection.converted(DType::f64) : Tensor();
  for (int64_t row = 0; row < width; ++row) {
    const double* w = weight.data<double>() + row * weight.shape(1) + head * Dv;
    for (int64_t i = 0; i < Dv; ++i) {
      for (int64_t j = 0; j < Dv; ++j) square[static_cast<size_t>(i * Dv + j)] += w[i] * w[j];
    }
  }
  std::vector<double> norms(static_cast<size_t>(S));
  for (int64_t s = 0; s < S; ++s) {
    const double* v = values.data<double>() + s * Dv;
    double sum = 0;
    for (int64_t i = 0; i < Dv; ++i) {
      for (int64_t j = 0; j < Dv; ++j) sum += v[i] * square[static_cast<size_t>(i * Dv + j)] * v[j];
    }
    norms[static_cast<size_t>(s)] = std::abs(layer.gate_of(head)) * std::sqrt(std::max(0.0, sum));
  }
  return norms;
}

// Adds a constant 0 to the outputs of every layer, whose gradient is that of the outputs.
class OutputGradients final : public nn::ObserverBeside {
 public:
  using ObserverBeside::ObserverBeside;

  Var head_outputs(const Context& context, const std::string& path, int64_t heads, const Var& outputs) override {
    const Var given = ObserverBeside::head_outputs(context, path, heads, outputs);
    const Tensor gradient = Tensor::zeros(given.shape(), given.dtype());
    gradients_[path] = gradient;
    return ops::add(context, given, context.tape->leaf(Tensor::zeros(given.shape(), given.dtype()), gradient));
  }
  const std::map<std::string, Tensor>& gradients() const { return gradients_; }  // [B,T,Hq Dv]

 private:
  std::map<std::string, Tensor> gradients_;
};

}  // namespace

std::vector<HeadLinks> weight_links(const nn::Pass& pass, const Question& question, const Queries& queries) {
  check_queries(question, queries);
  const AddRow add = [&](const KeptAttention& layer, int64_t, size_t, const double* row, std::vector<double>& links) {
    const auto count = static_cast<double>(queries_of(layer, queries).size());
    for (size_t s = 0; s < links.size(); ++s) links[s] += row[s] / count;
  };
  return gather(pass, kept_attention(pass, question), queries, add);
}

std::vector<HeadLinks> value_links(const nn::Pass& pass, const Question& question, const Queries& queries) {
  check_queries(question, queries);
  const std::vector<KeptAttention> layers = kept_attention(pass, question);
  for (const KeptAttention& layer : layers) {
    if (!layer.projected || layer.projection) continue;
    throw Error("links: the projection of layer '" + layer.path +
                "' was packed for inference, expected a model that was opened without packing");
  }
  std::vector<double> norms;  // of the head at hand
  const AddRow add = [&](const KeptAttention& layer, int64_t head, size_t query, const double* row,
                         std::vector<double>& links) {
    if (query == 0) norms = value_norms(layer, head);
    const auto count = static_cast<double>(queries_of(layer, queries).size());
    for (size_t s = 0; s < links.size(); ++s) links[s] += row[s] * norms[s] / count;
  };
  return gather(pass, layers, queries, add);
}

std::vector<HeadLinks> gradient_links(const nn::Pass& pass, const Question& question, const Queries& queries) {
  check_queries(question, queries);
  Tape tape;
  AttentionKeeper keeper(pass.observer);
  OutputGradients outputs(&keeper);
  nn::Pass own = pass;
  own.tape = &tape;
  own.frozen = true;
  own.observer = &outputs;
  const Var value = question.value(own);
  std::vector<KeptAttention> layers = of_texts(keeper.layers(), question);
  std::erase_if(layers, [&](const KeptAttention& layer) { return !outputs.gradients().contains(layer.path); });
  if (layers.empty()) {
    throw Error("links: all contexts are fed to a recurrent cell, expected attention with outputs of its own");
  }
  tape.backward(value, own);
  // d target / d a_ts = gate d_out_t . v_s
  std::string at;
  Tensor values, gradients;
  const AddRow add = [&](const KeptAttention& layer, int64_t head, size_t query, const double* row,
                         std::vector<double>& links) {
    if (at != layer.path) {
      values = layer.v.converted(DType::f64), gradients = outputs.gradients().at(layer.path).converted(DType::f64);
      at = layer.path;
    }
    const int64_t S = layer.keys(), Dv = layer.v.shape(3), t = queries_of(layer, queries)[query];
    const double* d_out = gradients.data<double>() + t * gradients.shape(2) + head * Dv;
    for (int64_t s = 0; s < S; ++s) {
      const double* v = values.data<double>() + (layer.kv_head(head) * S + s) * Dv;
      double product = 0;
      for (int64_t i = 0; i < Dv; ++i) product += d_out[i] * v[i];
      links[static_cast<size_t>(s)] += row[s] * layer.gate_of(head) * product;
    }
  };
  return gather(pass, layers, queries, add);
}

}  // namespace heed::analysis
