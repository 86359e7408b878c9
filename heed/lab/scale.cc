// SPDX-License-Identifier: Apache-2.0
// Does dividing by sqrt(d_k) keep attention trainable?
//
// Vaswani et al. (2017): 'for large values of d_k, the dot products grow large in magnitude, pushing the softmax
// function into regions where it has extremely small gradients'.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/base/workspace.h"
#include "heed/data/batch.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"
#include "heed/nn/attention.h"
#include "heed/nn/init.h"
#include "heed/ops/attention.h"
#include "heed/ops/softmax.h"

namespace heed::lab {
namespace {

constexpr int64_t kQueries = 512, kKeys = 64;

// Of random queries and keys: the largest weight of a row (its mean), and the norm of the gradient by a row's scores.
struct Softness {
  double largest = 0, mean_gradient = 0, median_gradient = 0;
};

// A bias of zeros is added to the scores, so its gradient is theirs. The values are the identity: the output is the
// weights, and its own gradient is random.
Softness softness(Context& context, int64_t d, bool scaled, uint64_t seed) {
  Rng rng(seed, static_cast<uint64_t>(d));
  const Tensor q = nn::normal({1, kQueries, d}, 1, rng), k = nn::normal({1, kKeys, d}, 1, rng);
  const Tensor from_above = nn::normal({1, kQueries, kKeys}, 1, rng), identity = Tensor::zeros({1, kKeys, kKeys});
  for (int64_t i = 0; i < kKeys; ++i) identity.data<float>()[i * kKeys + i] = 1;
  Workspace workspace;
  Tape tape;
  const heed::Context pass{context.parallel(), workspace, &tape};
  const Var bias = tape.leaf(Tensor::zeros({1, 1, kQueries, kKeys}));
  const float scale = scaled ? 1 / std::sqrt(static_cast<float>(d)) : 1;
  const Var weights =
      ops::attention(pass, {.q = q, .k = k, .v = identity, .bias = bias, .options = {.scale = scale}}).out;
  tape.backward(weights, pass, from_above);

  const Tensor gradients = tape.gradient(bias);
  Softness found;
  std::vector<double> norms;
  for (int64_t t = 0; t < kQueries; ++t) {
    const float *row = weights.value().data<float>() + t * kKeys, *gradient = gradients.data<float>() + t * kKeys;
    found.largest += double{*std::max_element(row, row + kKeys)} / kQueries;
    norms.push_back(std::sqrt(std::inner_product(gradient, gradient + kKeys, gradient, 0.0)));
  }
  found.mean_gradient = std::accumulate(norms.begin(), norms.end(), 0.0) / kQueries;
  std::ranges::nth_element(norms, norms.begin() + kQueries / 2);
  found.median_gradient = norms[kQueries / 2];
  return found;
}

// A dictionary of pairs of a key and a value, each one token, and then questions: tokens of a key alone, to be tagged
// with its value. One layer of attention is enough, if it learns to compare keys.
constexpr int32_t kLetters = 24, kValues = 8, kEntries = 12, kQuestions = 6;

data::TokenPair dictionary(Rng& rng) {
  std::vector<int32_t> letters(kLetters), values(kLetters);
  std::iota(letters.begin(), letters.end(), 0);
  data::TokenPair pair;
  for (size_t i = 0; i < kEntries; ++i) {
    std::swap(letters[i], letters[i + rng.below(kLetters - i)]);
    const auto value = static_cast<int32_t>(rng.below(kValues));
    values[static_cast<size_t>(letters[i])] = value;
    pair.source.push_back(kFirstId + letters[i] * kValues + value);
    pair.target.push_back(text::kPad);
  }
  for (size_t i = 0; i < kQuestions; ++i) {
    const int32_t letter = letters[rng.below(kEntries)];
    pair.source.push_back(kFirstId + kLetters * kValues + letter);
    pair.target.push_back(kFirstId + values[static_cast<size_t>(letter)]);
  }
  return pair;
}

int64_t steps_of(const Context& context) { return context.size(600, 120); }

// One head of width d, and a linear layer on what it gives.
struct Lookup {
  nn::Embedding embedding;
  nn::Norm norm;
  nn::Attention attention;
  nn::Linear output;

  Lookup(int64_t d, nn::Score score, Rng& rng)
      : embedding(kFirstId + kLetters * (kValues + 1), kWidth, rng),
        norm(kWidth),
        attention({.width = kWidth, .key_width = d, .value_width = kWidth, .score = score}, "lookup", rng),
        output(kWidth, kFirstId + kValues, rng) {}
  Var operator()(nn::Pass& pass, const data::Batch& batch) const {
    const Var x = norm(pass, embedding(pass, data::source_tokens(batch).ids));
    return output(pass, attention(pass, x, x, {}));
  }
  void visit(auto&& each) {
    each("embedding", embedding), each("norm", norm), each("attention", attention), each("output", output);
  }
  static constexpr int64_t kWidth = 64;
};

// The share of right answers over the steps.
Series learning(Context& context, int64_t d, nn::Score score, uint64_t seed) {
  Rng rng(seed);
  Lookup lookup(d, score, rng);
  const ParameterStore parameters(lookup);
  const DrawnBatches batches(dictionary, 32, seed);
  const data::Batch test = DrawnBatches(dictionary, 128, seed).at(0, 1 << 20);
  Series curve;
  Workspace workspace;
  const auto look = [&](int64_t step) {
    nn::Pass pass{{context.parallel(), workspace}};
    Accuracy found;
    add_accuracy(found, test, lookup(pass, test).value());
    curve.points.push_back(point(static_cast<double>(step), found.share()));
  };
  fit(context, parameters, {.steps = steps_of(context), .seed = seed}, [&](nn::Pass& pass, int64_t step) {
    if (step % (steps_of(context) / 12) == 0) look(step);
    const data::Batch batch = batches.at(0, step);
    return ops::cross_entropy(pass, lookup(pass, batch), data::labels(batch), {.ignored = batch.pad}).loss;
  });
  look(steps_of(context));
  return curve;
}

const char* name_of(nn::Score score) { return score == nn::Score::scaled ? "q . k / sqrt(d_k)" : "q . k"; }

constexpr nn::Score kScores[] = {nn::Score::scaled, nn::Score::dot};
constexpr int64_t kWidths[] = {4, 16, 64, 256, 1024};

// The median gradients by score, then by width.
std::vector<std::vector<double>> measure_gradients(Context& context, Result& result) {
  Table table{.title = "Random queries and 64 keys of width d_k: the largest weight, the norm of the scores' gradient",
              .columns = {"score", "d_k", "largest weight", "gradient, mean", "gradient, median"}};
  Plot plot{
      .title = "Gradient of a row's scores", .x = {"d_k", page::Scale::log}, .y = {"median norm", page::Scale::log}};
  std::vector<std::vector<double>> medians;
  for (const nn::Score score : kScores) {
    Series series{name_of(score)};
    medians.emplace_back();
    for (const int64_t d : kWidths) {
      std::vector<double> largest, mean, median;
      for (const uint64_t seed : context.seeds()) {
        const Softness found = softness(context, d, score == nn::Score::scaled, seed);
        largest.push_back(found.largest), mean.push_back(found.mean_gradient), median.push_back(found.median_gradient);
      }
      medians.back().push_back(spread_of(median).mean);
      table.rows.push_back({series.name, std::to_string(d), shown(spread_of(largest)), shown(spread_of(mean)),
                            shown(spread_of(median))});
      series.points.push_back(point(static_cast<double>(d), spread_of(median)));
    }
    plot.series.push_back(series);
  }
  result.tables.push_back(table), result.plots.push_back(plot);
  return medians;
}

// The last point of the curves of each score and width.
std::vector<Spread> measure_training(Context& context, Result& result) {
  Table table{.title = "Right answers of a trained layer",
              .columns = {"score", "d_k", "after a quarter of the steps", "at the end"}};
  Plot plot{.title = "Right answers during training", .x = {"steps"}, .y = {"share", page::Scale::linear, 0, 1}};
  std::vector<Spread> last;
  for (const int64_t d : {16, 256}) {
    for (const nn::Score score : kScores) {
      std::vector<Series> runs;
      for (const uint64_t seed : context.seeds()) runs.push_back(learning(context, d, score, seed));
      plot.series.push_back(mean_of(std::string(name_of(score)) + ", d_k = " + std::to_string(d), runs));
      const std::vector<Point>& points = plot.series.back().points;
      const Point early = points[points.size() / 4], end = points.back();
      last.push_back(spread_at(end));
      table.rows.push_back({name_of(score), std::to_string(d), percent(spread_at(early)), percent(last.back())});
    }
  }
  result.tables.push_back(table), result.plots.push_back(plot);
  return last;
}

Result run_scale(Context& context) {
  context.expect(std::ssize(context.seeds()) * 4 * steps_of(context));
  Result result;
  const auto medians = measure_gradients(context, result);
  const auto [low, high] = std::ranges::minmax(medians[0]);
  result.findings.push_back({high < 2 * low, "from " + shown(low) + " to " + shown(high)});
  const double with = medians[0].back(), without = medians[1].back();
  result.findings.push_back({without < with / 10, shown(without) + " without, " + shown(with) + " with the division"});
  const std::vector<Spread> last = measure_training(context, result);
  result.findings.push_back(
      {last[2].low > last[3].high, percent(last[2]) + " with the division, " + percent(last[3]) + " without"});
  return result;
}

}  // namespace

Experiment scale() {
  return {.name = "scale",
          .claim = "Dividing scores by sqrt(d_k) keeps the softmax from saturating and its gradients from vanishing.",
          .method =
              "Queries and keys with independent normal entries, as at the start of training, for widths d_k from "
              "4 to 1,024: the largest weight of a row, and the norm of the gradient by its scores. Then one "
              "layer of attention learns to look up values by keys, with and without the division.",
          .tests = {"with the division, the median norm changes by less than a factor of 2, while d_k grows 256-fold "
                    "(without an effect of d_k the factor would be 1)",
                    "without it, the median norm at d_k = 1,024 is below a tenth of that with it: of another order "
                    "of magnitude",
                    "at d_k = 256 and equal steps, the worst run with the division is better than the best without"},
          .run = run_scale};
}

}  // namespace heed::lab
