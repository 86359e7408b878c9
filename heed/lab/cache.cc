// SPDX-License-Identifier: Apache-2.0
// Token by token: does a cache of keys and values change the numbers, and what does it save?
#include <algorithm>
#include <cmath>

#include "heed/base/workspace.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed::lab {
namespace {

constexpr int64_t kVocabulary = 512;

Tensor ids_of(std::span<const int32_t> tokens) { return Tensor::of({1, std::ssize(tokens)}, tokens); }

// The logits of the last of the tokens, by a pass over all of them.
Tensor again(const models::Model& model, nn::Pass& pass, std::span<const int32_t> tokens) {
  const Tensor logits = model.logits(pass, {}, {.ids = ids_of(tokens)}).value();
  return logits.reshaped({std::ssize(tokens), kVocabulary}).slice(std::ssize(tokens) - 1, 1);
}

struct Decoded {
  std::vector<int32_t> tokens;
  std::vector<Tensor> logits{};
};

// The likeliest token after the likeliest token.
Decoded decode(const models::Model& model, nn::Pass& pass, int64_t length, bool cached) {
  Decoded found{.tokens = {text::kBegin}};
  nn::State state = model.begin(pass, {});
  while (std::ssize(found.tokens) < length) {
    const std::span<const int32_t> newest(&found.tokens.back(), 1);
    const Tensor logits = cached ? model.step(pass, ids_of(newest), state).value().reshaped({1, kVocabulary})
                                 : again(model, pass, found.tokens);
    const float* row = logits.data<float>();
    found.tokens.push_back(static_cast<int32_t>(std::max_element(row, row + kVocabulary) - row));
    found.logits.push_back(logits);
  }
  return found;
}

double difference(const Decoded& a, const Decoded& b) {
  double most = 0, largest = 0;
  for (size_t t = 0; t < a.logits.size(); ++t) {
    for (int64_t v = 0; v < kVocabulary; ++v) {
      const double one = a.logits[t].data<float>()[v], other = b.logits[t].data<float>()[v];
      most = std::max(most, std::abs(one - other)), largest = std::max(largest, std::abs(one));
    }
  }
  return most / largest;
}

// Milliseconds of one more token after `length` of them, with the cache and without, and the cache's bytes.
struct Step {
  double cached, again;
  size_t bytes;
};
Step measure_step(Context& context, const models::Model& model, int64_t length) {
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  const std::vector<int32_t> tokens(static_cast<size_t>(length), text::kUnknown + 1);
  nn::State state = model.begin(pass, {});
  model.step(pass, ids_of(tokens), state);
  const Tensor newest = ids_of(std::span(tokens).first(1));
  // Each call makes the cache a token longer: a few, beside those that are there.
  const auto times =
      fastest({[&] { model.step(pass, newest, state); }, [&] { again(model, pass, tokens); }}, context.size(9, 3));
  return {1e3 * times[0], 1e3 * times[1], state.bytes()};
}

Result run_cache(Context& context) {
  const std::vector<int64_t> lengths = context.size<std::vector<int64_t>>({32, 128, 512, 1024}, {32, 128});
  const int64_t decoded = context.size(256, 64);
  context.expect(std::ssize(context.seeds()) + std::ssize(lengths));
  const auto make = [](uint64_t seed) {
    return models::make_model(models::TransformerOptions{.kind = models::TransformerKind::decoder,
                                                         .vocabulary = kVocabulary,
                                                         .width = 256,
                                                         .heads = 4,
                                                         .decoder_layers = 4,
                                                         .max_length = 4096,
                                                         .dropout = 0},
                              seed);
  };
  std::vector<double> differences, gains;
  bool same = true;
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  for (const uint64_t seed : context.seeds()) {
    const auto model = make(seed);
    Decoded with, without;
    const auto times = fastest(
        {[&] { with = decode(*model, pass, decoded, true); }, [&] { without = decode(*model, pass, decoded, false); }},
        1);
    same = same && with.tokens == without.tokens;
    differences.push_back(difference(with, without));
    gains.push_back(times[1] / times[0]);
    context.step();
  }
  Table table{.title = "One more token after n others, four layers of width 256",
              .columns = {"n", "with cache, ms", "without, ms", "times as fast", "cache, MB"}};
  Plot plot{.title = "One more token",
            .x = {"tokens before it", page::Scale::log},
            .y = {"milliseconds", page::Scale::log},
            .series = {{"with a cache"}, {"all again"}},
            .note = "The fastest call of all rounds."};
  const auto model = make(context.seeds().front());
  std::vector<double> ratios;
  for (const int64_t length : lengths) {
    const Step step = measure_step(context, *model, length);
    ratios.push_back(step.again / step.cached);
    table.rows.push_back({std::to_string(length), shown(step.cached), shown(step.again), shown(ratios.back()),
                          shown(static_cast<double>(step.bytes) / (1 << 20))});
    plot.series[0].points.push_back(point(static_cast<double>(length), step.cached));
    plot.series[1].points.push_back(point(static_cast<double>(length), step.again));
    context.step();
  }
  const Spread apart = spread_of(differences), gain = spread_of(gains);
  return {.findings = {{same && apart.high < 1e-5, std::string(same ? "the same" : "other") +
                                                       " tokens, logits differ by at most " + shown(apart.high)},
                       {gain.low > 2, std::to_string(decoded) + " tokens are made " + shown(gain) + " times as fast"},
                       {ratios.back() > 2 * ratios.front(),
                        shown(ratios.front()) + " times as fast after " + std::to_string(lengths.front()) +
                            " tokens, " + shown(ratios.back()) + " after " + std::to_string(lengths.back())}},
          .tables = {table},
          .plots = {plot}};
}

}  // namespace

Experiment cache() {
  return {.name = "cache",
          .claim =
              "A cache of keys and values gives the same numbers, token by token, as computing all of them again, in "
              "less time, and the more so the longer the text.",
          .method =
              "A language model of four layers (of random parameters: neither numbers nor times depend on what "
              "was learned) makes a text of the likeliest tokens, with the cache and from all tokens again. "
              "Then one more token is timed after ever more of them.",
          .tests = {"the same tokens, and logits that differ by less than 1e-5 of the largest: some hundred roundings "
                    "of f32",
                    "the whole text is made more than twice as fast in each run: more than noise",
                    "after the longest text the gain is more than twice that after the shortest"},
          .run = run_cache};
}

}  // namespace heed::lab
