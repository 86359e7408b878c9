// SPDX-License-Identifier: Apache-2.0
// Long texts: what stands in a trace in place of whole rows, compared with the rows themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/trace/record.h"
#include "heed/trace/testing.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::text_model;
using Kind = models::TransformerKind;

std::string text_of(int64_t words) {
  Rng rng(seeded(1));
  std::string text;
  for (int64_t i = 0; i < words; ++i) text += std::string(i ? " " : "") + "abcde"[rng.below(5)];
  return text;
}

// The cells [begin, end) that cell i of M pools of T, as docs/observing.md has it.
std::pair<int64_t, int64_t> pooled(int64_t i, int64_t M, int64_t T) {
  const int64_t begin = i * T / M;
  return {begin, std::max(begin + 1, (i + 1) * T / M)};
}

// `text` was recorded as a long one, `rows` as a short one: of the same tokens.
void expect_described(const Trace& text, const Trace& rows) {
  ASSERT_EQ(text.attn.size(), rows.attn.size());
  for (size_t n = 0; n < text.attn.size(); ++n) {
    const Attention &one = text.attn[n], &whole = rows.attn[n];
    SCOPED_TRACE(one.id);
    EXPECT_FALSE(one.weights || one.Q || one.K || one.V || one.O);
    const int64_t H = std::ssize(one.heads), T = one.q.size(), S = one.k.size();
    const std::vector<float> weights = rows.values(whole.weights), entropy = text.values(one.stats.entropy),
                             exact_entropy = rows.values(whole.stats.entropy), top = text.values(one.top->weights);
    const std::vector<uint32_t> keys = text.tensor(one.top->keys).keys();
    const int64_t K = text.tensor(one.top->keys).shape[2];
    const auto weight = [&](int64_t h, int64_t t, int64_t s) {
      return double{weights[static_cast<size_t>((h * T + t) * S + s)]};
    };
    for (int64_t row = 0; row < H * T; ++row) {
      EXPECT_NEAR(entropy[static_cast<size_t>(row)], exact_entropy[static_cast<size_t>(row)], 1e-4);
      std::vector<float> sorted(weights.begin() + row * S, weights.begin() + (row + 1) * S);
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (int64_t i = 0; i < K; ++i) {
        const auto at = static_cast<size_t>(row * K + i);
        if (keys[at] == kNoKey) {
          EXPECT_EQ(sorted[static_cast<size_t>(i)], 0) << "a row sees fewer";
          continue;
        }
        EXPECT_NEAR(top[at], sorted[static_cast<size_t>(i)], 1e-3) << "stored in halves";
        EXPECT_NEAR(top[at], weights[static_cast<size_t>(row * S) + keys[at]], 1e-3);
      }
    }
    ASSERT_TRUE(one.pooled);
    EXPECT_EQ(one.pooled->queries, T);
    const std::vector<float> received = text.values(one.pooled->received);
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t s = 0; s < S; ++s) {
        double sum = 0;
        for (int64_t t = 0; t < T; ++t) sum += weight(h, t, s);
        EXPECT_NEAR(received[static_cast<size_t>(h * S + s)], sum, 1e-4 * (1 + sum));
      }
      const HeadMap& map = one.pooled->maps[static_cast<size_t>(h)];
      const Array &mean = text.tensor(map.mean), &max = text.tensor(map.max);
      const int64_t M = mean.shape[0], N = mean.shape[1];
      for (int64_t i = 0; i < M; ++i) {
        for (int64_t j = 0; j < N; ++j) {
          const auto [t0, t1] = pooled(i, M, T);
          const auto [s0, s1] = pooled(j, N, S);
          double sum = 0, most = 0;
          for (int64_t t = t0; t < t1; ++t) {
            for (int64_t s = s0; s < s1; ++s) sum += weight(h, t, s), most = std::max(most, weight(h, t, s));
          }
          const auto cell = static_cast<size_t>(i * N + j);
          const double step_mean = (mean.high - mean.low) / 255, step_max = (max.high - max.low) / 255;
          ASSERT_NEAR(mean.values()[cell], sum / static_cast<double>((t1 - t0) * (s1 - s0)), 0.51 * step_mean + 1e-5);
          ASSERT_NEAR(max.values()[cell], most, 0.51 * step_max + 1e-5);
        }
      }
    }
  }
}

// Every weight of a head, from what its tile holds.
void expect_rebuilt(const Trace& text, const Attention& one, const Tile& tile, const Trace& rows,
                    const Attention& whole) {
  const int64_t T = one.q.size(), S = one.k.size();
  const size_t h = static_cast<size_t>(std::find(one.heads.begin(), one.heads.end(), tile.head) - one.heads.begin());
  const std::vector<float> q = text.values(tile.q), k = text.values(tile.k), lse = text.values(tile.lse),
                           weights = rows.values(whole.weights);
  const std::vector<float> w = one.additive ? text.values(one.additive->w) : std::vector<float>();
  const int64_t D = text.tensor(tile.q).shape[1];
  EXPECT_LE(tile.error, text.capture.tolerance);
  EXPECT_EQ(text.capture.tolerance, 2e-3);
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t s = 0; s < S; ++s) {
      double score = 0;
      for (int64_t d = 0; d < D; ++d) {
        const double x = q[static_cast<size_t>(t * D + d)], y = k[static_cast<size_t>(s * D + d)];
        score += w.empty() ? x * y : w[h * static_cast<size_t>(D) + static_cast<size_t>(d)] * std::tanh(x + y);
      }
      score *= one.score.scale;
      if (!one.score.slopes.empty()) score -= one.score.slopes[h] * static_cast<double>(std::abs(t - s));
      const double rebuilt = one.mask.sees(t, s) ? std::exp(score - double{lse[static_cast<size_t>(t)]}) : 0;
      const auto at = (h * static_cast<size_t>(T) + static_cast<size_t>(t)) * static_cast<size_t>(S);
      ASSERT_NEAR(rebuilt, weights[at + static_cast<size_t>(s)], tile.error) << "the bound holds for every pair";
    }
  }
}

TEST(RecordLong, TextsHaveMapsAndStatisticsInPlaceOfRows) {
  const std::string text = text_of(150);
  for (const testing::Family& family : testing::families()) {
    SCOPED_TRACE(family.name);
    const decode::Engine engine(text_model(family.options, seeded(2)));
    const models::Task task = engine.text_model().task();
    if (task == models::Task::translate) continue;
    const auto recorded = [&](int64_t full) {
      RecordOptions options{.recorder = {.full = full, .map = 16, .top = 5}};
      const bool tags = task == models::Task::tag;
      if (full < 150)
        options.recorder.tiles = {tags && family.options.is<models::SelfAttentiveOptions>() ? "blocks.0.self.0"
                                  : tags                                                    ? "encoder.1.self.1"
                                                                                            : "decoder.1.self.1"};
      return tags ? record_tags(engine, text, options) : record_text(engine, text, options);
    };
    const Trace by_maps = recorded(64), by_rows = recorded(512);
    EXPECT_FALSE(by_maps.capture.full);
    expect_described(by_maps, by_rows);
    size_t tiles = 0;
    for (size_t n = 0; n < by_maps.attn.size(); ++n) {
      for (const Tile& tile : by_maps.attn[n].tiles) {
        expect_rebuilt(by_maps, by_maps.attn[n], tile, by_rows, by_rows.attn[n]);
        ++tiles;
      }
    }
    EXPECT_EQ(tiles, 1u);
    const std::string json = to_json(by_maps);
    EXPECT_EQ(to_json(from_json(json, "t")), json);
  }
}

// A prompt that is long, and tokens after it, one at a time: those have statistics, too.
TEST(RecordLong, ALongPromptIsGoneOnWith) {
  const decode::Engine engine(text_model(testing::transformer(Kind::decoder), seeded(3)));
  const std::string prompt = text_of(100);
  RecordOptions options{.search = {.beam = 2, .nbest = 2, .max_length = 5, .min_length = 4}};
  const Trace rows = record_generation(engine, prompt, options);
  options.recorder = {.full = 50, .tiles = {"decoder.0.self.0"}};
  const Trace maps = record_generation(engine, prompt, options);
  ASSERT_EQ(maps.output.text, rows.output.text);
  for (size_t n = 0; n < maps.attn.size(); ++n) {
    const Attention &one = maps.attn[n], &whole = rows.attn[n];
    ASSERT_EQ(one.q.size(), whole.q.size());
    EXPECT_GT(one.q.size(), 101) << "with tokens after the prompt";
    EXPECT_EQ(one.pooled->queries, 101) << "the map is of the prompt";
    const std::vector<float> a = maps.values(one.stats.entropy), b = rows.values(whole.stats.entropy);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
    for (const Tile& tile : one.tiles) expect_rebuilt(maps, one, tile, rows, whole);
  }
  EXPECT_EQ(maps.attn[0].tiles.size(), 1u);
}

TEST(RecordLong, SaysWhichHeadIsNotThere) {
  const decode::Engine engine(text_model(testing::transformer(Kind::decoder), seeded(4)));
  RecordOptions options{.recorder = {.full = 10, .tiles = {"decoder.0.self.9"}}};
  EXPECT_EQ(error_of([&] { record_text(engine, text_of(20), options); }),
            "trace: there is no head 'decoder.0.self.9', expected a layer and a head of it, of these layers: "
            "decoder.0.self, decoder.1.self");
}

}  // namespace
}  // namespace heed::trace
