// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/elementwise.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// One instance of all of them.
struct Arrays {
  int64_t rows, width;
  Rows a, b, start;
  std::vector<float> row, drow;
  double factor;

  static Arrays draw(Rng& rng, int64_t rows, int64_t width) {
    return {rows,
            width,
            Rows::normal(rows, width, rng),
            Rows::normal(rows, width, rng),
            Rows::normal(rows, width, rng),
            normals(width, rng),
            normals(width, rng),
            double{rng.normal()}};
  }
};

std::vector<double> scaled_sizes(std::vector<double> sizes, double roundings) {
  for (double& size : sizes) size = roundings * kUnit * std::abs(size);
  return sizes;
}

// One rounding of a sum; for a factor, which is rounded too, three of product and sum.
TEST(Elementwise, IsNearTheTwin) {
  for_draws(60, [](Rng& rng) {
    const Arrays x = Arrays::draw(rng, rng.below(4) ? draw_rows(rng) : 150, draw_width(rng));
    const auto [rows, width] = std::pair(x.rows, x.width);
    std::vector<double> a = x.a.doubles(), b = x.b.doubles(), start = x.start.doubles();
    std::vector<double> r = widened(x.row), drow = widened(x.drow), sum = a, with_row = a, scaled = a, added = start;
    std::vector<double> product = a, product_added = start;
    reference::multiply_forward(matrix(a, rows, width), matrix(b, rows, width), matrix(product, rows, width));
    reference::multiply_backward(matrix(b, rows, width), matrix(a, rows, width), matrix(product_added, rows, width));
    reference::add_forward(matrix(a, rows, width), matrix(b, rows, width), matrix(sum, rows, width));
    reference::add_row_forward(matrix(a, rows, width), testing::row(r), matrix(with_row, rows, width));
    reference::scale_forward(matrix(a, rows, width), x.factor, matrix(scaled, rows, width));
    reference::scale_backward(matrix(a, rows, width), x.factor, matrix(added, rows, width));
    reference::add_row_backward(matrix(a, rows, width), {}, testing::row(drow));

    std::vector<double> product_bound;
    for (size_t i = 0; i < a.size(); ++i) {
      product_bound.push_back(kUnit * (2 * std::abs(a[i] * b[i]) + std::abs(start[i])));
    }
    std::vector<double> added_bound, drow_bound = widened(x.drow);
    for (size_t i = 0; i < a.size(); ++i) {
      added_bound.push_back(kUnit * (4 * std::abs(x.factor * a[i]) + 2 * std::abs(start[i])));
    }
    for (double& size : drow_bound) size = std::abs(size);
    for (int64_t i = 0; i < rows * width; ++i) drow_bound[i % width] += std::abs(a[i]);
    drow_bound = scaled_sizes(drow_bound, static_cast<double>(rows));

    for_targets([&] {
      Parallel parallel(2);
      Rows y(rows, width, 2);
      add_forward(x.a.view(), x.b.view(), y.view(), parallel);
      EXPECT_TRUE(within(y.floats(), sum, scaled_sizes(sum, 1))) << "add";
      add_row_forward(x.a.view(), {x.row.data(), {width}}, y.view(), parallel);
      EXPECT_TRUE(within(y.floats(), with_row, scaled_sizes(with_row, 1))) << "add_row";
      multiply_forward(x.a.view(), x.b.view(), y.view(), parallel);
      EXPECT_TRUE(within(y.floats(), product, scaled_sizes(product, 1))) << "multiply";
      scale_forward(x.a.view(), x.factor, y.view(), parallel);
      EXPECT_TRUE(within(y.floats(), scaled, scaled_sizes(scaled, 2))) << "scale";
      EXPECT_TRUE(y.guards_are_whole());
      Rows to = x.start;
      scale_backward(x.a.view(), x.factor, to.view(), parallel);
      EXPECT_TRUE(within(to.floats(), added, added_bound)) << "scale, backward";
      EXPECT_TRUE(to.guards_are_whole());
      Rows gradient = x.start;
      multiply_backward(x.b.view(), x.a.view(), gradient.view(), parallel);
      EXPECT_TRUE(within(gradient.floats(), product_added, product_bound)) << "multiply, backward";
      EXPECT_TRUE(gradient.guards_are_whole());
      std::vector<float> got = x.drow;
      add_row_backward(x.a.view(), {}, testing::row(got), parallel);
      EXPECT_TRUE(within(got, drow, drow_bound)) << "add_row, backward";
    });
  });
}

TEST(Elementwise, BackwardOfSumsAddsToWhatIsWanted) {
  Rng rng(seeded(12));
  const Arrays x = Arrays::draw(rng, 5, 37);
  Parallel parallel(1);
  Rows expected(5, 37);
  add_forward(x.start.view(), x.a.view(), expected.view(), parallel);
  Rows da = x.start, db = x.start, dx = x.start, copied = x.start;
  add_backward(x.a.view(), da.view(), {}, parallel);
  add_backward(x.a.view(), {}, db.view(), parallel);
  add_row_backward(x.a.view(), dx.view(), {}, parallel);
  copy_backward(x.a.view(), copied.view(), parallel);
  for (const Rows& got : {da, db, dx, copied}) EXPECT_TRUE(same_bits(got.floats(), expected.floats()));
}

// Slices of the last dimension: what is put together is taken apart again, and each is the other's backward.
TEST(Elementwise, CopiesOfSlicesConcatenateAndSplit) {
  Rng rng(seeded(13));
  const Rows a = Rows::normal(6, 5, rng), b = Rows::normal(6, 12, rng);
  Parallel parallel(2);
  Rows both(6, 17, 4), a_again(6, 5), b_again(6, 12, 1);
  copy_forward(a.view(), both.view().slice(1, 0, 5), parallel);
  copy_forward(b.view(), both.view().slice(1, 5, 12), parallel);
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t c = 0; c < 17; ++c) EXPECT_EQ(both(r, c), c < 5 ? a.view()(r, c) : b.view()(r, c - 5));
  }
  copy_backward(both.view().slice(1, 0, 5), a_again.view(), parallel);
  copy_backward(both.view().slice(1, 5, 12), b_again.view(), parallel);
  EXPECT_TRUE(same_bits(a_again.floats(), a.floats()));
  EXPECT_TRUE(same_bits(b_again.floats(), b.floats()));
  EXPECT_TRUE(both.guards_are_whole() && b_again.guards_are_whole());
}

TEST(Elementwise, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(14));
  for (const auto& [rows, width] : {std::pair{3, 20001}, std::pair{300, 301}}) {
    const Arrays x = Arrays::draw(rng, rows, width);
    expect_same_on_threads([&](Parallel& parallel) {
      Rows y = x.start;
      add_forward(x.a.view(), x.b.view(), y.view(), parallel);
      add_row_forward(y.view(), {x.row.data(), {x.width}}, y.view(), parallel);
      multiply_backward(x.a.view(), x.b.view(), y.view(), parallel);
      multiply_forward(x.b.view(), y.view(), y.view(), parallel);
      scale_backward(x.a.view(), x.factor, y.view(), parallel);
      scale_forward(y.view(), x.factor, y.view(), parallel);
      std::vector<float> drow = x.drow, all = y.floats();
      add_row_backward(y.view(), {}, testing::row(drow), parallel);
      all.insert(all.end(), drow.begin(), drow.end());
      return all;
    });
  }
}

}  // namespace
}  // namespace heed::kernels
