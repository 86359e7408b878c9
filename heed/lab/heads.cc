// SPDX-License-Identifier: Apache-2.0
// Several heads at the cost of one: a width of 64 is cut into 1 to 16 heads. Do they see different things, and what
// remains when the best of them is switched off?
//
// Translators of 1 + 1 layers, on the built-in grammar. For each number of heads: the loss on unseen sentences; how
// different two heads of a layer are (the Jensen-Shannon divergence of their weights from the same word, in bits: 0 is
// the same, 1 is nothing in common), before training and after; and the loss without the head that is missed most.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "heed/analysis/gates.h"
#include "heed/analysis/kept_attention.h"
#include "heed/decode/score.h"
#include "heed/lab/experiments.h"
#include "heed/lab/translator.h"

namespace heed::lab {
namespace {

constexpr int64_t kHeads[] = {1, 2, 4, 8, 16};

// Of two rows of weights, in bits.
double divergence(const double* a, const double* b, int64_t keys) {
  double bits = 0;
  for (int64_t s = 0; s < keys; ++s) {
    const double mean = (a[s] + b[s]) / 2;
    if (a[s] > 0) bits += a[s] * std::log2(a[s] / mean) / 2;
    if (b[s] > 0) bits += b[s] * std::log2(b[s] / mean) / 2;
  }
  return bits;
}

// Of each two heads of a layer, in the mean over words, layers and pairs of heads; 0 for one head.
double difference(const Sentences& sentences, const data::TextModel& model, const nn::Pass& pass) {
  double sum = 0, count = 0;
  for (const grammar::Sentence& sentence : sentences.unseen) {
    const analysis::Question question(model.model(), sentences.ids(sentence));
    for (const analysis::KeptAttention& layer : analysis::kept_attention(pass, question)) {
      const int64_t T = layer.queries(), S = layer.keys();
      std::vector<int64_t> queries(static_cast<size_t>(T));
      std::iota(queries.begin(), queries.end(), 0);
      const Tensor weights = layer.weights(pass, queries);
      for (int64_t h = 0; h < layer.heads(); ++h) {
        for (int64_t other = 0; other < h; ++other) {
          for (int64_t t = 0; t < T; ++t, ++count) {
            const auto row = [&](int64_t of) { return weights.data<double>() + (of * T + t) * S; };
            sum += divergence(row(h), row(other), S);
          }
        }
      }
    }
  }
  return count == 0 ? 0 : sum / count;
}

// Of a token of the unseen translations, in nats; without a head where one is named.
double loss(Context& context, const Sentences& sentences, const data::TextModel& model,
            const std::vector<analysis::HeadGate>& off = {}) {
  std::vector<data::TokenPair> pairs;
  for (const grammar::Sentence& sentence : sentences.unseen) pairs.push_back(sentences.ids(sentence));
  analysis::Gates gates(off);
  double sum = 0, tokens = 0;
  decode::ScoreOptions options;
  options.call.observer = &gates;
  for (const decode::Score& score :
       decode::Scorer(decode::Engine(model, context.parallel())).score_ids(pairs, options)) {
    sum -= score.log_probability(), tokens += static_cast<double>(score.tokens());
  }
  return sum / tokens;
}

// The highest loss without one head.
double loss_without_best(Context& context, const Sentences& sentences, const data::TextModel& model) {
  Workspace workspace;
  double worst = 0;
  for (const auto& [path, heads] : analysis::attention_layers({{context.parallel(), workspace}}, model.model())) {
    for (int64_t h = 0; h < heads; ++h) worst = std::max(worst, loss(context, sentences, model, {{path, h, 0}}));
  }
  return worst;
}

// Each a number for every seed, by how many heads there are.
struct Found {
  std::array<std::vector<double>, std::size(kHeads)> loss{}, rise{}, before{}, after{};
};

Result report(const Found& found) {
  Table table{.title = "Translators of width 64 whose attention has 1 to 16 heads",
              .columns = {"heads", "loss a token", "without the best head", "difference before training", "after"}};
  Plot plot{.title = "How different two heads of a layer are",
            .x = {.label = "heads", .scale = page::Scale::log},
            .y = {.label = "divergence, bits", .low = 0},
            .series = {{"before training"}, {"after"}}};
  Finding different{.held = true, .measured = {}}, spared{.held = true, .measured = {}};
  for (size_t i = 0; i < std::size(kHeads); ++i) {
    const Spread rise = spread_of(found.rise[i]), before = spread_of(found.before[i]),
                 after = spread_of(found.after[i]);
    table.rows.push_back({std::to_string(kHeads[i]), shown(spread_of(found.loss[i])), "+" + shown(rise),
                          i ? shown(before) : "", i ? shown(after) : ""});
    spared.measured += (i ? ", " : "") + std::to_string(kHeads[i]) + " heads +" + shown(rise.mean);
    for (size_t seed = 0; i > 0 && seed < found.rise[i].size(); ++seed) {
      spared.held = spared.held && found.rise[i][seed] < found.rise[i - 1][seed];
    }
    if (i == 0) continue;
    plot.series[0].points.push_back(point(static_cast<double>(kHeads[i]), before));
    plot.series[1].points.push_back(point(static_cast<double>(kHeads[i]), after));
    different.held = different.held && after.low > before.high;
    different.measured += (i > 1 ? ", " : "") + std::to_string(kHeads[i]) + " heads " + shown(before.mean) + " and " +
                          shown(after.mean) + " after";
  }
  const Spread one = spread_of(found.loss[0]), four = spread_of(found.loss[2]);
  return {
      .findings = {different, {four.high < one.low, "one head " + shown(one) + ", four heads " + shown(four)}, spared},
      .tables = {table},
      .plots = {plot}};
}

Result run_heads(Context& context) {
  const int64_t steps = context.size(150, 30);
  context.expect(std::ssize(context.seeds()) * std::ssize(kHeads) * steps);
  Found found;
  for (const uint64_t seed : context.seeds()) {
    const Sentences sentences = draw_sentences(
        {.train = context.size<int64_t>(20000, 3000), .unseen = context.size<int64_t>(60, 20), .seed = seed});
    for (size_t i = 0; i < std::size(kHeads); ++i) {
      const models::TransformerOptions options{
          .width = 64, .heads = kHeads[i], .inner = 128, .encoder_layers = 1, .decoder_layers = 1, .dropout = 0};
      const data::TextModel model =
          train_translator(context, sentences, options, {.steps = steps, .rate = 5e-3, .seed = seed});
      Workspace workspace;
      const nn::Pass pass{{context.parallel(), workspace}};
      found.before[i].push_back(difference(sentences, untrained_translator(sentences, options, seed), pass));
      found.after[i].push_back(difference(sentences, model, pass));
      found.loss[i].push_back(loss(context, sentences, model));
      found.rise[i].push_back(loss_without_best(context, sentences, model) - found.loss[i].back());
    }
  }
  return report(found);
}

}  // namespace

Experiment heads() {
  return {
      .name = "heads",
      .claim = "Several heads see different things, learn more at the same cost, and can be spared one by one.",
      .method =
          "Translators of one layer on each side learn the built-in grammar for as long, with 1, 2, 4, 8 and 16 "
          "heads that share a width of 64: as many parameters, as many products. Then the heads of a layer are "
          "compared by their weights, and each head is switched off in turn.",
      .tests = {"with 2, 4, 8 and 16 heads, two heads of a layer differ more after training, for the worst seed, than "
                "before it, for the best: training parts them, rather than chance",
                "four heads have a lower loss, for the worst seed, than one for the best",
                "for every seed, each time that heads are doubled, the loss rises less without the one that is missed "
                "most"},
      .run = run_heads};
}

}  // namespace heed::lab
