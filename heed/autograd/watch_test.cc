// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/watch.h"

#include <gtest/gtest.h>

#include <array>

namespace heed {
namespace {

// A sum of two values, as an op.
Var add(const Context& context, const Var& a, const Var& b) {
  const Tensor sum =
      Tensor::of(a.shape(), std::array{a.value().span<const float>()[0] + b.value().span<const float>()[0]});
  return record(context, {a, b}, sum, [](const Backward& backward) {
    backward.pass_on(0, backward.of(0));
    backward.pass_on(1, backward.of(0));
  });
}

// What came, and how many ops were done before.
struct Seen final : BackwardWatcher {
  void whole(const Tensor& gradient) override {
    came.emplace_back(gradient.raw(), ops, gradient.span<const float>()[0]);
  }
  void op_done() override { ++ops; }
  int ops = 0;
  std::vector<std::tuple<const void*, int, float>> came;
};

TEST(WatchBackward, TellsOfEachGradientOnceNothingIsAddedToIt) {
  Parallel parallel(1);
  Workspace workspace;
  Tape tape;
  const Context context{parallel, workspace, &tape};
  const Tensor one = Tensor::full({1}, 1), a = Tensor::zeros({1}), b = Tensor::zeros({1}), c = Tensor::zeros({1});
  Seen seen;
  const WatchBackward watching(tape, seen);
  for (int pass = 1; pass <= 2; ++pass) {
    const Var first = tape.leaf(one, a), second = tape.leaf(one, b);
    Var sum = add(context, first, second);
    sum = add(context, sum, tape.leaf(one, c));
    sum = add(context, sum, tape.leaf(one, b));  // the same parameter again
    tape.backward(sum, context);
    // The second op is done after the third: c is whole; b is added to by the first op, too.
    const auto n = static_cast<float>(pass);
    const std::vector<std::tuple<const void*, int, float>> expected{
        {c.raw(), 1, n}, {b.raw(), 2, 2 * n}, {a.raw(), 2, n}};
    EXPECT_EQ(seen.came, expected) << "pass " << pass;
    EXPECT_EQ(seen.ops, 3);
    seen.ops = 0, seen.came.clear();
    tape.clear();
  }
}

TEST(WatchBackward, EndsWithItsScope) {
  Parallel parallel(1);
  Workspace workspace;
  Tape tape, other;
  const Context context{parallel, workspace, &tape}, others{parallel, workspace, &other};
  const Tensor one = Tensor::full({1}, 1), gradient = Tensor::zeros({1});
  Seen seen;
  {
    const WatchBackward watching(tape, seen);
    other.backward(add(others, other.leaf(one, gradient), other.leaf(one, gradient)), others);
  }
  tape.backward(add(context, tape.leaf(one, gradient), tape.leaf(one, gradient)), context);
  EXPECT_EQ(seen.ops, 0);
}

}  // namespace
}  // namespace heed
