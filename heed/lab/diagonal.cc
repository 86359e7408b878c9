// SPDX-License-Identifier: Apache-2.0
// Does a word attend most to itself? x . x is the largest dot product among vectors of one length, but W_Q and W_K are
// learned, and need not keep that.
//
// Looked into is a translator over sentences that it never saw: of each head of its encoder and of its decoder's masked
// attention, how often the largest weight of a word is its own, before training and after.
#include <algorithm>
#include <numeric>

#include "heed/analysis/kept_attention.h"
#include "heed/lab/experiments.h"
#include "heed/lab/translator.h"

namespace heed::lab {
namespace {

struct Head {
  std::string name{};  // "encoder.1.self.2"
  bool encoder = true;
  double own = 0, chance = 0;  // words whose largest weight is their own; as many would be if keys were drawn
  double words = 0;
};

std::vector<Head> count(const Sentences& sentences, const data::TextModel& model, const nn::Pass& pass) {
  std::vector<Head> heads;
  for (const grammar::Sentence& sentence : sentences.unseen) {
    const analysis::Question question(model.model(), sentences.ids(sentence));
    size_t place = 0;
    for (const analysis::KeptAttention& layer : analysis::kept_attention(pass, question)) {
      if (layer.role == nn::AttentionRole::cross) continue;
      const int64_t T = layer.queries();
      std::vector<int64_t> queries(static_cast<size_t>(T));
      std::iota(queries.begin(), queries.end(), 0);
      const Tensor weights = layer.weights(pass, queries);  // [H,T,T]
      const bool encoder = layer.role == nn::AttentionRole::self;
      for (int64_t h = 0; h < layer.heads(); ++h, ++place) {
        if (place == heads.size()) heads.push_back({layer.path + "." + std::to_string(h), encoder});
        for (const int64_t t : queries) {
          if (!encoder && t == 0) continue;  // <s> sees nothing else
          const double* row = weights.data<double>() + (h * T + t) * T;
          heads[place].own += std::max_element(row, row + T) - row == t;
          heads[place].chance += 1 / static_cast<double>(encoder ? T : t + 1);
          ++heads[place].words;
        }
      }
    }
  }
  return heads;
}

double share(const std::vector<Head>& heads, bool encoder, double Head::*what) {
  double sum = 0, words = 0;
  for (const Head& head : heads) {
    if (head.encoder == encoder) sum += head.*what, words += head.words;
  }
  return sum / words;
}

Result run_diagonal(Context& context) {
  context.expect(translator_steps(context) * std::ssize(context.seeds()));
  std::vector<std::vector<Head>> before, after;  // of each seed
  for (const uint64_t seed : context.seeds()) {
    const auto& [sentences, model] = small_translator(context, seed);
    Workspace workspace;
    const nn::Pass pass{{context.parallel(), workspace}};
    before.push_back(count(sentences, untrained_translator(sentences, small_transformer(), seed), pass));
    after.push_back(count(sentences, model, pass));
  }

  const auto spread = [&](const std::vector<std::vector<Head>>& all, bool encoder, double Head::*what) {
    std::vector<double> shares;
    for (const auto& heads : all) shares.push_back(share(heads, encoder, what));
    return spread_of(shares);
  };
  Table table{"Words whose largest weight is their own", {"attention", "by chance", "before training", "after"}};
  for (const bool encoder : {true, false}) {
    table.rows.push_back({encoder ? "encoder, self" : "decoder, masked", percent(spread(after, encoder, &Head::chance)),
                          percent(spread(before, encoder, &Head::own)), percent(spread(after, encoder, &Head::own))});
  }
  Plot plot{.title = "Words whose largest weight is their own",
            .y = {.label = "share of words", .low = 0, .high = 1},
            .marks = page::Marks::dots,
            .note = "Lowest to highest of the seeds."};
  Series trained{"after training"}, untrained{"before"}, chance{"by chance"};
  for (size_t i = 0; i < after[0].size(); ++i) {
    plot.categories.push_back(after[0][i].name);
    const auto at = [&](const std::vector<std::vector<Head>>& all, double Head::*what) {
      std::vector<double> shares;
      for (const auto& heads : all) shares.push_back(heads[i].*what / heads[i].words);
      return point(static_cast<double>(i), spread_of(shares));
    };
    trained.points.push_back(at(after, &Head::own)), untrained.points.push_back(at(before, &Head::own));
    chance.points.push_back(at(after, &Head::chance));
  }
  plot.series = {trained, untrained, chance};

  const Spread encoder = spread(after, true, &Head::own), decoder = spread(after, false, &Head::own);
  return {.findings = {{encoder.low > 0.5, percent(encoder) + " of the words of the encoder"},
                       {decoder.low > 0.5, percent(decoder) + " of the words of the decoder"}},
          .tables = {table},
          .plots = {plot}};
}

}  // namespace

Experiment diagonal() {
  return {.name = "diagonal",
          .claim = "A word attends most to itself.",
          .method =
              "A Transformer is trained to translate sentences of the built-in grammar. Over sentences that it "
              "never saw, the words are counted whose largest weight is their own, for each head.",
          .tests = {"encoder: in the mean of all heads, for every seed, more than half of the words have their largest "
                    "weight at themselves: 'most' of them, taken literally",
                    "decoder, masked: the same, <s> left out, which sees nothing else"},
          .run = run_diagonal};
}

}  // namespace heed::lab
