// SPDX-License-Identifier: Apache-2.0
// Do large weights matter? What a word of a translation owes to a word of the source is measured: the source is read
// without that word, and the log-probability of the translated word changes by so much. Attention, and what is made of
// it, predicts how much. How well is a sentence's order of words predicted?
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/links.h"
#include "heed/analysis/rollout.h"
#include "heed/lab/experiments.h"
#include "heed/lab/translator.h"

namespace heed::lab {
namespace {

constexpr const char* kMethods[] = {"weights", "values", "gradients", "rollout", "integrated", "nearest"};
constexpr size_t kCount = std::size(kMethods);

// Over all heads of cross-attention, from the word that is asked for to each of the first `words` of the source.
std::vector<double> sum_of_cross(const std::vector<analysis::HeadLinks>& links, size_t words) {
  std::vector<double> sums(words);
  for (const analysis::HeadLinks& head : links) {
    if (head.role != nn::AttentionRole::cross) continue;
    for (size_t s = 0; s < words; ++s) sums[s] += head.links[s];
  }
  return sums;
}

// What each method gives to each word of the source, in the order of kMethods.
std::vector<std::vector<double>> predicted(const nn::Pass& pass, const analysis::Question& question) {
  const size_t words = question.pair().source.size();  // a token each; the end of the sentence is no word
  const int64_t at = question.target().position.value_or(0);
  const analysis::Queries from{.target = {at}};
  std::vector<double> nearest(words);  // no method: how close a word is to the same place of the source
  const double place = static_cast<double>(at) / static_cast<double>(question.pair().target.size());
  for (size_t s = 0; s < words; ++s) {
    nearest[s] = -std::abs(static_cast<double>(s) / static_cast<double>(words) - place);
  }
  std::vector<std::vector<double>> all{sum_of_cross(analysis::weight_links(pass, question, from), words),
                                       sum_of_cross(analysis::value_links(pass, question, from), words),
                                       sum_of_cross(analysis::gradient_links(pass, question, from), words),
                                       analysis::rollout(pass, question, nn::TextSide::target, at).source,
                                       analysis::integrated_gradients(pass, question, {.steps = 16}).source};
  for (std::vector<double>& one : all) {
    one.resize(words);
    for (double& x : one) x = std::abs(x);
  }
  all.push_back(nearest);
  return all;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double value : values) {  // of equal ones, the mean of their ranks
    const auto below = std::ranges::count_if(values, [&](double x) { return x < value; });
    result.push_back(static_cast<double>(below) + static_cast<double>(std::ranges::count(values, value) - 1) / 2);
  }
  return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b), aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// Of each method: Spearman's rank correlation with the measured effects, in the mean over the sentences, and how often
// its first word is the one that matters most.
struct Agreement {
  std::array<double, kCount> correlations{}, first{};
  double by_chance = 0;  // of `first`
};

Agreement agreement(const Sentences& sentences, const data::TextModel& model, const nn::Pass& pass, Rng& rng) {
  Agreement result;
  const double share = 1 / static_cast<double>(sentences.unseen.size());
  for (const grammar::Sentence& sentence : sentences.unseen) {
    const data::TokenPair pair = sentences.ids(sentence);
    const auto at = static_cast<int64_t>(rng.below(pair.target.size()));
    const analysis::Question question(model.model(), pair, {.position = at});
    std::vector<std::vector<int64_t>> words;
    for (int64_t s = 0; s < std::ssize(pair.source); ++s) words.push_back({s});
    std::vector<double> effects;
    for (const std::optional<double>& change : analysis::leave_out(pass, question, words)) {
      effects.push_back(std::abs(change.value_or(0)));
    }
    const auto strongest = [](const std::vector<double>& of) { return std::ranges::max_element(of) - of.begin(); };
    const auto all = predicted(pass, question);
    for (size_t i = 0; i < kCount; ++i) {
      result.correlations[i] += share * correlation(ranks(all[i]), ranks(effects));
      result.first[i] += strongest(all[i]) == strongest(effects) ? share : 0;
    }
    result.by_chance += share / static_cast<double>(words.size());
  }
  return result;
}

Result run_explanation(Context& context) {
  context.expect(translator_steps(context) * std::ssize(context.seeds()));
  std::array<std::vector<double>, kCount> correlations, first;  // of each seed
  std::vector<double> chance;
  for (const uint64_t seed : context.seeds()) {
    const auto& [sentences, model] = small_translator(context, seed);
    Workspace workspace;
    Rng rng(seed);
    const Agreement one = agreement(sentences, model, {{context.parallel(), workspace}}, rng);
    for (size_t i = 0; i < kCount; ++i) {
      correlations[i].push_back(one.correlations[i]), first[i].push_back(one.first[i]);
    }
    chance.push_back(one.by_chance);
  }

  Table table{"What predicts the measured effect of leaving a word out",
              {"method", "rank correlation", "its first word matters most"}};
  Plot plot{.title = "How well a method orders the words of a sentence by what they matter",
            .y = {.label = "rank correlation", .low = 0},
            .marks = page::Marks::bars,
            .categories = {std::begin(kMethods), std::end(kMethods)},
            .note = "Lowest to highest of the seeds."};
  Series points{"mean of the sentences"};
  for (size_t i = 0; i < kCount; ++i) {
    table.rows.push_back({kMethods[i], shown(spread_of(correlations[i])), percent(spread_of(first[i]))});
    points.points.push_back(point(static_cast<double>(i), spread_of(correlations[i])));
  }
  table.rows.push_back({"drawn", "0", percent(spread_of(chance))});
  plot.series = {points};

  const Spread weights = spread_of(correlations[0]), nearest = spread_of(correlations[5]), top = spread_of(first[0]);
  Finding beaten{true, {}};
  for (const size_t i : {1, 2, 3}) {
    const Spread other = spread_of(correlations[i]);
    beaten.held = beaten.held && other.low > weights.high;
    beaten.measured += std::string(beaten.measured.empty() ? "" : ", ") + kMethods[i] + " " + shown(other);
  }
  beaten.measured += ", weights " + shown(weights);
  return {.findings = {{top.low > 0.5, percent(top) + " of the words"},
                       {weights.low > nearest.high, "weights " + shown(weights) + ", nearest " + shown(nearest)},
                       beaten},
          .tables = {table},
          .plots = {plot}};
}

}  // namespace

Experiment explanation() {
  return {
      .name = "explanation",
      .claim = "What has a large weight matters, and what is made of the weights tells better what matters.",
      .method =
          "For a word of each translation, the words of the source are left out one at a time, and the change of "
          "its log-probability is measured. That is compared with cross-attention's weights, weights times the "
          "length of values, gradients, rollout; with integrated gradients, which are no attention; and with the "
          "word that stands at the same place (nearest), which is no method.",
      .tests = {"for every seed, the source word with the largest weight is the one that matters most for more than "
                "half of the translated words: more often than not",
                "the rank correlation of weights with the measured effects is larger, for the worst seed, than that of "
                "'nearest' for the best one: the weights know more than that translations are in the same order",
                "the rank correlations of values, gradients and rollout are each larger, for the worst seed, than that "
                "of weights for the best one"},
      .run = run_explanation};
}

}  // namespace heed::lab
