// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "heed/autograd/testing.h"
#include "heed/base/testing.h"

namespace heed {
namespace {

using namespace autograd_testing;
using testing::error_of;
using Block = std::function<Var(const Context&, std::span<const Var>)>;

// Numbers whose sums depend on the order in which they are taken.
Tensor awkward(double first) { return vector({first / 3, -first / 7, 1e8 / first, 1e-9 * first}); }

struct Outcome {
  Tensor output;
  std::vector<Tensor> gradients;
};

// out = y x + y, y = f(x, w, x): x gets gradients before, in and after the block.
Outcome run(const Block& f, bool checkpointed, Tensor own = {}) {
  Bench bench;
  const Context& c = bench.context;
  const Var x = bench.tape.leaf(awkward(1.1)), w = bench.tape.leaf(awkward(2.3), std::move(own));
  const Var before = multiply(c, x, x);
  const std::array inputs{before, w, before, Var(awkward(0.9))};
  const Var y = checkpointed ? checkpoint(c, f, inputs) : f(c, inputs);
  const Var out = total(c, plus(c, multiply(c, y, before), y));
  bench.tape.backward(out, c);
  return {out.value(), {bench.tape.gradient(x), bench.tape.gradient(w)}};
}

void expect_same(const Outcome& plain, const Outcome& checkpointed) {
  EXPECT_TRUE(same_bits(plain.output, checkpointed.output));
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    ASSERT_TRUE(plain.gradients[i]);
    EXPECT_TRUE(same_bits(plain.gradients[i], checkpointed.gradients[i])) << "input " << i;
  }
}

Var block(const Context& c, std::span<const Var> in) {
  const Var a = multiply(c, plus(c, in[0], in[3]), in[1]);
  return plus(c, multiply(c, a, in[2]), plus(c, in[0], in[1]));
}

TEST(Checkpoint, GivesTheBitsOfThePlainRun) { expect_same(run(block, false), run(block, true)); }

TEST(Checkpoint, AddsToTheGradientThatALeafBrings) {
  const Tensor plain = awkward(5), checkpointed = awkward(5);
  expect_same(run(block, false, plain), run(block, true, checkpointed));
  EXPECT_TRUE(same_bits(plain, checkpointed));
}

TEST(Checkpoint, ServesInsideACheckpoint) {
  const Block nested = [](const Context& c, std::span<const Var> in) { return checkpoint(c, block, in); };
  expect_same(run(block, false), run(nested, true));
}

// A negative zero that is passed on stays one.
TEST(Checkpoint, KeepsTheSignOfZero) {
  const auto gradient = [](bool checkpointed) {
    Bench bench;
    const Var x = bench.tape.leaf(vector({1}));
    const Block same = [](const Context& c, std::span<const Var> in) { return plus(c, in[0], vector({1})); };
    const Var y = checkpointed ? checkpoint(bench.context, same, std::array{x}) : same(bench.context, std::array{x});
    bench.tape.backward(y, bench.context, vector({-0.0}));
    return bench.tape.gradient(x);
  };
  EXPECT_TRUE(same_bits(gradient(false), gradient(true)));
}

// Parameters of the block itself: leaves of whatever tape it is given, also where no input is tracked.
TEST(Checkpoint, LeavesOfTheBlockGetTheirGradients) {
  const Tensor weight = awkward(1.7);
  const auto gradient = [&](bool checkpointed) {
    const Tensor into = awkward(3);
    const Block f = [&](const Context& c, std::span<const Var> in) {
      const Var w = c.tape ? c.tape->leaf(weight, into) : Var(weight);
      return multiply(c, multiply(c, in[0], w), w);
    };
    Bench bench;
    const std::array inputs{Var(awkward(1.3))};
    const Var y = checkpointed ? checkpoint(bench.context, f, inputs) : f(bench.context, inputs);
    bench.tape.backward(total(bench.context, y), bench.context);
    return into;
  };
  EXPECT_TRUE(same_bits(gradient(false), gradient(true)));
}

TEST(Checkpoint, RunsAgainOnlyOnTheWayBackAndKeepsNothing) {
  int runs = 0;
  const Block f = [&](const Context& c, std::span<const Var> in) {
    ++runs;
    Var y = in[0];
    for (int i = 0; i < 10; ++i) y = multiply(c, y, in[0]);
    return y;
  };
  Bench bench;
  const Var x = bench.tape.leaf(vector({1}));
  const Var y = checkpoint(bench.context, f, std::array{x});
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(bench.tape.records(), 1u);
  bench.tape.backward(y, bench.context);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(bench.tape.gradient(x).item(), 11);
}

TEST(Checkpoint, WithoutATapeIsThePlainRun) {
  int runs = 0;
  const Block f = [&](const Context& c, std::span<const Var> in) {
    ++runs;
    return multiply(c, in[0], in[0]);
  };
  Bench bench;
  const Var y = checkpoint(bench.without_tape, f, std::array{Var(vector({3}))});
  EXPECT_FALSE(y.tracked());
  EXPECT_EQ(y.value().item(), 9);
  EXPECT_EQ(runs, 1);
}

TEST(Checkpoint, ABlockThatDependsOnNothingSendsNothing) {
  const Block f = [](const Context&, std::span<const Var>) { return Var(vector({4})); };
  Bench bench;
  const Var x = bench.tape.leaf(vector({1}));
  bench.tape.backward(checkpoint(bench.context, f, std::array{x}), bench.context);
  EXPECT_FALSE(bench.tape.gradient(x));
}

TEST(Checkpoint, RejectsATrackedValueThatWasCaptured) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({1})), captured = bench.tape.leaf(vector({2}));
  const Block f = [&](const Context& c, std::span<const Var> in) { return multiply(c, in[0], captured); };
  const Var y = checkpoint(bench.context, f, std::array{x});
  EXPECT_EQ(error_of([&] { bench.tape.backward(y, bench.context); }),
            "tape: an input, of shape [1], belongs to another tape, or to this one before it was cleared");
}

}  // namespace
}  // namespace heed
