// SPDX-License-Identifier: Apache-2.0
// Is self-attention a product of matrices, 'the whole sequence at once', where an RNN has to go token by token?
#include <algorithm>
#include <cmath>

#include "heed/base/workspace.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/nn/attention.h"
#include "heed/nn/init.h"
#include "heed/nn/recurrent.h"
#include "heed/ops/softmax.h"

namespace heed::lab {
namespace {

constexpr int64_t kWidth = 256;

// y_i = sum_j softmax_j(q_i . k_j / sqrt(E)) v_j, as it is written: one word after the other, one sum after the other.
void by_vectors(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& y) {
  const int64_t T = q.shape(1), E = q.shape(2);
  std::vector<float> weights(static_cast<size_t>(T));
  for (int64_t i = 0; i < T; ++i) {
    const float* query = q.data<float>() + i * E;
    float most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < T; ++j) {
      float score = 0;
      for (int64_t e = 0; e < E; ++e) score += query[e] * k.data<float>()[j * E + e];
      weights[static_cast<size_t>(j)] = score / std::sqrt(static_cast<float>(E));
      most = std::max(most, weights[static_cast<size_t>(j)]);
    }
    for (float& weight : weights) sum += weight = std::exp(weight - most);
    float* out = y.data<float>() + i * E;
    std::fill_n(out, E, 0.0f);
    for (int64_t j = 0; j < T; ++j) {
      const float weight = weights[static_cast<size_t>(j)] / sum;
      for (int64_t e = 0; e < E; ++e) out[e] += weight * v.data<float>()[j * E + e];
    }
  }
}

// softmax(Q K^T / sqrt(E)) V, by two products. `vt` is V transposed, as a product reads it.
Tensor by_matrices(const heed::Context& pass, const Tensor& q, const Tensor& k, const Tensor& vt) {
  const int64_t T = q.shape(1), E = q.shape(2);
  const Var scores = ops::scale(pass, ops::linear(pass, q, k.reshaped({T, E})), 1 / std::sqrt(static_cast<double>(E)));
  return ops::linear(pass, ops::softmax(pass, scores), vt).value();
}

Tensor transposed(const Tensor& v) {
  const int64_t T = v.shape(1), E = v.shape(2);
  const Tensor vt = Tensor::uninitialised({E, T});
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t e = 0; e < E; ++e) vt.data<float>()[e * T + t] = v.data<float>()[t * E + e];
  }
  return vt;
}

double difference(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a.data<float>()[i]} - b.data<float>()[i]));
    largest = std::max(largest, std::abs(double{a.data<float>()[i]}));
  }
  return most / largest;
}

// Milliseconds of each form, and how far their results are apart.
struct Forms {
  double vectors, matrices, fused, matrices_gain, fused_gain, difference;
};
Forms measure_forms(Context& context, int64_t T, int rounds) {
  Parallel one(1);
  Workspace workspace;
  const heed::Context pass{one, workspace};
  Rng rng(context.seeds().front());
  const Tensor q = nn::normal({1, T, kWidth}, 1, rng), k = nn::normal({1, T, kWidth}, 1, rng),
               v = nn::normal({1, T, kWidth}, 1, rng), vt = transposed(v), y = Tensor::like(v);
  Tensor matrices, fused;
  const auto times = fastest({[&] { by_vectors(q, k, v, y); }, [&] { matrices = by_matrices(pass, q, k, vt); },
                              [&] { fused = ops::attention(pass, {.q = q, .k = k, .v = v}).out.value(); }},
                             rounds);
  return {1e3 * times[0],      1e3 * times[1],      1e3 * times[2],
          times[0] / times[1], times[1] / times[2], std::max(difference(y, matrices), difference(y, fused))};
}

// A layer of self-attention with its projections, and an RNN and an LSTM of the same width, over one row of T tokens:
// milliseconds with one thread, and how many times as fast with all.
struct Layer {
  const char* name;
  double milliseconds = 0, gain = 0;
};
std::vector<Layer> measure_layers(Context& context, int64_t T, int rounds) {
  Rng rng(context.seeds().front());
  const nn::Attention attention({.width = kWidth, .heads = 4}, "attention", rng);
  const nn::Recurrent rnn(kWidth, {.cell = nn::Cell::rnn, .width = kWidth}, "rnn", rng),
      lstm(kWidth, {.cell = nn::Cell::lstm, .width = kWidth}, "lstm", rng);
  const Tensor x = nn::normal({1, T, kWidth}, 1, rng);
  Parallel one(1);
  Workspace workspace;
  nn::Pass alone{{one, workspace}}, together{{context.parallel(), workspace}};
  const auto times =
      fastest({[&] { attention(alone, x, x, {}); }, [&] { attention(together, x, x, {}); }, [&] { rnn(alone, x); },
               [&] { rnn(together, x); }, [&] { lstm(alone, x); }, [&] { lstm(together, x); }},
              rounds);
  std::vector<Layer> layers{{"self-attention"}, {"RNN"}, {"LSTM"}};
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].milliseconds = 1e3 * times[2 * i];
    layers[i].gain = times[2 * i] / times[2 * i + 1];
  }
  return layers;
}

Result run_matrix(Context& context) {
  const std::vector<int64_t> lengths = context.size<std::vector<int64_t>>({16, 64, 256, 1024, 2048}, {16, 64, 256});
  const int rounds = context.size(15, 5);
  context.expect(2 * std::ssize(lengths));
  Table forms{.title = "One head of width 256, one thread: milliseconds",
              .columns = {"T", "word by word", "matrices", "fused", "matrices gain", "fused gains", "difference"}};
  Table layers{.title = "A layer of width 256 over one row: milliseconds with one thread, and how much faster with all",
               .columns = {"T", "self-attention", "all", "RNN", "all", "LSTM", "all"}};
  Plot plot{.title = "A layer over one row, with all threads",
            .x = {"tokens", page::Scale::log},
            .y = {"milliseconds", page::Scale::log},
            .series = {{"self-attention"}, {"RNN"}, {"LSTM"}},
            .note = "The fastest call of all rounds."};
  Forms form{};
  std::vector<Layer> layer;
  double apart = 0;
  for (const int64_t T : lengths) {
    form = measure_forms(context, T, rounds);
    context.step();
    layer = measure_layers(context, T, rounds);
    context.step();
    apart = std::max(apart, form.difference);
    forms.rows.push_back({std::to_string(T), shown(form.vectors), shown(form.matrices), shown(form.fused),
                          shown(form.matrices_gain), shown(form.fused_gain), shown(form.difference)});
    layers.rows.push_back({std::to_string(T)});
    for (size_t i = 0; i < layer.size(); ++i) {
      layers.rows.back().insert(layers.rows.back().end(), {shown(layer[i].milliseconds), shown(layer[i].gain)});
      plot.series[i].points.push_back(point(static_cast<double>(T), layer[i].milliseconds / layer[i].gain));
    }
  }
  const double threads = context.parallel().threads();
  return {.findings = {{apart < 1e-5, "at most " + shown(apart)},
                       {form.matrices_gain > 4, shown(form.matrices_gain) + " times as fast"},
                       {form.fused_gain > 1, shown(form.fused_gain) + " times as fast"},
                       {layer[0].gain > 0.75 * threads && layer[1].gain < layer[0].gain,
                        "with " + shown(threads) + " threads self-attention is " + shown(layer[0].gain) +
                            " times as fast, the RNN " + shown(layer[1].gain)},
                       {layer[0].milliseconds / layer[0].gain < layer[1].milliseconds / layer[1].gain,
                        shown(layer[0].milliseconds / layer[0].gain) + " ms, the RNN " +
                            shown(layer[1].milliseconds / layer[1].gain) + " ms"}},
          .tables = {forms, layers},
          .plots = {plot}};
}

}  // namespace

Experiment matrix() {
  return {.name = "matrix",
          .claim =
              "Self-attention is products of matrices: the whole sequence at once, and so faster than word by word, "
              "on more threads faster still, and faster than an RNN.",
          .method =
              "The same attention word by word in plain loops, as products of matrices with a softmax between, "
              "and as one fused kernel. Then a layer of self-attention beside recurrent ones of the same width, "
              "over one row. Times are the fastest of interleaved rounds; the tests look at the longest rows.",
          .tests = {"all forms give the same, to 1e-5: some hundred roundings of f32",
                    "matrices are more than 4 times as fast as word by word: more than noise or one compiler's flags",
                    "the fused kernel is faster than matrices, as it never stores T x T",
                    "with all threads, self-attention reaches 75 % of the ideal gain, and the RNN, whose steps wait "
                    "for each other, gains less",
                    "with all threads, self-attention takes less time than the RNN"},
          .run = run_matrix};
}

}  // namespace heed::lab
