// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/tape.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "heed/autograd/testing.h"
#include "heed/base/testing.h"

namespace heed {
namespace {

using namespace autograd_testing;
using testing::error_of;
using Numbers = std::vector<double>;

// loss = sum((a b) + a), a = (1, 2), b = (3, 5): d/da = b + 1, d/db = a.
TEST(Tape, GoesBackThroughASmallGraph) {
  Bench bench;
  const Var a = bench.tape.leaf(vector({1, 2})), b = bench.tape.leaf(vector({3, 5}));
  const Var loss = total(bench.context, plus(bench.context, multiply(bench.context, a, b), a));
  EXPECT_EQ(loss.value().item(), 1 * 3 + 2 * 5 + 1 + 2);
  EXPECT_EQ(bench.tape.records(), 3u);
  bench.tape.backward(loss, bench.context);
  EXPECT_EQ(bench.tape.gradient(a).to_doubles(), (Numbers{4, 6}));
  EXPECT_EQ(bench.tape.gradient(b).to_doubles(), (Numbers{1, 2}));
  EXPECT_EQ(bench.tape.records(), 0u);
}

// y = x x, z = y y = x^4; and x x x x with every factor the same value: dz = 4 x^3.
TEST(Tape, AddsUpTheUsesOfAValue) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({3}));
  const Var y = multiply(bench.context, x, x);
  bench.tape.backward(multiply(bench.context, y, y), bench.context);
  EXPECT_EQ(bench.tape.gradient(x).item(), 4 * 27);
}

// Kernels may write the gradients of all inputs at once.
TEST(Tape, InputsThatAreOneValueHaveGradientsApart) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({3}));
  const std::array inputs{x, x, x};
  const Var y = bench.tape.record(std::span<const Var>(inputs), vector({1}), [](const Backward& backward) {
    EXPECT_NE(backward.to(0).raw(), backward.to(1).raw());
    EXPECT_NE(backward.to(1).raw(), backward.to(2).raw());
    EXPECT_EQ(backward.to(2).raw(), backward.to(2).raw());
    for (size_t i = 0; i < 3; ++i) add_scaled(backward.to(i), backward.of(0), static_cast<double>(i + 1));
  });
  bench.tape.backward(y, bench.context, vector({10}));
  EXPECT_EQ(bench.tape.gradient(x).item(), 60);
}

// Passing gradients on without a copy must not make two values share one.
TEST(Tape, ASumOfAValueWithItselfCountsTwice) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({3, 4})), w = bench.tape.leaf(vector({1, 1}));
  const Var twice = plus(bench.context, x, x), y = plus(bench.context, twice, w);
  bench.tape.backward(total(bench.context, plus(bench.context, y, multiply(bench.context, x, w))), bench.context);
  EXPECT_EQ(bench.tape.gradient(x).to_doubles(), (Numbers{3, 3}));  // 2 + w
  EXPECT_EQ(bench.tape.gradient(w).to_doubles(), (Numbers{4, 5}));  // 1 + x
}

// x -> x^2, x^3 and 2 x in one record.
std::array<Var, 3> powers(const Context& context, const Var& x, std::vector<std::array<bool, 3>>* seen) {
  const Tensor square = Tensor::zeros_like(x.value()), cube = Tensor::zeros_like(x.value());
  add_product(square, x.value(), x.value());
  add_product(cube, square, x.value());
  const Tensor twice = x.value().clone();
  add_scaled(twice, x.value(), 1);
  return context.tape->record(std::span(&x, 1), std::array{square, cube, twice},
                              [from = x.value(), square, seen](const Backward& backward) {
                                std::array<bool, 3> there;
                                for (size_t i = 0; i < 3; ++i) there[i] = static_cast<bool>(backward.of(i));
                                seen->push_back(there);
                                if (there[0]) {
                                  add_product(backward.to(0), backward.of(0), from);
                                  add_product(backward.to(0), backward.of(0), from);
                                }
                                for (int n = 0; there[1] && n < 3; ++n) {
                                  add_product(backward.to(0), backward.of(1), square);
                                }
                                if (there[2]) add_scaled(backward.to(0), backward.of(2), 2);
                              });
}

TEST(Tape, AnOpHasSeveralOutputsAndSomeAreNotUsed) {
  Bench bench;
  std::vector<std::array<bool, 3>> seen;
  const Var x = bench.tape.leaf(vector({5}));
  const auto [square, cube, twice] = powers(bench.context, x, &seen);
  EXPECT_EQ(cube.value().item(), 125);
  bench.tape.backward(plus(bench.context, cube, twice), bench.context);
  EXPECT_EQ(bench.tape.gradient(x).item(), 3 * 25 + 2);
  EXPECT_EQ(seen, (std::vector<std::array<bool, 3>>{{false, true, true}}));
}

TEST(Tape, ARecordThatNothingReachesIsNotCalled) {
  Bench bench;
  std::vector<std::array<bool, 3>> seen;
  const Var x = bench.tape.leaf(vector({5}));
  const Var y = multiply(bench.context, x, x);
  powers(bench.context, y, &seen);
  bench.tape.backward(y, bench.context);
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(bench.tape.gradient(x).item(), 10);
}

TEST(Tape, ALeafThatNothingReachesHasNoGradient) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({5})), other = bench.tape.leaf(vector({5}));
  bench.tape.backward(multiply(bench.context, x, x), bench.context);
  EXPECT_FALSE(bench.tape.gradient(other));
  EXPECT_FALSE(bench.tape.gradient(Var(vector({1}))));
}

TEST(Tape, ConstantsGetNothing) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2, 3})), c = vector({10, 20});
  bool wanted = true;
  const std::array inputs{x, c};
  const Var y = bench.tape.record(std::span<const Var>(inputs), vector({20, 60}), [&wanted](const Backward& backward) {
    wanted = backward.wants(1) || backward.to(1) || backward.so_far(1) || backward.same(1, 1);
    backward.pass_on(1, backward.of(0));
    backward.pass_on(0, backward.of(0));
  });
  bench.tape.backward(total(bench.context, y), bench.context);
  EXPECT_FALSE(wanted);
  EXPECT_EQ(bench.tape.gradient(x).to_doubles(), (Numbers{1, 1}));
}

TEST(Tape, AddsToTheGradientThatALeafBrings) {
  Bench bench;
  const Tensor weight = vector({2}), gradient = vector({100});
  const Var w = bench.tape.leaf(weight, gradient);
  bench.tape.backward(multiply(bench.context, w, w), bench.context);
  EXPECT_EQ(gradient.item(), 104);
  EXPECT_EQ(bench.tape.gradient(w).raw(), gradient.raw());
}

// The gradient over micro-batches is that of their sum; with and without clear() in between.
TEST(Tape, AccumulatesOverMicroBatches) {
  const Tensor weight = vector({2, -3}), together = vector({0, 0}), apart = vector({0, 0}), again = vector({0, 0});
  const std::array batches{vector({1, 4}), vector({8, 16})};
  const auto loss = [](const Context& c, const Var& w, const Tensor& x) {
    return total(c, multiply(c, multiply(c, w, w), Var(x)));
  };
  Bench bench;
  const Var w = bench.tape.leaf(weight, together);
  bench.tape.backward(plus(bench.context, loss(bench.context, w, batches[0]), loss(bench.context, w, batches[1])),
                      bench.context);
  for (const Tensor& x : batches) {
    bench.tape.clear();
    bench.tape.backward(loss(bench.context, bench.tape.leaf(weight, apart), x), bench.context);
  }
  bench.tape.clear();
  const Var kept = bench.tape.leaf(weight, again);
  for (const Tensor& x : batches) bench.tape.backward(loss(bench.context, kept, x), bench.context);
  EXPECT_EQ(together.to_doubles(), (Numbers{2 * 2 * 9, 2 * -3 * 20}));
  EXPECT_EQ(apart.to_doubles(), together.to_doubles());
  EXPECT_EQ(again.to_doubles(), together.to_doubles());
}

TEST(Tape, WithoutOneEverythingIsAConstant) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2}));
  EXPECT_TRUE(x.tracked());
  EXPECT_FALSE(multiply(bench.without_tape, x, x).tracked());
  const Var c = vector({3});
  EXPECT_FALSE(multiply(bench.context, c, c).tracked());
  EXPECT_EQ(bench.tape.records(), 0u);
}

TEST(Tape, BeginsWithAGivenGradient) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2, 3}));
  const Tensor seed = vector({10, 100});
  bench.tape.backward(multiply(bench.context, x, x), bench.context, seed);
  EXPECT_EQ(bench.tape.gradient(x).to_doubles(), (Numbers{40, 600}));
  EXPECT_EQ(seed.to_doubles(), (Numbers{10, 100}));
}

TEST(Tape, BackwardFromALeafIsItsOwnGradient) {
  Bench bench;
  const Tensor gradient = vector({1});
  bench.tape.backward(bench.tape.leaf(vector({2}), gradient), bench.context);
  EXPECT_EQ(gradient.item(), 2);
}

// What a record holds, and the gradients of its outputs, live until it has been used and not longer.
TEST(Tape, FreesAsItGoes) {
  Bench bench;
  std::vector<std::weak_ptr<int>> held;
  std::vector<size_t> alive;
  Var x = bench.tape.leaf(vector({1}));
  for (int i = 0; i < 5; ++i) {
    const auto resource = std::make_shared<int>(i);
    held.push_back(resource);
    x = bench.tape.record(std::span<const Var>(&x, 1), vector({1}),
                          [resource, &held, &alive](const Backward& backward) {
                            alive.push_back(0);
                            for (const auto& each : held) alive.back() += !each.expired();
                            backward.pass_on(0, backward.of(0));
                          });
  }
  bench.tape.backward(x, bench.context);
  EXPECT_EQ(alive, (std::vector<size_t>{5, 4, 3, 2, 1}));
  EXPECT_TRUE(held[0].expired());
  EXPECT_FALSE(bench.tape.gradient(x));
}

TEST(Tape, ClearingFreesEverything) {
  Bench bench;
  const auto resource = std::make_shared<int>(1);
  const Var x = bench.tape.leaf(vector({1}));
  bench.tape.record(std::span(&x, 1), vector({1}), [resource](const Backward&) {});
  EXPECT_EQ(resource.use_count(), 2);
  bench.tape.clear();
  EXPECT_EQ(resource.use_count(), 1);
  EXPECT_EQ(bench.tape.records(), 0u);
  {
    Tape tape;
    tape.record({}, vector({1}), [resource](const Backward&) {});
  }
  EXPECT_EQ(resource.use_count(), 1);
}

// One gradient is passed on along a chain of sums, and not copied.
TEST(Tape, HandsTheOnlyGradientOn) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({1, 2}));
  std::vector<std::byte*> places;
  Var y = x;
  for (int i = 0; i < 4; ++i) {
    y = bench.tape.record(std::span<const Var>(&y, 1), y.value().reshaped({2}), [&places](const Backward& backward) {
      places.push_back(backward.of(0).raw());
      backward.pass_on(0, backward.of(0));
    });
  }
  bench.tape.backward(total(bench.context, y), bench.context);
  for (std::byte* place : places) EXPECT_EQ(place, bench.tape.gradient(x).raw());
}

TEST(Tape, ALongChainGoesBack) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({1}));
  const Var one = vector({1});
  Var y = x;
  for (int i = 0; i < 100000; ++i) y = i % 2 ? multiply(bench.context, y, one) : plus(bench.context, y, one);
  EXPECT_EQ(bench.tape.records(), 100000u);
  bench.tape.backward(y, bench.context);
  EXPECT_EQ(bench.tape.gradient(x).item(), 1);
  EXPECT_EQ(y.value().item(), 50001);
}

TEST(Tape, ALongChainIsThrownAway) {
  Bench bench;
  Var y = bench.tape.leaf(vector({1}));
  for (int i = 0; i < 100000; ++i) y = plus(bench.context, y, y);
  bench.tape.clear();
  EXPECT_EQ(bench.tape.records(), 0u);
}

TEST(Tape, SaysWhatIsWrong) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2, 3}));
  const auto backward = [&](const Var& from, const Tensor& seed = {}) {
    return error_of([&] { bench.tape.backward(from, bench.context, seed); });
  };
  EXPECT_EQ(backward(vector({1})), "tape: backward from a constant, expected a value that depends on a leaf");
  EXPECT_EQ(backward(x), "tape: backward from shape [2] without a gradient of its own, expected a single number");
  EXPECT_EQ(backward(x, vector({1})), "tape: the gradient to begin with has shape [1] in f64, expected [2] in f64");
  EXPECT_EQ(backward(x, Tensor::zeros({2})),
            "tape: the gradient to begin with has shape [2] in f32, expected [2] in f64");
  EXPECT_EQ(error_of([&] {
              bench.tape.leaf(vector({1}), vector({1, 2}));
            }),
            "tape: the gradient of a leaf has shape [2] in f64, expected [1] in f64");
  EXPECT_EQ(error_of([&] { bench.tape.leaf({}); }), "tape: an empty tensor came as a leaf, expected a value");
  const Var y = bench.tape.record(std::span(&x, 1), vector({1}), [](const Backward& b) { b.pass_on(0, b.of(0)); });
  EXPECT_EQ(backward(y), "tape: a gradient of shape [1] in f64 was passed on to input 0, expected [2] in f64");
}

TEST(Tape, RejectsValuesThatAreNotItsOwn) {
  Bench bench, other;
  const Var x = bench.tape.leaf(vector({2})), stranger = other.tape.leaf(vector({2}));
  const std::string expected =
      "tape: an input, of shape [1], belongs to another tape, or to this one before it was cleared";
  EXPECT_EQ(error_of([&] { multiply(bench.context, x, stranger); }), expected);
  EXPECT_EQ(bench.tape.records(), 0u);
  EXPECT_NE(error_of([&] { bench.tape.backward(stranger, bench.context); }), "no error");
  bench.tape.clear();
  EXPECT_EQ(error_of([&] { multiply(bench.context, x, x); }), expected);
  EXPECT_EQ(error_of([&] { bench.tape.gradient(x); }),
            "tape: the gradient of a value of another tape was asked for, or of this one before it was cleared");
}

TEST(Tape, RejectsValuesWhoseRecordsAreUsedUp) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2})), y = multiply(bench.context, x, x);
  bench.tape.backward(y, bench.context);
  EXPECT_EQ(
      error_of([&] { multiply(bench.context, x, y); }),
      "tape: an input, of shape [1], was computed before the last backward pass, expected a leaf or something new");
  EXPECT_EQ(
      error_of([&] { bench.tape.backward(y, bench.context); }),
      "tape: what backward begins from, of shape [1], was computed before the last backward pass, expected a leaf or "
      "something new");
  EXPECT_EQ(bench.tape.gradient(x).item(), 4);
}

// An op that throws leaves a tape that can be cleared and used again.
TEST(Tape, SurvivesAnOpThatThrows) {
  Bench bench;
  const Var x = bench.tape.leaf(vector({2}));
  const Var y =
      bench.tape.record(std::span(&x, 1), vector({1}), [](const Backward&) { throw std::runtime_error("mine"); });
  EXPECT_THROW(bench.tape.backward(y, bench.context), std::runtime_error);
  bench.tape.clear();
  const Var again = bench.tape.leaf(vector({3}));
  bench.tape.backward(multiply(bench.context, again, again), bench.context);
  EXPECT_EQ(bench.tape.gradient(again).item(), 6);
}

}  // namespace
}  // namespace heed
