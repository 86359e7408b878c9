// SPDX-License-Identifier: Apache-2.0
// What an observer is shown of layers with attention, in f32 and in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/attention/observe.h"
#include "heed/nn/attention.h"
#include "heed/nn/attention_weights.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/single_head_attention.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::deviation, testing::for_draws, testing::kUnit, testing::Machine, testing::scatter;

constexpr Score kScores[] = {Score::dot, Score::scaled, Score::bilinear, Score::additive};

// One event, with the weights and scores that an observer computes from it.
struct Seen {
  std::string path;
  AttentionRole role;
  int64_t position;
  DType dtype;
  Tensor weights;     // [B,H,T,S]
  Tensor last_first;  // the same of the last query, and of the first
  Tensor scores;      // [B,H,T,S]: as the softmax reads them
  Tensor stats;
  std::vector<HypothesisRow> rows;
};

Tensor masked_scores(const AttentionEvent& e, Machine& machine) {
  const int64_t B = e.stats.shape(0), H = e.stats.shape(1), T = e.stats.shape(2);
  if (e.dtype() == DType::f64) {
    const Tensor out = Tensor::uninitialised({B, H, T, e.inputs_f64.v.shape(3)}, DType::f64);
    Tensor scores = Tensor::uninitialised({B, H, T, e.inputs_f64.k.shape(2)}, DType::f64);
    kernels::reference::attention_forward(
        e.inputs_f64, {.out = out.view<double, 4>(), .masked = scores.view<double, 4>()}, e.options);
    return scores;
  }
  Tensor scores = Tensor::uninitialised({B, H, T, e.inputs.k.shape(2)});
  std::vector<int64_t> queries;
  for (int64_t t = 0; t < T; ++t) queries.push_back(t);
  kernels::attention_observe(
      e.inputs, {}, {.queries = queries, .stage = kernels::AttentionStage::masked, .rows = scores.view<float, 4>()},
      e.options, machine.workspace, machine.parallel);
  return scores;
}

class Recorder final : public Observer {
 public:
  explicit Recorder(Machine& machine) : machine_(machine) {}
  std::vector<Seen> seen;
  Tensor gate;  // of every layer with as many heads

  void attention(const AttentionEvent& e) override {
    EXPECT_EQ(static_cast<bool>(e.inputs.q), e.dtype() == DType::f32);
    EXPECT_EQ(static_cast<bool>(e.inputs_f64.q), e.dtype() == DType::f64);
    const int64_t last_first[] = {e.stats.shape(2) - 1, 0};
    seen.push_back({e.path,
                    e.role,
                    e.position,
                    e.dtype(),
                    attention_weights(e, machine_.workspace, machine_.parallel),
                    attention_weights(e, last_first, machine_.workspace, machine_.parallel),
                    masked_scores(e, machine_),
                    e.stats,
                    {e.rows.begin(), e.rows.end()}});
    const int64_t beyond[] = {0, e.stats.shape(2)};
    EXPECT_EQ(error_of([&] { attention_weights(e, beyond, machine_.workspace, machine_.parallel); }),
              "attention weights: queries[1] is " + std::to_string(beyond[1]) + ", expected 0 to " +
                  std::to_string(beyond[1] - 1) + " (T - 1)");
  }
  Tensor head_gate(const std::string&, int64_t heads) override {
    return gate && gate.size() == heads ? gate : Tensor();
  }

 private:
  Machine& machine_;
};

// A row of weights sums to one, or is zero where every key is masked; and statistics and scores give the same weights.
void expect_weights(const Seen& seen) {
  const double unit = seen.dtype == DType::f64 ? 0x1p-53 : kUnit;
  const std::vector<double> weights = seen.weights.to_doubles(), scores = seen.scores.to_doubles(),
                            stats = seen.stats.to_doubles();
  const int64_t rows = seen.stats.size() / 2, S = seen.weights.shape(3);
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0, largest = 1;
    bool blind = true;
    for (int64_t s = 0; s < S; ++s) {
      const double score = scores[static_cast<size_t>(i * S + s)];
      if (std::isfinite(score)) blind = false, largest = std::max(largest, std::abs(score));
    }
    EXPECT_EQ(stats[static_cast<size_t>(2 * i + 1)] == 0, blind);
    for (int64_t s = 0; s < S; ++s) {
      const double weight = weights[static_cast<size_t>(i * S + s)], score = scores[static_cast<size_t>(i * S + s)];
      sum += weight;
      const double from_stats = blind ? 0
                                      : std::exp2(score * std::numbers::log2e - stats[static_cast<size_t>(2 * i)]) /
                                            stats[static_cast<size_t>(2 * i + 1)];
      // A score and the maximum are rounded, each a few times, and 2^x passes that on.
      EXPECT_NEAR(weight, from_stats, 16 * largest * unit);
    }
    EXPECT_NEAR(sum, blind ? 0 : 1, static_cast<double>(S + 16) * largest * unit);
  }
}

Tensor rows_last_first(const Tensor& weights) {
  const int64_t H = weights.shape(0) * weights.shape(1), T = weights.shape(2), S = weights.shape(3);
  const Tensor flat = weights.reshaped({H, T, S});
  Tensor rows = Tensor::uninitialised(weights.shape().with(2, 2), weights.dtype());
  for (int64_t h = 0; h < H; ++h) {
    const Tensor head = flat.slice(h, 1).reshaped({T, S}), to = rows.reshaped({H, 2, S}).slice(h, 1).reshaped({2, S});
    to.slice(0, 1).copy_from(head.slice(T - 1, 1));
    to.slice(1, 1).copy_from(head.slice(0, 1));
  }
  return rows;
}

// Runs the layer in both dtypes; events have to be the same but for rounding.
template <class Layer, class Use>
void check_events(const std::function<Layer()>& make, const Use& use, const Tensor& gate, size_t expected) {
  Machine machine;
  std::vector<std::vector<Seen>> seen;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Layer layer = make();
    const ParameterStore store(layer, dtype);
    scatter(store, 3);
    Recorder recorder(machine);
    recorder.gate = gate;
    Pass pass = machine.pass();
    pass.observer = &recorder;
    use(layer, pass, dtype);
    seen.push_back(recorder.seen);
  }
  ASSERT_EQ(seen[0].size(), expected);
  ASSERT_EQ(seen[1].size(), expected);
  for (size_t i = 0; i < expected; ++i) {
    const Seen &single = seen[0][i], &twin = seen[1][i];
    EXPECT_EQ(single.path, twin.path);
    EXPECT_EQ(single.role, twin.role);
    EXPECT_EQ(single.position, twin.position);
    EXPECT_EQ(single.dtype, DType::f32);
    EXPECT_EQ(twin.dtype, DType::f64);
    EXPECT_EQ(single.weights.dtype(), DType::f32);
    EXPECT_EQ(twin.weights.dtype(), DType::f64);
    // Scores are sums of tens of terms, each rounded a few times on the way, and below 100.
    EXPECT_LE(deviation(single.weights, twin.weights), 100 * 50 * kUnit);
    for (const Seen* one : {&single, &twin}) {
      expect_weights(*one);
      EXPECT_TRUE(testing::same_bits(one->last_first, rows_last_first(one->weights)));
    }
  }
}

TEST(AttentionEvent, IsTheSameInDouble) {
  for_draws(40, [](Rng& rng) {
    AttentionOptions options{.width = 8, .heads = 4, .source_width = 6};
    options.score = kScores[rng.below(4)];
    options.kv_heads = rng.below(2) ? 2 : 4;
    options.alibi = rng.below(3) == 0;
    options.rotary = rng.below(3) == 0;
    const std::vector<int64_t> lengths{static_cast<int64_t>(rng.below(6)), 5};
    AttentionCall call{.role = AttentionRole::cross};
    if (rng.below(2)) call.mask.lengths = kernels::Lengths{lengths};
    if (rng.below(2)) call.role = AttentionRole::masked, call.mask.causal = kernels::Causal::top_left();
    const Tensor x = normal({2, 4, 8}, 1, rng), source = normal({2, 5, 6}, 1, rng);
    const Tensor gate = rng.below(2) ? Tensor::of({4}, std::vector<float>{1, 0, 2, -1}) : Tensor();
    const uint64_t seed = rng.next_u64();
    const std::function<Attention()> make = [&] {
      Rng weights(seed);
      return Attention(options, "decoder.0.cross", weights);
    };
    const auto use = [&](const Attention& layer, Pass& pass, DType dtype) {
      layer(pass, x.converted(dtype), source.converted(dtype), call);
    };
    check_events(make, use, gate, 1);
  });
}

// Steps over a cache, whose unused capacity is masked.
TEST(AttentionEvent, OfStepsIsTheSameInDouble) {
  Rng rng(seeded(4));
  const Tensor x = normal({3, 2, 1, 8}, 1, rng);
  const std::function<Attention()> make = [] {
    Rng weights(seeded(5));
    return Attention({.width = 8, .heads = 2, .alibi = true}, "decoder.0.self", weights);
  };
  const auto use = [&](const Attention& layer, Pass& pass, DType dtype) {
    KvCache cache;
    for (int64_t t = 0; t < 3; ++t) {
      layer.step(pass, x.slice(t, 1).reshaped({2, 1, 8}).converted(dtype), cache);
    }
  };
  check_events(make, use, {}, 3);
}

struct Decoder {
  SingleHeadAttention cross;
  RecurrentDirection cell;
  void visit(auto&& each) { each("cross", cross), each("cell", cell); }
};

TEST(AttentionEvent, OfAlignmentsIsTheSameInDouble) {
  for_draws(24, [](Rng& rng) {
    const Score score = kScores[rng.below(4)];
    const auto cell = static_cast<Cell>(rng.below(3));
    const bool recurrence = rng.below(2);
    const std::vector<int64_t> lengths{static_cast<int64_t>(rng.below(6)), 5};
    AttentionCall call{.role = AttentionRole::cross, .position = 7};
    if (rng.below(2)) call.mask.lengths = kernels::Lengths{lengths};
    const Tensor x = normal({2, 3, 4}, 1, rng), source = normal({2, 5, 4}, 1, rng);
    const Tensor gate = rng.below(2) ? Tensor::full({1}, 0.5) : Tensor();
    const uint64_t seed = rng.next_u64();
    const std::function<Decoder()> make = [&] {
      Rng weights(seed);
      return Decoder{SingleHeadAttention(score, "decoder.cross", 4, 4, weights),
                     RecurrentDirection(cell, 8, 4, weights)};
    };
    const auto use = [&](const Decoder& layer, Pass& pass, DType dtype) {
      const Var in = x.converted(dtype), states = source.converted(dtype);
      const Var keys = layer.cross.keys(pass, states);
      if (!recurrence) {
        layer.cross(pass, in, keys, states, call);
        return;
      }
      ops::AttentiveRecurrenceArguments a{.recurrence = layer.cell.arguments(pass, in), .keys = keys, .values = states};
      a.recurrence.options.cell = cell;
      layer.cross.recurrence(pass, "decoder_top", a, call);
    };
    check_events(make, use, gate, 1);
  });
}

TEST(AttentionEvent, SaysWhichHypothesisARowIs) {
  Machine machine;
  Rng rng(seeded(6));
  const Attention layer({.width = 4}, "self", rng);
  Recorder recorder(machine);
  Pass pass = machine.pass();
  pass.observer = &recorder;
  const Tensor x = normal({3, 2, 4}, 1, rng);
  layer(pass, x, x, {});
  EXPECT_TRUE(recorder.seen.back().rows.empty());
  const std::vector<HypothesisRow> rows{{0, 4}, {0, 5}, {1, 2}};
  pass.rows = rows;
  layer(pass, x, x, {});
  ASSERT_EQ(recorder.seen.back().rows.size(), 3u);
  EXPECT_EQ(recorder.seen.back().rows[1].sentence, 0);
  EXPECT_EQ(recorder.seen.back().rows[1].node, 5);
  EXPECT_EQ(recorder.seen.back().rows[2].sentence, 1);
  pass.rows = std::span(rows).first(2);
  EXPECT_EQ(error_of([&] { layer(pass, x, x, {}); }),
            "pass: rows has 2 entries, expected 3, one for each row of the batch");
}

TEST(AttentionEvent, OfACacheIn16BitsHasItsWeights) {
  Machine machine;
  Rng rng(seeded(7));
  const Attention layer({.width = 8, .heads = 2}, "self", rng);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Recorder recorder(machine);
    Pass pass = machine.pass();
    pass.observer = &recorder;
    KvCache cache(dtype);
    for (int64_t t = 0; t < 3; ++t) layer.step(pass, normal({2, 1, 8}, 1, rng), cache);
    ASSERT_EQ(recorder.seen.size(), 3u);
    for (const Seen& seen : recorder.seen) expect_weights(seen);
  }
}

}  // namespace
}  // namespace heed::nn
