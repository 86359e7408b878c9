// SPDX-License-Identifier: Apache-2.0
// A training step allocates nothing once its shapes have been seen, and gives the same bits for any number of threads
// and with gradient checkpointing. Every op takes part.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "heed/autograd/checkpoint.h"
#include "heed/autograd/gradcheck.h"
#include "heed/autograd/parameter.h"
#include "heed/autograd/testing.h"
#include "heed/base/counted_heap.h"
#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/ops/attention.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/embedding.h"
#include "heed/ops/linear.h"
#include "heed/ops/norm.h"
#include "heed/ops/softmax.h"

namespace heed::ops {
namespace {

using autograd_testing::Bench;
using autograd_testing::same_bits;
using heed::testing::seeded;

constexpr int64_t kWords = 11, kTokens = 9, kBatch = 3, kWidth = 16, kHeads = 4, kHeadWidth = kWidth / kHeads;
const kernels::ElementDropout kDropout{.rate = 0.2f, .seed = seeded(3), .stream = 1};

// One block of a decoder with everything on, and a head of its own for the words.
struct Model {
  Parameter table, positions, norm_weight, norm_bias, qkv, bias, gate, w, out, out_bias, rms, up, up_bias, down, top;

  void visit(auto&& each) {
    each("table", table), each("positions", positions), each("norm_weight", norm_weight);
    each("norm_bias", norm_bias), each("qkv", qkv), each("bias", bias), each("gate", gate), each("w", w);
    each("out", out), each("out_bias", out_bias), each("rms", rms), each("up", up), each("up_bias", up_bias);
    each("down", down), each("top", top);
  }

  explicit Model(uint64_t seed) {
    Rng rng(seeded(seed));
    const auto make = [&](Parameter& p, const Shape& shape) {
      p.value = Tensor::uninitialised(shape);
      for (float& x : p.value.span<float>()) x = 0.3f * rng.normal();
    };
    make(table, {kWords, kWidth}), make(positions, {kTokens, kWidth}), make(norm_weight, {kWidth});
    make(norm_bias, {kWidth}), make(qkv, {3 * kWidth, kWidth}), make(bias, {1, kHeads, kTokens, kTokens});
    make(gate, {kHeads}), make(w, {kHeads, kHeadWidth}), make(out, {kWidth, kWidth}), make(out_bias, {kWidth});
    make(rms, {kWidth}), make(up, {4 * kWidth, kWidth}), make(up_bias, {4 * kWidth});
    make(down, {kWidth, 4 * kWidth}), make(top, {kWords, 2 * kWidth});
  }
};

Var use(const Context& c, const Parameter& p) { return c.tape ? c.tape->leaf(p.value, p.gradient) : Var(p.value); }

Var feed_forward(const Context& c, const Model& m, const Var& x) {
  const Var inner = linear(c, rms_norm(c, x, use(c, m.rms)), use(c, m.up), use(c, m.up_bias), Activation::gelu);
  return residual_dropout(c, x, linear(c, inner, use(c, m.down)), kDropout);
}

struct Step {
  const Model& model;
  Tensor ids, targets;
  RotaryTables rotary_tables;
  bool additive = false, checkpointed = false;

  Var attend(const Context& c, const Var& x) const {
    const Var normed = layer_norm(c, x, use(c, model.norm_weight), use(c, model.norm_bias));
    const Var all = linear(c, normed, use(c, model.qkv));
    const RotaryOptions options{.heads = kHeads};
    const Var mixed = attention(c, {.q = rotary(c, columns(c, all, 0, kWidth), rotary_tables, options),
                                    .k = rotary(c, columns(c, all, kWidth, kWidth), rotary_tables, options),
                                    .v = columns(c, all, 2 * kWidth, kWidth),
                                    .heads = kHeads,
                                    .kv_heads = kHeads,
                                    .bias = use(c, model.bias),
                                    .head_gate = use(c, model.gate),
                                    .w = additive ? use(c, model.w) : Var(),
                                    .options = {.softcap = 5, .dropout = {.rate = 0.1f, .seed = seeded(4)}}})
                          .out;
    return residual_dropout(c, x, linear(c, mixed, use(c, model.out), use(c, model.out_bias)), kDropout);
  }

  Var loss(const Context& c) const {
    const Var table = use(c, model.table);
    const Var x = dropout(c, add_row(c, embedding(c, table, ids, 4), use(c, model.positions)), kDropout);
    const Var y = attend(c, x);
    const auto block = [&](const Context& inner, std::span<const Var> in) { return feed_forward(inner, model, in[0]); };
    const Var z = checkpointed ? checkpoint(c, block, std::array{y}) : block(c, std::array{y});
    const Var both = concat(c, std::array{z, softmax(c, scale(c, add(c, x, z), 0.5))});
    const Var logits = linear(c, reshape(c, both, {kBatch * kTokens, 2 * kWidth}), use(c, model.top));
    const Var kept = rows(c, log_softmax(c, activation(c, logits, Activation::tanh)), 0, kBatch * kTokens);
    return add(c, cross_entropy(c, kept, targets, {.smoothing = 0.1}).loss, scale(c, sum(c, z), 1e-3));
  }

  double operator()(Bench& bench) const {
    bench.tape.clear();
    const Var value = loss(bench.context);
    bench.tape.backward(value, bench.context);
    return value.value().item();
  }
};

Step make_step(const Model& model, DType dtype = DType::f32) {
  Rng rng(seeded(8));
  std::vector<int32_t> words(kBatch * kTokens);
  for (int32_t& word : words) word = static_cast<int32_t>(rng.below(kWords));
  return {.model = model,
          .ids = Tensor::of({kBatch, kTokens}, words),
          .targets = Tensor::of({kBatch * kTokens}, words),
          .rotary_tables = RotaryTables::make(kTokens, kHeadWidth, 10000, dtype)};
}

TEST(TrainingStep, AllocatesNothingAfterTheFirst) {
  Model model(1);
  const ParameterStore store(model);
  Step step = make_step(model);
  constexpr int kRounds = 3;
  for (const bool additive : {false, true}) {
    for (const bool checkpointed : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "additive " << additive << ", checkpointed " << checkpointed);
      Bench bench(2);
      step.additive = additive, step.checkpointed = checkpointed;
      const double first = step(bench);
      const int64_t heap = counted_heap::allocations(), fresh = allocator_stats().fresh;
      double again = 0;
      for (int round = 0; round < kRounds; ++round) again = step(bench);
      EXPECT_EQ(counted_heap::allocations() - heap, 0);
      EXPECT_EQ(allocator_stats().fresh - fresh, 0);
      EXPECT_EQ(again, first);
    }
  }
}

// Inference, too.
TEST(TrainingStep, WithoutATapeNothingIsAllocatedEither) {
  Model model(1);
  const Step step = make_step(model);
  Bench bench;
  const Var x = Tensor::full({kBatch, kTokens, kWidth}, 0.5);
  const auto forward = [&] { return feed_forward(bench.without_tape, model, step.attend(bench.without_tape, x)); };
  EXPECT_FALSE(forward().tracked());
  const int64_t heap = counted_heap::allocations();
  forward();
  EXPECT_EQ(counted_heap::allocations() - heap, 0);
}

Tensor gradients_of(bool checkpointed, int threads) {
  Model model(1);
  const ParameterStore store(model);
  Step step = make_step(model);
  step.checkpointed = checkpointed;
  Bench bench(threads);
  for (int round = 0; round < 2; ++round) step(bench);
  return store.gradients().clone();
}

TEST(TrainingStep, GivesTheSameBitsForAnyThreadsAndWithACheckpoint) {
  const Tensor expected = gradients_of(false, 1);
  for (const int threads : {1, 2, 3, 5}) {
    EXPECT_TRUE(same_bits(gradients_of(false, threads), expected)) << threads << " threads";
    EXPECT_TRUE(same_bits(gradients_of(true, threads), expected)) << threads << " threads, checkpointed";
  }
}

// Every op at once, in double: each parameter moved as a whole, and some elements of each.
TEST(TrainingStep, GradientsAreRightInDouble) {
  for (const bool additive : {false, true}) {
    Model model(1);
    if (!additive) model.w = {};
    const ParameterStore store(model, DType::f64);
    Step step = make_step(model, DType::f64);
    step.additive = additive;
    const auto loss = [&](Context& c) { return step.loss(c); };
    for (const GradcheckOptions& options : {GradcheckOptions{.directions = 3}, GradcheckOptions{.samples = 4}}) {
      const GradcheckResult result = gradcheck(loss, store, options);
      EXPECT_LE(result.error, 1e-7) << result.where;
    }
    for (const auto& entry : store.entries()) {
      double largest = 0;
      for (double g : entry.gradient.to_doubles()) largest = std::max(largest, std::abs(g));
      EXPECT_GT(largest, 0) << entry.name;
    }
  }
}

}  // namespace
}  // namespace heed::ops
