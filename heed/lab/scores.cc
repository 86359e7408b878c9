// SPDX-License-Identifier: Apache-2.0
// Scores of attention, among the words' own vectors x: dot and scaled have no parameter, bilinear is what queries and
// keys of one head come to (x W_Q^T W_K x), additive has a small network. What is learned with each, how fast, and
// what does a score cost?
//
// Task: a word is tagged by whether its partner is anywhere in the row (partners.h), from [x ; c].
#include <algorithm>
#include <array>

#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/lab/partners.h"
#include "heed/nn/single_head_attention.h"

namespace heed::lab {
namespace {

constexpr nn::Score kScores[] = {nn::Score::dot, nn::Score::scaled, nn::Score::bilinear, nn::Score::additive};
constexpr size_t kCount = std::size(kScores);

std::string name_of(nn::Score score) { return std::string(enum_names(score)[static_cast<size_t>(score)].name); }

Series learning(Context& context, nn::Score score, int64_t steps, uint64_t seed) {
  const models::SelfAttentiveOptions options{.vocabulary = kFirstId + kPartners,
                                             .outputs = kFirstId + 2,
                                             .layers = {.base = models::BaseLayer::none, .score = score},
                                             .width = 32,
                                             .dropout = 0};
  const auto test = held_out(partners(Where::anywhere), 300, seed);
  const DrawnBatches batches(partners(Where::anywhere), 32, seed);
  Series curve;
  trained(context, options, batches,
          {.steps = steps,
           .rate = 1e-2,
           .seed = seed,
           .every = steps / 12,
           .look = [&](int64_t step, const models::Model& now) {
             curve.points.push_back(point(static_cast<double>(step), accuracy(context, now, test).share()));
           }});
  return curve;
}

// Times of a forward and a backward pass over 4 rows of 256 words of width 64, relative to dot's.
std::array<double, kCount> times_of_scores(Context& context, uint64_t seed) {
  constexpr int64_t kWidth = 64;
  Rng rng(seed);
  const Tensor words = nn::normal({4, 256, kWidth}, 1, rng);
  Workspace workspace;
  std::vector<Trial> trials;
  for (const nn::Score score : kScores) {
    const nn::SingleHeadAttention layer(score, "self", kWidth, kWidth, rng);
    trials.emplace_back([&context, &workspace, words, layer] {
      Tape tape;
      nn::Pass pass{{context.parallel(), workspace, &tape}};
      const Var x = tape.leaf(words);
      tape.backward(ops::sum(pass, layer(pass, x, layer.keys(pass, x), x, {})), pass);
    });
  }
  const auto seconds = fastest(trials, 9);
  std::array<double, kCount> ratios{};
  for (size_t i = 0; i < kCount; ++i) ratios[i] = seconds[i] / seconds[0];
  return ratios;
}

Result run_scores(Context& context) {
  const int64_t steps = context.size(3000, 120);
  context.expect(std::ssize(context.seeds()) * std::ssize(kScores) * steps);
  std::array<std::vector<double>, kCount> ratios;  // to dot
  for (const uint64_t seed : context.seeds()) {
    const auto times = times_of_scores(context, seed);
    for (size_t i = 0; i < kCount; ++i) ratios[i].push_back(times[i]);
  }
  Table table{.title = "Words tagged right, and the time of attention forward and backward",
              .columns = {"score", "after a quarter of the steps", "at the end", "time / that of dot"}};
  Plot plot{.title = "Words tagged right during training", .x = {.label = "steps"}, .y = {.label = "share", .high = 1}};
  Finding same, costs;
  double highest_low = 0, lowest_high = 1;
  for (size_t i = 0; i < kCount; ++i) {
    std::vector<Series> runs;
    for (const uint64_t seed : context.seeds()) runs.push_back(learning(context, kScores[i], steps, seed));
    plot.series.push_back(mean_of(name_of(kScores[i]), runs));
    const std::vector<Point>& points = plot.series.back().points;
    const Point early = points[points.size() / 4], end = points.back();
    highest_low = std::max(highest_low, spread_at(end).low), lowest_high = std::min(lowest_high, spread_at(end).high);
    table.rows.push_back(
        {name_of(kScores[i]), percent(spread_at(early)), percent(spread_at(end)), shown(spread_of(ratios[i]))});
    same.measured += (i ? ", " : "") + name_of(kScores[i]) + " " + percent(spread_at(end));
  }
  same.held = highest_low <= lowest_high;
  const Spread additive = spread_of(ratios[3]);
  costs = {additive.low > 2, "additive takes " + shown(additive) + " times as long as dot"};
  return {.findings = {same, costs}, .tables = {table}, .plots = {plot}};
}

}  // namespace

Experiment scores() {
  return {
      .name = "scores",
      .claim = "Which score attention has matters little to what is learned, and much to what it costs.",
      .method =
          "Taggers with self-attention over words, alike but for the score, learn for as long whether a word's "
          "partner is in the row. Apart from that, the time of attention over 256 words, forward and backward, "
          "is measured, all scores in turn.",
      .tests = {"at the end of training the ranges over the seeds (lowest to highest accuracy) of all four scores "
                "have a value in common: they differ by no more than seeds do",
                "for every seed, the additive score takes more than twice as long as the dot product: 'much faster' "
                "(Vaswani et al. 2017), as a number"},
      .run = run_scores};
}

}  // namespace heed::lab
