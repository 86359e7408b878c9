// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::deviation, testing::kUnit, testing::Machine, testing::scatter;

constexpr Score kScores[] = {Score::dot, Score::scaled, Score::bilinear, Score::additive};

// softmax(x x^T) x, row by row, x [T,E].
std::vector<double> self_attention_by_hand(const std::vector<double>& x, size_t T, size_t E) {
  std::vector<double> y(T * E, 0.0);
  for (size_t i = 0; i < T; ++i) {
    std::vector<double> weight(T);
    double sum = 0;
    for (size_t j = 0; j < T; ++j) {
      double score = 0;
      for (size_t e = 0; e < E; ++e) score += x[i * E + e] * x[j * E + e];
      sum += weight[j] = std::exp(score);
    }
    for (size_t j = 0; j < T; ++j) {
      for (size_t e = 0; e < E; ++e) y[i * E + e] += weight[j] / sum * x[j * E + e];
    }
  }
  return y;
}

TEST(Attention, WithoutParametersIsSoftmaxOfXXtTimesX) {
  Machine machine;
  Rng rng(seeded(1));
  constexpr int64_t T = 7, E = 5;
  const Tensor x = normal({1, T, E}, 1, rng);
  Attention layer({.width = E, .score = Score::dot, .projections = false}, "self", rng);
  EXPECT_TRUE(ParameterStore(layer).entries().empty());
  const std::vector<double> by_hand = self_attention_by_hand(x.to_doubles(), T, E);
  for (const DType dtype : {DType::f32, DType::f64}) {
    Pass pass = machine.pass();
    const Var in = x.converted(dtype);
    // Scores below 30, sums of E products: their rounding is that much felt by the weights.
    EXPECT_LE(deviation(layer(pass, in, in, {}).value(), Tensor::of({1, T, E}, by_hand).converted(dtype)),
              dtype == DType::f32 ? (30 * E + T) * kUnit : 1e-14);
  }
}

// Heads of width D over a model of width H D: W_Q, W_K and W_V that pick the h-th slice for head h, and W_O = 1.
TEST(Attention, AHeadSeesJustItsSlice) {
  constexpr int64_t H = 3, D = 4, E = H * D, T = 6;
  Machine machine;
  Rng rng(seeded(2));
  const Attention layer({.width = E, .heads = H, .bias = false}, "self", rng);
  for (const Linear* linear : {&layer.q, &layer.k, &layer.v, &layer.out}) {
    linear->weight.value.fill(0);
    for (int64_t i = 0; i < E; ++i) linear->weight.value.data<float>()[i * E + i] = 1;
  }
  const Tensor x = normal({1, T, E}, 1, rng);
  Pass pass = machine.pass();
  const Tensor all = layer(pass, x, x, {}).value();

  const Attention one({.width = D, .projections = false}, "one", rng);
  for (int64_t h = 0; h < H; ++h) {
    const Var slice = ops::columns(pass, x, h * D, D);
    const Tensor alone = one(pass, slice, slice, {}).value();
    EXPECT_LE(deviation(ops::columns(pass, all, h * D, D).value(), alone), (10 * D + T) * kUnit) << "head " << h;
  }
  // The other slices do not matter to it.
  Tensor other = normal({1, T, E}, 3, rng);
  for (int64_t t = 0; t < T; ++t) std::copy_n(x.data<float>() + t * E + D, D, other.data<float>() + t * E + D);
  EXPECT_TRUE(testing::same_bits(ops::columns(pass, layer(pass, other, other, {}), D, D).value(),
                                 ops::columns(pass, all, D, D).value()));
}

TEST(Attention, GroupedHeadsAreHeadsWithTheSameKeys) {
  constexpr int64_t E = 6, D = 2;
  Machine machine;
  Rng rng(seeded(3));
  Attention grouped({.width = E, .heads = 4, .kv_heads = 2, .key_width = D, .value_width = D}, "grouped", rng);
  Attention full({.width = E, .heads = 4, .key_width = D, .value_width = D}, "full", rng);
  scatter(ParameterStore(grouped), 4);
  full.q = grouped.q;
  full.out = grouped.out;
  for (const auto& [from, to] : {std::pair{&grouped.k, &full.k}, {&grouped.v, &full.v}}) {
    for (int64_t h = 0; h < 4; ++h) {
      to->weight.value.slice(h * D, D).copy_from(from->weight.value.slice(h / 2 * D, D));
      to->bias.value.slice(h * D, D).copy_from(from->bias.value.slice(h / 2 * D, D));
    }
  }
  Pass pass = machine.pass();
  const Var x = normal({2, 5, E}, 1, rng);
  EXPECT_LE(deviation(grouped(pass, x, x, {}).value(), full(pass, x, x, {}).value()), (4 * E + 20) * kUnit);
}

struct Told {
  std::string path;
  AttentionRole role;
  int64_t position;
  Dims<4> q, k;
  bool stats, gate;
  float scale;
};

class Listener : public Observer {
 public:
  std::vector<Told> told;
  Tensor gate;

  void attention(const AttentionEvent& e) override {
    told.push_back({e.path, e.role, e.position, e.inputs.q.shape(), e.inputs.k.shape(), static_cast<bool>(e.stats),
                    static_cast<bool>(e.inputs.head_gate), e.options.scale.value_or(0)});
  }
  Tensor head_gate(const std::string&, int64_t heads) override {
    EXPECT_TRUE(!gate || gate.shape(0) == heads);
    return gate;
  }
};

TEST(Observer, IsToldOfEachCall) {
  Machine machine;
  Rng rng(seeded(5));
  Attention layer({.width = 6, .heads = 3, .kv_heads = 1, .key_width = 2, .source_width = 4, .score = Score::dot},
                  "decoder.0.cross", rng);
  Listener listener;
  Pass pass = machine.pass();
  pass.observer = &listener;
  layer(pass, normal({2, 5, 6}, 1, rng), normal({2, 7, 4}, 1, rng), {.role = AttentionRole::cross, .position = 9});
  ASSERT_EQ(listener.told.size(), 1u);
  const Told& told = listener.told[0];
  EXPECT_EQ(told.path, "decoder.0.cross");
  EXPECT_EQ(told.role, AttentionRole::cross);
  EXPECT_EQ(told.position, 9);
  EXPECT_EQ(told.q, (Dims<4>{2, 3, 5, 2}));
  EXPECT_EQ(told.k, (Dims<4>{2, 1, 7, 2}));
  EXPECT_TRUE(told.stats);
  EXPECT_FALSE(told.gate);
  EXPECT_EQ(told.scale, 1);

  // Step by step, the position is the step.
  const Attention self({.width = 6, .heads = 3}, "decoder.0.self", rng);
  KvCache cache;
  for (int64_t t = 0; t < 3; ++t) {
    self.step(pass, normal({2, 1, 6}, 1, rng), cache);
    EXPECT_EQ(listener.told.back().position, t);
    EXPECT_EQ(listener.told.back().role, AttentionRole::masked);
  }
}

TEST(Observer, AGateOfZeroRemovesTheHead) {
  constexpr int64_t H = 4, E = 8, D = 2;
  Machine machine;
  Rng rng(seeded(6));
  Attention layer({.width = E, .heads = H}, "self", rng);
  const ParameterStore store(layer);
  scatter(store, 7);
  const Var x = normal({2, 5, E}, 1, rng);
  Listener listener;
  listener.gate = Tensor::full({H}, 1);
  listener.gate.data<float>()[2] = 0;
  Pass gated = machine.pass(), plain = machine.pass();
  gated.observer = &listener;
  const Tensor without = layer(gated, x, x, {}).value();
  EXPECT_TRUE(listener.told.at(0).gate);
  EXPECT_GT(deviation(without, layer(plain, x, x, {}).value()), 0.01);

  // The same as if the output projection did not read that head.
  for (int64_t o = 0; o < E; ++o) std::fill_n(layer.out.weight.value.data<float>() + o * E + 2 * D, D, 0.0f);
  EXPECT_LE(deviation(without, layer(plain, x, x, {}).value()), 2 * E * kUnit);
}

TEST(Attention, WhatStandsInPaddingDoesNotMatter) {
  constexpr int64_t E = 6, S = 5;
  Machine machine;
  Rng rng(seeded(8));
  const std::vector<int64_t> lengths{3, 5};
  for (const Score score : kScores) {
    const Attention layer({.width = E, .heads = 2, .score = score}, "cross", rng);
    const Var x = normal({2, 4, E}, 1, rng);
    const Tensor source = normal({2, S, E}, 1, rng), padded = source.clone();
    std::fill_n(padded.data<float>() + 3 * E, 2 * E, std::numeric_limits<float>::quiet_NaN());
    const AttentionCall call{AttentionRole::cross, kernels::Lengths{lengths}};
    Pass pass = machine.pass();
    EXPECT_TRUE(testing::same_bits(layer(pass, x, source, call).value(), layer(pass, x, padded, call).value()));
  }
}

// Tokens in chunks of any length over the cache, against all of them at once under a causal mask.
TEST(Attention, StepsGiveWhatTheWholeGives) {
  constexpr int64_t E = 8, T = 70;  // beyond the cache's first capacity
  Machine machine;
  testing::for_draws(24, [&](Rng& rng) {
    AttentionOptions options{.width = E, .heads = 4};
    options.score = kScores[rng.below(4)];
    options.projections = rng.below(4) != 0;
    options.kv_heads = options.projections && rng.below(2) ? 2 : 4;
    options.rotary = rng.below(2) != 0;
    options.alibi = rng.below(2) != 0;
    const Attention layer(options, "self", rng);
    const Tensor x = normal({2, T, E}, 1, rng);
    Pass pass = machine.pass();
    const Tensor whole = layer(pass, x, x, {AttentionRole::masked, kernels::Causal::top_left()}).value();
    KvCache cache;
    for (int64_t t = 0; t < T;) {
      const int64_t n = std::min<int64_t>(T - t, 1 + static_cast<int64_t>(rng.below(3) * rng.below(20)));
      const auto part = [&](const Tensor& from) {
        Tensor run = Tensor::uninitialised({2, n, E});
        for (int64_t b = 0; b < 2; ++b) {
          std::copy_n(from.data<float>() + (b * T + t) * E, n * E, run.data<float>() + b * n * E);
        }
        return run;
      };
      EXPECT_LE(deviation(layer.step(pass, part(x), cache).value(), part(whole)), 1e-5) << "token " << t;
      t += n;
    }
  });
}

TEST(Attention, LooksAtWhatItRemembersAsAtTheSource) {
  Machine machine;
  Rng rng(seeded(9));
  for (const Score score : kScores) {
    const Attention layer({.width = 8, .heads = 2, .source_width = 6, .score = score, .rotary = true}, "cross", rng);
    const Var source = normal({2, 9, 6}, 1, rng), x = normal({2, 1, 8}, 1, rng);
    const AttentionCall call{.role = AttentionRole::cross, .position = 4};
    Pass pass = machine.pass();
    const KvCache remembered = layer.remember(pass, source);
    EXPECT_EQ(remembered.length(), 9);
    EXPECT_TRUE(
        testing::same_bits(layer.step(pass, x, remembered, call).value(), layer(pass, x, source, call).value()));
  }
}

// How far out may be from what it would be if k and v were not rounded: by a relative u each, or f16's subnormals by
// half of their distance. A score changes by at most e = u scale sum_d |q_d k_d|, so a weight by a factor within
// e^(+-2e), and u of each value comes on top.
struct StoredBound {
  double unit;
  double subnormal;
};

// softmax(scale q k^T) v of one head and one query, and the bound for each number of it.
struct Looked {
  std::vector<double> out, bound;
};
Looked look(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
            StoredBound stored) {
  const size_t D = q.size(), S = k.size() / D, Dv = v.size() / S;
  std::vector<double> weight(S);
  double sum = 0, error = 0;
  for (size_t s = 0; s < S; ++s) {
    double score = 0, size = 0;
    for (size_t d = 0; d < D; ++d) {
      const double scale = 1 / std::sqrt(static_cast<double>(D));
      score += scale * q[d] * k[s * D + d];
      size += scale * std::abs(q[d]) * (stored.unit * std::abs(k[s * D + d]) + stored.subnormal);
    }
    sum += weight[s] = std::exp(score);
    error = std::max(error, size);
  }
  Looked looked{std::vector<double>(Dv), std::vector<double>(Dv)};
  for (size_t s = 0; s < S; ++s) {
    for (size_t d = 0; d < Dv; ++d) {
      const double value = std::abs(v[s * Dv + d]), lost = stored.unit * value + stored.subnormal;
      looked.out[d] += weight[s] / sum * v[s * Dv + d];
      looked.bound[d] += weight[s] / sum * (std::expm1(2 * error) * (value + lost) + lost);
    }
  }
  // The kernel's own rounding in f32: scores of D terms, sums of S.
  for (double& bound : looked.bound) bound += static_cast<double>(8 * D + S + 40) * 4 * kUnit;
  return looked;
}

TEST(Attention, StepsOverACacheIn16BitsAreAsNearAsItsRoundingAllows) {
  constexpr int64_t E = 8, T = 40;
  Machine machine;
  Rng rng(seeded(10));
  const Attention layer({.width = E, .projections = false}, "self", rng);
  for (const auto& [dtype, stored] :
       {std::pair{DType::bf16, StoredBound{0x1p-8, 0}}, {DType::f16, {0x1p-11, 0x1p-25}}}) {
    SCOPED_TRACE(name_of(dtype));
    KvCache cache(dtype), whole;
    Pass pass = machine.pass();
    std::vector<double> all;
    double largest = 0;
    for (int64_t t = 0; t < T; ++t) {
      const Tensor x = normal({1, 1, E}, 1, rng);
      const std::vector<double> row = x.to_doubles();
      all.insert(all.end(), row.begin(), row.end());
      const std::vector<double> got = layer.step(pass, x, cache).value().to_doubles(),
                                plain = layer.step(pass, x, whole).value().to_doubles();
      const Looked looked = look(row, all, all, stored);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_NEAR(got[i], looked.out[i], looked.bound[i]) << "token " << t;
        largest = std::max(largest, std::abs(got[i] - plain[i]));
      }
    }
    EXPECT_EQ(cache.dtype(), dtype);
    EXPECT_GT(largest, stored.unit / 16);  // it was rounded
  }
}

TEST(Attention, RemembersASourceIn16Bits) {
  Machine machine;
  Rng rng(seeded(11));
  const Attention layer({.width = 8, .heads = 2}, "cross", rng);
  const Var source = normal({2, 9, 8}, 1, rng), x = normal({2, 1, 8}, 1, rng);
  Pass pass = machine.pass();
  const KvCache plain = layer.remember(pass, source);
  pass.cache_dtype = DType::bf16;
  const KvCache stored = layer.remember(pass, source);
  EXPECT_EQ(stored.dtype(), DType::bf16);
  EXPECT_EQ(stored.length(), 9);
  EXPECT_EQ(stored.keys().to_doubles(), plain.keys().converted(DType::bf16).to_doubles());
  // The bits of what was rounded, in f32.
  const KvCache widened = KvCache::of(stored.keys().converted(DType::f32), stored.values().converted(DType::f32));
  const AttentionCall call{.role = AttentionRole::cross};
  EXPECT_TRUE(
      testing::same_bits(layer.step(pass, x, stored, call).value(), layer.step(pass, x, widened, call).value()));
}

TEST(Attention, SaysWhatDoesNotFit) {
  Rng rng(seeded(1));
  const auto made = [&](const AttentionOptions& options) { return error_of([&] { Attention(options, "a", rng); }); };
  EXPECT_EQ(made({}), "attention 'a': width is 0, expected 1 or more");
  EXPECT_EQ(made({.width = 4, .heads = 0}), "attention 'a': heads is 0, expected 1 or more");
  EXPECT_EQ(made({.width = 6, .heads = 4}), "attention 'a': width is 6, expected a multiple of heads (4)");
  EXPECT_EQ(made({.width = 8, .heads = 4, .kv_heads = 3}),
            "attention 'a': kv_heads is 3, expected a divisor of heads (4)");
  EXPECT_EQ(made({.width = 8, .heads = 2, .key_width = 3, .projections = false}),
            "attention 'a': width is 8, expected 6 without projections (heads times key_width)");
  EXPECT_EQ(made({.width = 8, .heads = 2, .kv_heads = 1, .projections = false}),
            "attention 'a': source_width is 8, expected 4 without projections (kv_heads times key_width and "
            "value_width)");
  EXPECT_EQ(made({.width = 6, .heads = 2, .rotary = true}),
            "attention 'a': key_width is 3, expected an even one for rotary");

  Machine machine;
  const Attention layer({.width = 4, .rotary = true, .positions = 5}, "self", rng);
  Pass pass = machine.pass();
  KvCache cache;
  layer.step(pass, Tensor::zeros({1, 4, 4}), cache);
  EXPECT_EQ(error_of([&] {
              layer.step(pass, Tensor::zeros({1, 2, 4}), cache);
            }),
            "attention 'self': a row of 6 tokens came, expected at most 5 (positions)");
  Tape tape;
  Pass taped = machine.pass(&tape);
  EXPECT_EQ(error_of([&] {
              layer.step(taped, Tensor::zeros({1, 1, 4}), cache);
            }),
            "attention 'self': a step came with a tape, expected none: caches have no gradient");
}

}  // namespace
}  // namespace heed::nn
