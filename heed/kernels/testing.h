// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of kernels over rows share: arrays with guards between their rows, sizes at the edges of vectors, and
// comparisons with the twins.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heed/base/parallel.h"
#include "heed/base/rng.h"
#include "heed/base/view.h"
#include "heed/kernels/attention/testing.h"

namespace heed::kernels::testing {

using attention_testing::for_draws, attention_testing::for_targets, attention_testing::same_bits;

// Half an ulp of 1, in f32: what one rounding changes of a number, at most. A number below the normal ones may be wrong
// by kTiny besides.
inline constexpr double kUnit = 0x1p-24, kTiny = 0x1p-125;
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// [rows, width] of f32 with `gap` guards after each row, and the same numbers in double without them.
class Rows {
 public:
  Rows(int64_t rows, int64_t width, int64_t gap = 0)
      : shape_{rows, width}, stride_(width + gap), memory_(static_cast<size_t>(rows * stride_), guard()) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(memory_.begin() + r * stride_, width, 0.0f);
  }
  static Rows normal(int64_t rows, int64_t width, Rng& rng, float deviation = 1) {
    Rows drawn(rows, width, static_cast<int64_t>(rng.below(2) * rng.below(9)));
    drawn.for_each([&](float& x) { x = deviation * rng.normal(); });
    return drawn;
  }

  View<float, 2> view() { return {memory_.data(), shape_, {stride_, 1}}; }
  View<const float, 2> view() const { return {memory_.data(), shape_, {stride_, 1}}; }
  float& operator()(int64_t r, int64_t c) { return view()(r, c); }
  int64_t rows() const { return shape_[0]; }
  int64_t width() const { return shape_[1]; }

  std::vector<float> floats() const {
    std::vector<float> all;
    for (int64_t r = 0; r < rows(); ++r) all.insert(all.end(), view().at(r), view().at(r) + width());
    return all;
  }
  std::vector<double> doubles() const {
    const std::vector<float> all = floats();
    return {all.begin(), all.end()};
  }
  bool guards_are_whole() const {
    for (int64_t i = 0; i < std::ssize(memory_); ++i) {
      const auto bits = std::bit_cast<uint32_t>(memory_[static_cast<size_t>(i)]);
      if (i % stride_ >= width() && bits != std::bit_cast<uint32_t>(guard())) return false;
    }
    return true;
  }
  void for_each(const auto& body) {
    for (int64_t r = 0; r < rows(); ++r) {
      for (int64_t c = 0; c < width(); ++c) body((*this)(r, c));
    }
  }

 private:
  static float guard() { return std::bit_cast<float>(0x7FC0DEADu); }
  Dims<2> shape_;
  int64_t stride_;
  std::vector<float> memory_;
};

template <class T>
View<T, 2> matrix(std::vector<T>& data, int64_t rows, int64_t width) {
  return {data.data(), {rows, width}};
}
template <class T>
View<T, 1> row(std::vector<T>& data) {
  return {data.data(), {std::ssize(data)}};
}

inline std::vector<float> normals(int64_t n, Rng& rng) {
  std::vector<float> drawn(static_cast<size_t>(n));
  for (float& x : drawn) x = rng.normal();
  return drawn;
}
inline std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// Around one vector and around the four that loops take at a time, for 4, 8 and 16 lanes.
inline int64_t draw_width(Rng& rng, bool zero = true) {
  static constexpr int64_t kEdges[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  15,  16,  17,  31,
                                       32, 33, 47, 63, 64, 65, 71, 80, 97, 127, 129, 257, 300};
  const uint64_t first = zero ? 0 : 1;
  return kEdges[first + rng.below(std::size(kEdges) - first)];
}
inline int64_t draw_rows(Rng& rng) { return static_cast<int64_t>(rng.below(10)); }

// Each number within its bound of what is expected; NaN where NaN is expected, and nowhere else.
inline ::testing::AssertionResult within(std::span<const float> got, std::span<const double> want,
                                         std::span<const double> bound) {
  if (got.size() != want.size() || got.size() != bound.size()) {
    return ::testing::AssertionFailure() << got.size() << " numbers, not " << want.size() << " and " << bound.size();
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (double{got[i]} == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    if (!(std::abs(double{got[i]} - want[i]) <= bound[i])) {
      return ::testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", expected " << want[i] << " +- " << bound[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// run(parallel) gives numbers: the same bits on any number of threads.
inline void expect_same_on_threads(const auto& run) {
  Parallel one(1);
  const std::vector<float> expected = run(one);
  for (const int threads : {2, 3, 5}) {
    Parallel parallel(threads);
    EXPECT_TRUE(same_bits(run(parallel), expected)) << threads << " threads";
  }
}

}  // namespace heed::kernels::testing
