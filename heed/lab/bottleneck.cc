// SPDX-License-Identifier: Apache-2.0
// Is one fixed vector between encoder and decoder a bottleneck, and does attention remove it?
#include <algorithm>
#include <numeric>

#include "heed/decode/translate.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/models/rnn_seq2seq.h"
#include "heed/text/bleu.h"
#include "heed/text/metrics.h"

namespace heed::lab {
namespace {

using models::FirstState, models::Query;

constexpr int32_t kWords = 16;
constexpr size_t kShortest = 2, kLongest = 16;
constexpr size_t kBuckets[] = {4, 8, 12, 16};  // up to so many words

// A language of as many words, in which neighbours have changed places: a b c d e -> B A D C E.
data::TokenPair sentence(Rng& rng) {
  data::TokenPair pair;
  const size_t length = kShortest + rng.below(kLongest - kShortest + 1);
  for (size_t i = 0; i < length; ++i) pair.source.push_back(kFirstId + static_cast<int32_t>(rng.below(kWords)));
  for (size_t i = 0; i < length; ++i) {
    const size_t neighbour = i ^ 1U;
    pair.target.push_back(pair.source[neighbour < length ? neighbour : i] + kWords);
  }
  return pair;
}

struct Kind {
  const char* name;
  Query query;
  nn::Score score;
  FirstState first;
};
constexpr Kind kKinds[] = {
    {"fixed, last state", Query::none, nn::Score::dot, FirstState::last},
    {"fixed, mean of states", Query::none, nn::Score::dot, FirstState::mean},
    {"fixed, learned query", Query::none, nn::Score::dot, FirstState::learned},
    {"dot", Query::current, nn::Score::dot, FirstState::last},
    {"additive, last state", Query::previous, nn::Score::additive, FirstState::last},
    {"additive, mean of states", Query::previous, nn::Score::additive, FirstState::mean},
    {"additive, learned query", Query::previous, nn::Score::additive, FirstState::learned},
};

std::string words(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "w" : " w") + std::to_string(id);
  return text;
}

// By bucket: the share of sentences that are right altogether, and BLEU.
struct Quality {
  std::vector<double> exact, bleu;
};
Quality quality(Context& context, std::shared_ptr<const models::Model> model, uint64_t seed) {
  const decode::Translator translator(decode::Engine(data::TextModel(std::move(model)), context.parallel()));
  const auto test = held_out(sentence, context.size(600, 150), seed);
  std::vector<std::vector<int32_t>> sources;
  for (const data::TokenPair& pair : test) sources.push_back(pair.source);
  const auto found = translator.translate_ids(sources, {.search = {.beam = 1}, .call = {.cancel = context.cancel()}});
  Quality result;
  for (size_t from = 0; const size_t to : kBuckets) {
    std::vector<std::string> hypotheses, references;
    for (size_t i = 0; i < test.size(); ++i) {
      if (test[i].source.size() <= from || test[i].source.size() > to) continue;
      hypotheses.push_back(words(found[i].front().tokens)), references.push_back(words(test[i].target));
    }
    result.exact.push_back(text::exact_match(hypotheses, references));
    result.bleu.push_back(text::bleu(hypotheses, references).score);
    from = to;
  }
  return result;
}

Result run_bottleneck(Context& context) {
  const int64_t steps = context.size(800, 250);
  context.expect(std::ssize(context.seeds()) * std::ssize(kKinds) * steps);
  Table exact{.title = "Sentences that are right altogether, by length", .columns = {"decoder knows the source by"}};
  Table bleu{.title = "BLEU, by length", .columns = exact.columns};
  Plot plot{.title = "Sentences that are right altogether",
            .x = {"words, at most"},
            .y = {"share", page::Scale::linear, 0, 1}};
  for (const size_t to : kBuckets) {
    exact.columns.push_back("to " + std::to_string(to)), bleu.columns.push_back("to " + std::to_string(to));
  }
  std::vector<std::vector<Spread>> all;  // by kind and bucket
  for (const Kind& kind : kKinds) {
    const models::RnnSeq2SeqOptions options{
        .vocabulary = kFirstId + 2 * kWords,
        .width = 64,
        .first_state = kind.first,
        .query = kind.query,
        .score = kind.score,
        .readout = kind.query == Query::none ? models::Readout::state : models::Readout::both,
        .dropout = 0};
    std::vector<Series> by_exact, by_bleu;
    for (const uint64_t seed : context.seeds()) {
      const auto model =
          trained(context, options, DrawnBatches(sentence, 64, seed), {.steps = steps, .rate = 5e-3, .seed = seed});
      const Quality found = quality(context, model, seed);
      by_exact.emplace_back(), by_bleu.emplace_back();
      for (size_t i = 0; i < std::size(kBuckets); ++i) {
        by_exact.back().points.push_back(point(static_cast<double>(kBuckets[i]), found.exact[i]));
        by_bleu.back().points.push_back(point(static_cast<double>(kBuckets[i]), found.bleu[i]));
      }
    }
    plot.series.push_back(mean_of(kind.name, by_exact));
    exact.rows.push_back({kind.name}), bleu.rows.push_back({kind.name}), all.emplace_back();
    for (const Point& p : plot.series.back().points) {
      all.back().push_back(spread_at(p)), exact.rows.back().push_back(percent(all.back().back()));
    }
    for (const Point& p : mean_of("", by_bleu).points) bleu.rows.back().push_back(shown(spread_at(p)));
  }
  // The best of a group's runs for the longest sentences, and the worst; and the least that one loses by length.
  const auto best = [&](size_t from, size_t to) {
    double value = 0;
    for (size_t kind = from; kind < to; ++kind) value = std::max(value, all[kind].back().high);
    return value;
  };
  const auto worst = [&](size_t from, size_t to) {
    double value = 1;
    for (size_t kind = from; kind < to; ++kind) value = std::min(value, all[kind].back().low);
    return value;
  };
  const Spread fixed_short = all[0].front(), fixed_long = all[0].back();
  double apart = 0;
  for (size_t kind : {5U, 6U}) apart = std::max(apart, std::abs(all[kind].back().mean - all[4].back().mean));
  return {.findings = {{fixed_long.high < fixed_short.low / 2,
                        percent(fixed_short) + " of the shortest, " + percent(fixed_long) + " of the longest"},
                       {worst(3, 7) > best(0, 3), percent(worst(3, 7)) + " in the worst run with attention, " +
                                                      percent(best(0, 3)) + " in the best without"},
                       {worst(3, 7) > 0.9, percent(worst(3, 7)) + " in the worst run"},
                       {apart < 0.1 && all[4].back().mean > 0.5,
                        "means differ by " + percent(apart) + ", and the first is " + percent(all[4].back().mean)}},
          .tables = {exact, bleu},
          .plots = {plot}};
}

}  // namespace

Experiment bottleneck() {
  return {
      .name = "bottleneck",
      .claim =
          "One fixed vector between encoder and decoder is a bottleneck for long sentences; attention removes "
          "it.",
      .method =
          "Recurrent encoder-decoders (GRU, width 64) learn to translate into a language with other words, in "
          "which neighbours change places; sentences have 2 to 16 words. Without attention, with dot "
          "products, and with additive scores; where the decoder begins from the encoder's last state, the "
          "mean of all, or a learned query to them.",
      .tests = {"with a fixed vector, every run gets less than half as many of the longest sentences (13 to 16 words) "
                "as of the shortest (to 4)",
                "of the longest sentences, the worst run with attention gets more than the best run without",
                "with attention, over 90 % of the longest sentences are right in each run",
                "with attention, it does not matter what the decoder begins from: means for the longest sentences "
                "are less than 10 points apart, and over half of them are right"},
      .run = run_bottleneck};
}

}  // namespace heed::lab
