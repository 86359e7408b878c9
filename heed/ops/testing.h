// SPDX-License-Identifier: Apache-2.0
#pragma once
// How every op is tested, on random numbers: its gradients in f64 against central differences, f32 against f64, and the
// bits of f32 for several numbers of threads.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/testing.h"
#include "heed/base/rng.h"
#include "heed/base/testing.h"

namespace heed::ops_testing {

using autograd_testing::Bench;
using autograd_testing::same_bits;
using testing::error_of;
using Op = std::function<Var(const Context&, std::span<const Var>)>;

constexpr double kUnit = std::numeric_limits<float>::epsilon() / 2;

struct Case {
  std::string what{};
  std::vector<Tensor> inputs{};  // in f64, each number one of f32; all have gradients
  Op op{};
  // The most roundings, one after the other, that a number has gone through in f32. They are independent, so that r of
  // them are about sqrt(r) units of what they round; and that is about as large as the largest result, as signs are
  // random. r units of the largest result are sqrt(r) times as much as is to be expected.
  double roundings = 0;
  double size = 1;  // of terms, where they may be larger than the largest result: they cancel
};

// Numbers of both signs away from zero, where relu has its kink; each one of f32.
Tensor draw(Rng& rng, const Shape& shape, float low = 0.25f, float high = 2);
// Of one to four dimensions, mostly small; sometimes with enough rows for several tasks.
Shape draw_shape(Rng& rng, int64_t width);
// Mostly up to 20; sometimes more than a few vectors of any target.
int64_t draw_width(Rng& rng);
int64_t between(Rng& rng, int64_t low, int64_t high);

template <class T>
const T& pick(Rng& rng, const std::vector<T>& choices) {
  return choices[rng.below(choices.size())];
}

std::string line(const auto&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// Each element of f32 as near to that of f64 as the roundings of the case allow.
void expect_near(const std::string& name, const Tensor& single, const Tensor& twin, const Case& test);

// All three, for `count` cases, until one fails.
void check_op(int count, const std::function<Case(Rng&)>& draw_case);

// Tensors without numbers, which the draws above never give: forward and backward run, and give none.
void expect_nothing_of_nothing(const Op& op, const std::vector<Tensor>& inputs);

}  // namespace heed::ops_testing
