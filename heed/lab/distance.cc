// SPDX-License-Identifier: Apache-2.0
// Over which distance do recurrent layers remember, and what does attention change?
#include <algorithm>
#include <cmath>

#include "heed/base/workspace.h"
#include "heed/data/batch.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/nn/init.h"

namespace heed::lab {
namespace {

using models::BaseLayer;

constexpr int32_t kLetters = 8;
constexpr int64_t kWidth = 32;

// A marked letter and n others; at the last, the marked one is asked for. Chance is 1 in 8.
Draw recall(int64_t n) {
  return [n](Rng& rng) {
    data::TokenPair row;
    for (int64_t i = 0; i <= n; ++i) {
      row.source.push_back(kFirstId + static_cast<int32_t>(rng.below(kLetters)) + (i == 0 ? kLetters : 0));
    }
    row.target.assign(row.source.size(), text::kPad);
    row.target.back() = row.source.front() - kLetters;
    return row;
  };
}

struct Kind {
  const char* name;
  BaseLayer base;  // none: a Transformer's encoder
  bool attention;
};
constexpr Kind kKinds[] = {{"RNN", BaseLayer::rnn, false},           {"GRU", BaseLayer::gru, false},
                           {"LSTM", BaseLayer::lstm, false},         {"RNN, attention", BaseLayer::rnn, true},
                           {"GRU, attention", BaseLayer::gru, true}, {"LSTM, attention", BaseLayer::lstm, true},
                           {"self-attention", BaseLayer::none, true}};

models::ModelOptions options_of(const Kind& kind) {
  if (kind.base == BaseLayer::none) {
    return models::TransformerOptions{.kind = models::TransformerKind::encoder,
                                      .vocabulary = kFirstId + 2 * kLetters,
                                      .width = kWidth,
                                      .heads = 1,
                                      .inner = 2 * kWidth,
                                      .encoder_layers = 1,
                                      .dropout = 0,
                                      .outputs = kFirstId + kLetters};
  }
  return models::SelfAttentiveOptions{.vocabulary = kFirstId + 2 * kLetters,
                                      .outputs = kFirstId + kLetters,
                                      .layers = {.base = kind.base, .attention = kind.attention},
                                      .width = kWidth,
                                      .bidirectional = false,
                                      .dropout = 0};
}

// By distance, in tokens: the norm of the gradient of the last letter's output by another token's embedding, over that
// by its own neighbour. Before training.
Series gradients(Context& context, const Kind& kind, int64_t n, uint64_t seed) {
  struct Embeddings final : nn::Observer {
    Var leaf;
    Var embeddings(const heed::Context& pass, nn::TextSide, const Var& embedded) override {
      return leaf = pass.tape->leaf(embedded.value());
    }
  } embeddings;
  const auto model = models::make_model(options_of(kind), seed);
  const data::Batch batch = DrawnBatches(recall(n), 16, seed).at(0, 0);
  Workspace workspace;
  Tape tape;
  nn::Pass pass{{context.parallel(), workspace, &tape}};
  pass.observer = &embeddings;
  const Var logits = model->logits(pass, data::source_tokens(batch), {});
  const int64_t T = logits.shape(1), V = logits.shape(2);
  Rng rng(seed, 7);
  const Tensor from_above = Tensor::zeros(logits.shape());
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int64_t v = 0; v < V; ++v) from_above.data<float>()[(row * T + n) * V + v] = rng.normal();
  }
  tape.backward(logits, pass, from_above);
  const Tensor gradient = tape.gradient(embeddings.leaf);
  std::vector<double> norms(static_cast<size_t>(n) + 1, 0);
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int64_t t = 0; t <= n; ++t) {
      for (int64_t e = 0; e < kWidth; ++e) {
        const double g = gradient.data<float>()[(row * T + t) * kWidth + e];
        norms[static_cast<size_t>(n - t)] += g * g;
      }
    }
  }
  Series series{kind.name};
  for (int64_t d = 1; d <= n; d *= 2) {
    series.points.push_back(point(static_cast<double>(d), std::sqrt(norms[static_cast<size_t>(d)] / norms[1])));
  }
  return series;
}

Result run_distance(Context& context) {
  const std::vector<int64_t> distances = context.size<std::vector<int64_t>>({4, 16, 64, 128}, {4, 32});
  const int64_t steps = context.size(300, 100);
  context.expect(std::ssize(context.seeds()) * std::ssize(kKinds) * std::ssize(distances) * steps);
  Table right{.title = "Letters that are recalled n tokens later; chance is 12.5 %", .columns = {"layer"}};
  for (const int64_t n : distances) right.columns.push_back("n = " + std::to_string(n));
  Plot recalled{.title = "Letters that are recalled",
                .x = {"tokens later", page::Scale::log},
                .y = {"share", page::Scale::linear, 0, 1}};
  Plot norms{.title = "Gradient by the embedding of a token, before training, over that by the neighbour",
             .x = {"tokens before", page::Scale::log},
             .y = {"norm", page::Scale::log}};
  std::vector<std::vector<Spread>> all;  // by kind and distance
  for (const Kind& kind : kKinds) {
    std::vector<Series> gradient;
    for (const uint64_t seed : context.seeds()) gradient.push_back(gradients(context, kind, distances.back(), seed));
    norms.series.push_back(mean_of(kind.name, gradient));
    right.rows.push_back({kind.name}), recalled.series.push_back({kind.name}), all.emplace_back();
    for (const int64_t n : distances) {
      std::vector<double> shares;
      for (const uint64_t seed : context.seeds()) {
        const auto model = trained(context, options_of(kind), DrawnBatches(recall(n), 32, seed),
                                   {.steps = steps, .rate = 5e-3, .seed = seed});
        shares.push_back(accuracy(context, *model, held_out(recall(n), 256, seed)).share());
      }
      all.back().push_back(spread_of(shares));
      right.rows.back().push_back(percent(all.back().back()));
      recalled.series.back().points.push_back(point(static_cast<double>(n), all.back().back()));
    }
  }
  double worst_with = 1;
  for (size_t kind = 3; kind < std::size(kKinds); ++kind) {
    for (const Spread& one : all[kind]) worst_with = std::min(worst_with, one.low);
  }
  const Spread rnn = all[0].back(), gru = all[1].back(), lstm = all[2].back();
  const double without = norms.series[0].points.back().y, with = norms.series[3].points.back().y;
  return {.findings = {{all[0].front().low > 0.95 && rnn.high < 0.5,
                        percent(all[0].front()) + " at the shortest distance, " + percent(rnn) + " at the longest"},
                       {rnn.high < gru.low && rnn.high < lstm.low,
                        "RNN " + percent(rnn) + ", GRU " + percent(gru) + ", LSTM " + percent(lstm)},
                       {worst_with > 0.95, percent(worst_with) + " in the worst run"},
                       {with > 100 * without, shown(with) + " with, " + shown(without) + " without"}},
          .tables = {right},
          .plots = {recalled, norms}};
}

}  // namespace

Experiment distance() {
  return {
      .name = "distance",
      .claim = "An RNN forgets over long distances, GRU and LSTM less; attention reaches any token at once.",
      .method =
          "A marked letter is to be recalled after n tokens, by an RNN, a GRU and an LSTM of width 32, with and "
          "without attention among their states, and by one layer of self-attention with sinusoids. And for "
          "untrained layers, the norm of the gradient by a token's embedding over the distance from it.",
      .tests = {"the RNN recalls over 95 % at the shortest distance in each run, and under half at the longest",
                "at the longest distance, the best run of the RNN is worse than the worst of the GRU and of the LSTM",
                "with attention, over 95 % are recalled at each distance, in each run of each layer",
                "at the longest distance measured, attention makes the RNN's gradient more than 100 times as large"},
      .run = run_distance};
}

}  // namespace heed::lab
