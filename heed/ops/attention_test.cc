// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "heed/base/testing.h"
#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;
using heed::testing::seeded;
using kernels::AttentionOptions;

// Owns what the options' mask borrows, for as long as the op needs it.
struct Borrowed {
  std::vector<int64_t> lengths;
  std::vector<float> slopes;
  std::unique_ptr<bool[]> dense;
};

struct Sizes {
  int64_t B, heads, kv_heads, T, S, D, Dv;
};

Sizes draw_sizes(Rng& rng) {
  const int64_t kv_heads = between(rng, 1, 2);
  const auto tokens = [&] { return rng.below(10) ? between(rng, 1, 7) : between(rng, 30, 70); };
  return {between(rng, 1, 3), kv_heads * between(rng, 1, 3), kv_heads, tokens(), tokens(), between(rng, 1, 9),
          between(rng, 1, 9)};
}

kernels::Mask draw_mask(Rng& rng, const Sizes& n, Borrowed& borrowed) {
  kernels::Mask mask;
  if (rng.below(3) == 0) mask.causal = kernels::Causal::bottom_right();
  if (rng.below(4) == 0) mask.window = kernels::Window::offset(1, between(rng, 0, 4), between(rng, 0, 4));
  if (rng.below(4) == 0) {
    for (int64_t b = 0; b < n.B; ++b) borrowed.lengths.push_back(between(rng, 0, n.S));
    mask.lengths = kernels::Lengths{borrowed.lengths};
  }
  if (rng.below(4) == 0) {
    for (int64_t h = 0; h < n.heads; ++h) borrowed.slopes.push_back(rng.uniform(0.05f, 0.5f));
    mask.alibi = kernels::Alibi::top_left(borrowed.slopes);
  }
  if (rng.below(4) == 0) {
    borrowed.dense = std::make_unique<bool[]>(static_cast<size_t>(n.T * n.S));
    for (int64_t i = 0; i < n.T * n.S; ++i) borrowed.dense[static_cast<size_t>(i)] = rng.below(4) > 0;
    mask.dense = kernels::Dense{{borrowed.dense.get(), {1, 1, n.T, n.S}}};
  }
  return mask;
}

std::string describe(const Sizes& n, const AttentionOptions& options, bool additive) {
  const auto& mask = options.mask;
  return line("heads ", n.heads, "/", n.kv_heads, additive ? " additive" : "", options.softcap > 0 ? " softcap" : "",
              options.dropout.on() ? " dropout" : "", mask.causal ? " causal" : "", mask.window ? " window" : "",
              mask.lengths ? " lengths" : "", mask.alibi ? " alibi" : "", mask.dense ? " dense" : "");
}

// Scores are up to about 3: numbers of q and k are at most 1, and divided by sqrt(D). Sums go over the widths, the keys
// and the queries that share one; what a rounding of a score does to a weight, the weight's size does to gradients.
double roundings_of(const Sizes& n) {
  return 4 * static_cast<double>(n.D + n.Dv + n.S + n.T * n.heads / n.kv_heads * n.B + 40);
}

Case draw_case(Rng& rng) {
  const Sizes n = draw_sizes(rng);
  const auto borrowed = std::make_shared<Borrowed>();
  AttentionOptions options{.mask = draw_mask(rng, n, *borrowed)};
  if (rng.below(3) == 0) options.scale = rng.uniform(0.2f, 0.6f);
  if (rng.below(3) == 0) options.softcap = rng.uniform(1, 5);
  if (rng.below(3) == 0) options.dropout = {.rate = rng.uniform(0.1f, 0.6f), .seed = rng.next_u64()};
  const bool bias = rng.below(3) == 0, gate = rng.below(3) == 0, additive = rng.below(3) == 0;
  const auto whole_or_one = [&](int64_t extent) { return rng.below(2) ? extent : 1; };

  Case test{.what = describe(n, options, additive), .roundings = roundings_of(n)};
  const auto input = [&](const Shape& shape, float high) {
    test.inputs.push_back(draw(rng, shape, 0.1f, high));
    return test.inputs.size() - 1;
  };
  input({n.B, n.T, n.heads * n.D}, 1);
  input({n.B, n.S, n.kv_heads * n.D}, 1);
  input({n.B, n.S, n.kv_heads * n.Dv}, 2);
  std::optional<size_t> b, g, w;
  if (bias) b = input({whole_or_one(n.B), whole_or_one(n.heads), whole_or_one(n.T), whole_or_one(n.S)}, 1);
  if (gate) g = input({n.heads}, 2);
  if (additive) w = input({n.heads, n.D}, 0.5f);
  test.op = [=, keep = borrowed](const Context& c, std::span<const Var> in) {
    const auto at = [&](const std::optional<size_t>& i) { return i ? in[*i] : Var(); };
    return attention(c, {.q = in[0],
                         .k = in[1],
                         .v = in[2],
                         .heads = n.heads,
                         .kv_heads = n.kv_heads,
                         .bias = at(b),
                         .head_gate = at(g),
                         .w = at(w),
                         .options = options})
        .out;
  };
  return test;
}

TEST(AttentionOp, IsRight) { check_op(150, draw_case); }

// Parameter-free self-attention: queries, keys and values are one value.
TEST(AttentionOp, OfAValueWithItself) {
  check_op(30, [](Rng& rng) {
    const int64_t heads = between(rng, 1, 3), T = rng.below(5) ? between(rng, 1, 9) : between(rng, 40, 90);
    const Sizes n{between(rng, 1, 2), heads, heads, T, T, 4, 4};
    return Case{.what = "self-attention",
                .inputs = {draw(rng, {n.B, T, heads * 4}, 0.1f, 1)},
                .op =
                    [=](const Context& c, std::span<const Var> in) {
                      return attention(c, {.q = in[0], .k = in[0], .v = in[0], .heads = heads, .kv_heads = heads}).out;
                    },
                .roundings = roundings_of(n)};
  });
}

// Only the values are learned: q and k are constants, and so is the gate.
TEST(AttentionOp, ConstantsGetNoGradient) {
  check_op(20, [](Rng& rng) {
    const Sizes n = draw_sizes(rng);
    const Tensor q = draw(rng, {n.B, n.T, n.heads * n.D}, 0.1f, 1),
                 k = draw(rng, {n.B, n.S, n.kv_heads * n.D}, 0.1f, 1), gate = draw(rng, {n.heads});
    return Case{.what = "values alone",
                .inputs = {draw(rng, {n.B, n.S, n.kv_heads * n.Dv})},
                .op =
                    [=](const Context& c, std::span<const Var> in) {
                      const auto as = [&](const Tensor& t) { return t.converted(in[0].dtype()); };
                      return attention(c, {.q = as(q),
                                           .k = as(k),
                                           .v = in[0],
                                           .heads = n.heads,
                                           .kv_heads = n.kv_heads,
                                           .head_gate = as(gate)})
                          .out;
                    },
                .roundings = roundings_of(n)};
  });
}

// Equal scores: the mean of the values. The statistics are there for observers.
TEST(AttentionOp, OfEqualScoresIsTheMean) {
  Bench bench;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor v = Tensor::of({1, 2, 2}, std::vector<double>{1, 10, 3, 30}).converted(dtype);
    const AttentionResult result =
        attention(bench.context, {.q = Tensor::zeros({1, 1, 2}, dtype), .k = Tensor::zeros({1, 2, 2}, dtype), .v = v});
    EXPECT_EQ(result.out.value().to_doubles(), (std::vector<double>{2, 20}));
    EXPECT_EQ(result.stats.dtype(), dtype);
    // Two weights of 1/2: 2^(0 - stats[0]) / stats[1]
    const std::vector<double> stats = result.stats.to_doubles();
    EXPECT_DOUBLE_EQ(std::exp2(-stats[0]) / stats[1], 0.5);
  }
}

TEST(AttentionOp, ARowThatSeesNothingHasTheSum0) {
  Bench bench;
  const std::vector<int64_t> lengths{0, 2};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::full({2, 2, 2}, 1, dtype);
    const AttentionResult result =
        attention(bench.context, {.q = x, .k = x, .v = x, .options = {.mask = kernels::Lengths{lengths}}});
    const std::vector<double> stats = result.stats.to_doubles();
    EXPECT_EQ(stats[1], 0);
    EXPECT_EQ(stats[3], 0);
    EXPECT_GT(stats[5], 0);
  }
}

// Keys and values that are stored in 16 bits: as over the same numbers in f32.
TEST(AttentionOp, ReadsKeysAndValuesIn16Bits) {
  Bench bench;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (int round = 0; round < 20; ++round) {
      Rng rng(seeded(round + 1));
      const Sizes n = draw_sizes(rng);
      const Tensor q = draw(rng, {n.B, n.T, n.heads * n.D}, 0.1f, 1).converted(DType::f32),
                   k = draw(rng, {n.B, n.S, n.kv_heads * n.D}, 0.1f, 1).converted(dtype),
                   v = draw(rng, {n.B, n.S, n.kv_heads * n.Dv}).converted(dtype);
      AttentionArguments a{.q = q, .k = k, .v = v, .heads = n.heads, .kv_heads = n.kv_heads};
      const Tensor stored = attention(bench.without_tape, a).out.value();
      EXPECT_TRUE(same_bits(attention(bench.context, a).out.value(), stored));  // a tape, but nothing on it
      a.k = k.converted(DType::f32), a.v = v.converted(DType::f32);
      EXPECT_TRUE(same_bits(attention(bench.without_tape, a).out.value(), stored));
      for (Var* x : {&a.q, &a.k, &a.v}) *x = x->value().converted(DType::f64);
      const Case test{.what = name_of(dtype), .roundings = roundings_of(n)};
      expect_near("out", stored, attention(bench.without_tape, a).out.value(), test);
    }
  }
}

TEST(AttentionOp, SaysWhatIsWrong) {
  Bench bench;
  const Tensor x = Tensor::zeros({2, 3, 8});
  const auto error = [&](const AttentionArguments& a) { return error_of([&] { attention(bench.context, a); }); };
  EXPECT_EQ(error({.k = x, .v = x}), "attention: q is missing");
  EXPECT_EQ(error({.q = x, .v = x}), "attention: k is missing");
  EXPECT_EQ(error({.q = x, .k = x, .v = Tensor::zeros({3, 8})}),
            "attention: v has shape [3, 8], expected 3 dimensions: batch, tokens, width");
  EXPECT_EQ(error({.q = x, .k = x, .v = x, .heads = 3}), "attention: q has width 8, expected a multiple of 3 heads");
  EXPECT_EQ(error({.q = x, .k = x, .v = x, .heads = 0}), "attention: 0 heads came for q, expected at least 1");
  EXPECT_EQ(error({.q = x, .k = Tensor::zeros({2, 3, 8}, DType::f64), .v = x}), "attention: k is in f64, expected f32");
  EXPECT_EQ(error({.q = Tensor::zeros({2, 3, 8}, DType::i32), .k = x, .v = x}),
            "attention: q is in i32, expected f32 or f64");
  const Tensor stored = x.converted(DType::bf16);
  EXPECT_EQ(error({.q = stored, .k = stored, .v = stored}), "attention: q is in bf16, expected f32 or f64");
  EXPECT_EQ(error({.q = x, .k = stored, .v = x}), "attention: v is in f32, expected bf16");
  EXPECT_EQ(error({.q = x, .k = x, .v = stored}), "attention: v is in bf16, expected f32");
  EXPECT_EQ(error({.q = x.converted(DType::f64), .k = stored, .v = stored}), "attention: k is in bf16, expected f64");
  EXPECT_EQ(error({.q = bench.tape.leaf(x), .k = stored, .v = stored}),
            "attention: k is in bf16, expected f32: there are no gradients through keys and values in 16 bits");
  EXPECT_EQ(error({.q = x, .k = x, .v = x, .bias = Tensor::zeros({3, 3})}),
            "attention: bias has shape [3, 3], expected 4 dimensions");
  EXPECT_EQ(error({.q = x, .k = x, .v = x, .heads = 2, .kv_heads = 2, .head_gate = Tensor::zeros({1})}),
            "attention: head_gate has shape [1], expected [2]");
  EXPECT_EQ(error({.q = x, .k = x, .v = x, .heads = 2, .kv_heads = 2, .w = Tensor::zeros({2, 8})}),
            "attention: w has shape [2, 8], expected [2, 4]");
}

// Errors that only the kernel's plan, or its twin, finds have the same text in both.
TEST(AttentionOp, SaysWhatIsWrongInBothPrecisions) {
  Bench bench;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto zeros = [&](const Shape& shape) { return Tensor::zeros(shape, dtype); };
    const auto error = [&](const AttentionArguments& a) { return error_of([&] { attention(bench.context, a); }); };
    EXPECT_EQ(error({.q = zeros({2, 3, 8}), .k = zeros({1, 3, 8}), .v = zeros({2, 3, 8})}).substr(0, 50),
              "attention: k has shape [1, 1, 3, 8], expected [2, ");
    EXPECT_EQ(error({.q = zeros({2, 3, 8}), .k = zeros({2, 4, 8}), .v = zeros({2, 5, 8})}).substr(0, 50),
              "attention: v has shape [2, 1, 5, 8], expected [2, ");
    EXPECT_EQ(error({.q = zeros({2, 3, 8}), .k = zeros({2, 3, 8}), .v = zeros({2, 3, 8}), .heads = 2}).substr(0, 50),
              "attention: k has shape [2, 1, 3, 8], expected [2, ");
  }
}

}  // namespace
}  // namespace heed::ops
