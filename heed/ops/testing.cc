// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/testing.h"

#include <algorithm>
#include <cmath>

#include "heed/base/testing.h"

namespace heed::ops_testing {
namespace {

using heed::testing::seeded;

struct Outcome {
  Tensor output;
  std::vector<Tensor> gradients;
};

Outcome run(const Case& test, DType dtype, int threads) {
  Bench bench(threads);
  std::vector<Var> leaves;
  for (const Tensor& input : test.inputs) leaves.push_back(bench.tape.leaf(input.converted(dtype)));
  const Var output = test.op(bench.context, leaves);
  Rng rng(seeded(5));
  bench.tape.backward(output, bench.context, draw(rng, output.shape(), 0.5f, 1.5f).converted(dtype));
  Outcome outcome{output.value(), {}};
  for (const Var& leaf : leaves) outcome.gradients.push_back(bench.tape.gradient(leaf));
  return outcome;
}

void expect_right_gradients(const Case& test) {
  std::vector<Tensor> inputs;
  int64_t size = 1;
  for (const Tensor& input : test.inputs) {
    inputs.push_back(input.clone());
    size = std::max(size, input.size());
  }
  const GradcheckResult result = gradcheck(test.op, inputs, {.seed = seeded(1), .directions = size > 200 ? 3 : 0});
  EXPECT_LE(result.error, 1e-7) << result.where;
}

void expect_single_near_double(const Case& test) {
  const Outcome single = run(test, DType::f32, 1), twin = run(test, DType::f64, 1);
  expect_near("output", single.output, twin.output, test);
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    expect_near(line("gradient of input ", i), single.gradients[i], twin.gradients[i], test);
  }
}

void expect_same_for_any_threads(const Case& test) {
  const Outcome alone = run(test, DType::f32, 1);
  for (const int threads : {2, 3, 5}) {
    const Outcome together = run(test, DType::f32, threads);
    EXPECT_TRUE(same_bits(alone.output, together.output)) << threads << " threads, output";
    for (size_t i = 0; i < test.inputs.size(); ++i) {
      EXPECT_TRUE(same_bits(alone.gradients[i], together.gradients[i])) << threads << " threads, input " << i;
    }
  }
}

std::string describe(int draw, const Case& test) {
  std::string text = line("draw ", draw, ": ", test.what);
  for (const Tensor& input : test.inputs) text += line(" ", to_string(input.shape()));
  return text;
}

}  // namespace

Tensor draw(Rng& rng, const Shape& shape, float low, float high) {
  const Tensor t = Tensor::uninitialised(shape, DType::f64);
  for (double& x : t.span<double>()) {
    const float size = rng.uniform(low, high);
    x = static_cast<double>(rng.below(2) ? size : -size);
  }
  return t;
}

Shape draw_shape(Rng& rng, int64_t width) {
  const int64_t rank = between(rng, 1, 4);
  std::vector<int64_t> extents;
  for (int64_t i = 1; i < rank; ++i) extents.push_back(between(rng, 1, 4));
  if (rank > 1 && rng.below(8) == 0) extents[0] = between(rng, 60, 300);
  extents.push_back(width);
  return Shape(std::span<const int64_t>(extents));
}

int64_t draw_width(Rng& rng) { return rng.below(8) == 0 ? between(rng, 60, 150) : between(rng, 1, 20); }

int64_t between(Rng& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
}

void expect_near(const std::string& name, const Tensor& single, const Tensor& twin, const Case& test) {
  ASSERT_EQ(static_cast<bool>(single), static_cast<bool>(twin)) << name;
  ASSERT_EQ(single.shape(), twin.shape()) << name;
  const auto got = single.to_doubles(), want = twin.to_doubles();
  double largest = test.size;
  for (double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], test.roundings * kUnit * largest) << name << ", element " << i;
  }
}

void check_op(int count, const std::function<Case(Rng&)>& draw_case) {
  for (int i = 0; i < count; ++i) {
    Rng rng(seeded(1), static_cast<uint64_t>(i));
    const Case test = draw_case(rng);
    SCOPED_TRACE(describe(i, test));
    expect_right_gradients(test);
    expect_single_near_double(test);
    expect_same_for_any_threads(test);
    if (::testing::Test::HasFailure()) return;
  }
}

void expect_nothing_of_nothing(const Op& op, const std::vector<Tensor>& inputs) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_EQ(run({.what = "nothing", .inputs = inputs, .op = op}, dtype, 2).output.size(), 0);
  }
}

}  // namespace heed::ops_testing
