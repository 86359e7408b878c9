// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/rope.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// [B,H,T,D] in rows of D, as [B,H,T,D] or [B,T,H,D] in memory.
struct Shape {
  int64_t B, H, T, D;
  bool heads_inside;

  int64_t rows() const { return B * H * T; }
  template <class T_>
  View<T_, 4> view(const View<T_, 2>& of) const {
    const int64_t stride = of.stride(0);
    if (heads_inside) return {of.data(), {B, H, T, D}, {T * H * stride, stride, H * stride, 1}};
    return {of.data(), {B, H, T, D}, {H * T * stride, T * stride, stride, 1}};
  }
};

// Tables in both precisions, of the same f32 numbers, and positions or an offset.
struct Tables {
  int64_t P, half;
  std::vector<float> cos, sin;
  std::vector<double> cos64, sin64;
  std::vector<int32_t> positions;
  int64_t offset = 0;
  RopePairs pairs = RopePairs::halves;
  int64_t B = 0, T = 0;

  Tables(int64_t count, int64_t half_width) : P(count), half(half_width), cos(P * half), sin(P * half) {
    rope_tables(10000, matrix(cos, P, half), matrix(sin, P, half));
    cos64 = widened(cos), sin64 = widened(sin);
  }
  template <class T_>
  RopeTables<T_> view(const std::vector<T_>& c, const std::vector<T_>& s) const {
    RopeTables<T_> tables{{c.data(), {P, half}}, {s.data(), {P, half}}, {}, offset, pairs};
    if (!positions.empty()) tables.positions = {positions.data(), {B, T}};
    return tables;
  }
  RopeTables<float> view() const { return view(cos, sin); }
};

Tables draw_tables(const Shape& shape, int64_t half, Rng& rng) {
  Tables tables(shape.T + 20, half);
  tables.B = shape.B, tables.T = shape.T;
  if (rng.below(2)) tables.pairs = RopePairs::interleaved;
  tables.offset = static_cast<int64_t>(rng.below(20));
  if (rng.below(2)) {
    for (int64_t i = 0; i < shape.B * shape.T; ++i) {
      tables.positions.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(tables.P))));
    }
  }
  return tables;
}

// Two products and a sum, and in backward one sum more: 4 u of what is added up.
TEST(Rope, IsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const auto small = [&] { return 1 + static_cast<int64_t>(rng.below(3)); };
    const Shape shape{small(), small(), small(), draw_width(rng), rng.below(2) == 1};
    const int64_t half = rng.below(2) ? shape.D / 2 : static_cast<int64_t>(rng.below(shape.D / 2 + 1));
    const Tables tables = draw_tables(shape, half, rng);
    const Rows x = Rows::normal(shape.rows(), shape.D, rng), dx = Rows::normal(shape.rows(), shape.D, rng);

    std::vector<double> x64 = x.doubles(), y(x64.size()), dx64 = dx.doubles(), y_bound, dx_bound;
    const std::vector<double> start = dx64;
    const auto wide = [&](std::vector<double>& of) { return shape.view(matrix(of, shape.rows(), shape.D)); };
    const RopeTables<double> tables64 = tables.view(tables.cos64, tables.sin64);
    reference::rope_forward(tables64, wide(x64), wide(y));
    reference::rope_backward(tables64, wide(x64), wide(dx64));
    for (int64_t i = 0; i < std::ssize(x64); ++i) {
      const auto first = x64.begin() + i / shape.D * shape.D;
      const auto [low, high] = std::minmax_element(first, first + shape.D);
      const double pair = i % shape.D < 2 * half ? 2 * std::max(-*low, *high) : 0;
      y_bound.push_back(4 * kUnit * pair);
      dx_bound.push_back(4 * kUnit * (pair + std::abs(x64[i]) + std::abs(start[i])));
    }
    for_targets([&] {
      Parallel parallel(2);
      Rows got(shape.rows(), shape.D, 3), in_place = x, got_dx = dx;
      rope_forward(tables.view(), shape.view(x.view()), shape.view(got.view()), parallel);
      EXPECT_TRUE(within(got.floats(), y, y_bound)) << "y";
      rope_forward(tables.view(), shape.view(View<const float, 2>(in_place.view())), shape.view(in_place.view()),
                   parallel);
      EXPECT_TRUE(same_bits(in_place.floats(), got.floats())) << "in place";
      rope_backward(tables.view(), shape.view(x.view()), shape.view(got_dx.view()), parallel);
      EXPECT_TRUE(within(got_dx.floats(), dx64, dx_bound)) << "dx";
      EXPECT_TRUE(got.guards_are_whole() && got_dx.guards_are_whole());
    });
  });
}

TEST(Rope, TablesAreTheTwinsRounded) {
  for (const double base : {10000.0, 500000.0}) {
    std::vector<float> cos(70 * 33), sin = cos;
    std::vector<double> cos64(cos.size()), sin64 = cos64, bound(cos.size(), kUnit);
    rope_tables(base, matrix(cos, 70, 33), matrix(sin, 70, 33));
    reference::rope_tables(base, matrix(cos64, 70, 33), matrix(sin64, 70, 33));
    EXPECT_TRUE(within(cos, cos64, bound));
    EXPECT_TRUE(within(sin, sin64, bound));
  }
}

// The product of a query and a key depends on the distance alone.
TEST(Rope, ScoresDependOnTheDistance) {
  Rng rng(seeded(18));
  const Rows q = Rows::normal(1, 16, rng), k = Rows::normal(1, 16, rng);
  const Shape shape{1, 1, 1, 16, false};
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::interleaved}) {
    const auto score = [&](int64_t at_q, int64_t at_k) {
      Parallel parallel(1);
      Tables tables(64, 8);
      tables.pairs = pairs;
      Rows rotated_q(1, 16), rotated_k(1, 16);
      tables.offset = at_q;
      rope_forward(tables.view(), shape.view(q.view()), shape.view(rotated_q.view()), parallel);
      tables.offset = at_k;
      rope_forward(tables.view(), shape.view(k.view()), shape.view(rotated_k.view()), parallel);
      double sum = 0;
      for (int64_t d = 0; d < 16; ++d) sum += double{rotated_q(0, d)} * double{rotated_k(0, d)};
      return sum;
    };
    // |q . k| <= |q| |k|; each rotation is right to 5 u, tables included.
    double size_q = 0, size_k = 0;
    for (const double x : q.doubles()) size_q += x * x;
    for (const double x : k.doubles()) size_k += x * x;
    EXPECT_NEAR(score(7, 3), score(50, 46), 40 * kUnit * std::sqrt(size_q * size_k));
    EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-3);
  }
}

TEST(Rope, NaNStaysInItsPair) {
  for (const RopePairs pairs : {RopePairs::halves, RopePairs::interleaved}) {
    for_targets([&] {
      Parallel parallel(1);
      Tables tables(10, 9);
      tables.pairs = pairs;
      tables.offset = 3;
      Rows x(1, 20), y(1, 20);
      x(0, 2) = kNaN;
      const Shape shape{1, 1, 1, 20, false};
      rope_forward(tables.view(), shape.view(View<const float, 2>(x.view())), shape.view(y.view()), parallel);
      const int64_t partner = pairs == RopePairs::halves ? 11 : 3;
      for (int64_t d = 0; d < 20; ++d) EXPECT_EQ(std::isnan(y(0, d)), d == 2 || d == partner) << d;
    });
  }
}

TEST(Rope, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(19));
  const Shape shape{2, 8, 50, 64, true};
  const Tables tables = draw_tables(shape, 32, rng);
  const Rows x = Rows::normal(shape.rows(), shape.D, rng);
  expect_same_on_threads([&](Parallel& parallel) {
    Rows y(shape.rows(), shape.D);
    rope_forward(tables.view(), shape.view(x.view()), shape.view(y.view()), parallel);
    rope_backward(tables.view(), shape.view(x.view()), shape.view(y.view()), parallel);
    return y.floats();
  });
}

}  // namespace
}  // namespace heed::kernels
