// SPDX-License-Identifier: Apache-2.0
#include "heed/base/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <type_traits>
#include <vector>

namespace heed {
namespace {

// 24 floats that hold their own index.
std::vector<float> numbered() {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.0f);
  return data;
}

TEST(Dims, RowMajorStrides) {
  EXPECT_EQ(row_major<4>({2, 3, 4, 5}), (Dims<4>{60, 20, 5, 1}));
  EXPECT_EQ(row_major<1>({7}), (Dims<1>{1}));
  EXPECT_EQ(row_major<3>({2, 0, 3}), (Dims<3>{0, 3, 1}));
}

TEST(Dims, ElementCount) {
  EXPECT_EQ(element_count<3>({2, 3, 4}), 24);
  EXPECT_EQ(element_count<3>({2, 0, 4}), 0);
  EXPECT_EQ(element_count<2>({int64_t{1} << 20, int64_t{1} << 20}), int64_t{1} << 40);
}

TEST(Dims, ToString) {
  EXPECT_EQ(to_string(Dims<4>{2, 8, 16, 64}), "[2, 8, 16, 64]");
  EXPECT_EQ(to_string(Dims<1>{0}), "[0]");
  EXPECT_EQ(to_string(Dims<2>{-1, 5}), "[-1, 5]");
}

TEST(View, IsRowMajorByDefault) {
  std::vector<float> data = numbered();
  const View<float, 3> v(data.data(), {2, 3, 4});
  EXPECT_EQ(v.data(), data.data());
  EXPECT_EQ(v.shape(), (Dims<3>{2, 3, 4}));
  EXPECT_EQ(v.strides(), (Dims<3>{12, 4, 1}));
  EXPECT_EQ(v.shape(1), 3);
  EXPECT_EQ(v.stride(1), 4);
  EXPECT_EQ(v.size(), 24);
  float expected = 0;
  for (int b = 0; b < 2; ++b) {
    for (int t = 0; t < 3; ++t) {
      for (int d = 0; d < 4; ++d) EXPECT_EQ(v(b, t, d), expected++);
    }
  }
}

TEST(View, WritesReachTheData) {
  std::vector<float> data = numbered();
  const View<float, 2> v(data.data(), {4, 6});
  v(2, 5) = -1;
  *v.at(3, 1) = -2;
  EXPECT_EQ(data[17], -1);
  EXPECT_EQ(data[19], -2);
}

TEST(View, HonoursItsStrides) {
  std::vector<float> data = numbered();
  const View<float, 2> every_other_column(data.data(), {4, 3}, {6, 2});
  EXPECT_EQ(every_other_column(3, 2), 3 * 6 + 2 * 2);
  const View<float, 2> one_row_for_all(data.data() + 5, {4, 3}, {0, 1});
  EXPECT_EQ(&one_row_for_all(0, 2), &one_row_for_all(3, 2));
  EXPECT_EQ(one_row_for_all(3, 2), 7);
  const View<float, 1> backwards(data.data() + 23, {24}, {-1});
  EXPECT_EQ(backwards(23), 0);
}

TEST(View, AtTakesLeadingIndices) {
  std::vector<float> data = numbered();
  const View<float, 3> v(data.data(), {2, 3, 4});
  EXPECT_EQ(v.at(), data.data());
  EXPECT_EQ(v.at(1), data.data() + 12);
  EXPECT_EQ(v.at(1, 2), data.data() + 20);
  EXPECT_EQ(v.at(1, 2, 3), data.data() + 23);
}

TEST(View, TakesIndicesOfAnyIntegerType) {
  std::vector<float> data = numbered();
  const View<float, 2> v(data.data() + 18, {4, 6}, {-6, 1});
  EXPECT_EQ(v.at(int8_t{3}, uint32_t{5}), data.data() + 5);  // unsigned indices must not turn a negative step around
  EXPECT_EQ(v(uint32_t{1}, size_t{2}), 14);
}

TEST(View, TransposedSwapsTwoDimensions) {
  std::vector<float> data = numbered();
  const View<float, 4> bthd(data.data(), {1, 3, 2, 4});
  const View<float, 4> bhtd = bthd.transposed(1, 2);
  EXPECT_EQ(bhtd.shape(), (Dims<4>{1, 2, 3, 4}));
  EXPECT_EQ(bhtd.strides(), (Dims<4>{24, 4, 8, 1}));
  for (int t = 0; t < 3; ++t) {
    for (int h = 0; h < 2; ++h) EXPECT_EQ(bhtd.at(0, h, t), bthd.at(0, t, h));
  }
  EXPECT_EQ(bhtd.transposed(2, 1).strides(), bthd.strides());
}

TEST(View, SliceKeepsStrides) {
  std::vector<float> data = numbered();
  const View<float, 2> v(data.data(), {4, 6});
  const View<float, 2> columns = v.slice(1, 2, 3);
  EXPECT_EQ(columns.shape(), (Dims<2>{4, 3}));
  EXPECT_EQ(columns.strides(), v.strides());
  EXPECT_EQ(columns(3, 0), 20);
  const View<float, 2> block = columns.slice(0, 1, 2);
  EXPECT_EQ(block(1, 2), 16);
  EXPECT_EQ(v.slice(0, 4, 0).size(), 0);
}

TEST(View, SplitsPackedProjectionsWithoutACopy) {
  // [T, 3 * H * D] as one projection writes it: q, k and v of each row follow each other.
  std::vector<float> data = numbered();
  const View<float, 3> packed(data.data(), {2, 3, 4});
  const View<float, 3> k = packed.slice(1, 1, 1);
  EXPECT_EQ(k(0, 0, 0), 4);
  EXPECT_EQ(k(1, 0, 3), 19);
}

TEST(View, ConvertsToConstOnly) {
  std::vector<float> data = numbered();
  const View<float, 2> v(data.data(), {4, 6}, {1, 4});
  const View<const float, 2> read_only = v;
  EXPECT_EQ(read_only.data(), v.data());
  EXPECT_EQ(read_only.shape(), v.shape());
  EXPECT_EQ(read_only.strides(), v.strides());
  static_assert(std::is_same_v<decltype(read_only(0, 0)), const float&>);
  static_assert(!std::is_convertible_v<View<const float, 2>, View<float, 2>>);
  static_assert(!std::is_convertible_v<View<float, 2>, View<const double, 2>>);
  static_assert(!std::is_convertible_v<View<float, 2>, View<const float, 3>>);
  static_assert(std::is_trivially_copyable_v<View<float, 4>>);
}

TEST(View, WithoutDataIsEmpty) {
  const View<float, 2> nothing;
  EXPECT_TRUE(nothing.empty());
  EXPECT_FALSE(nothing);
  EXPECT_EQ(nothing.size(), 0);
  EXPECT_EQ(nothing.shape(), (Dims<2>{0, 0}));
  EXPECT_TRUE((View<const float, 2>(nothing).empty()));

  // A shape alone does not make it wanted, and slicing it stays clear of arithmetic on null.
  const View<float, 2> unwanted(nullptr, {4, 6});
  EXPECT_TRUE(unwanted.empty());
  EXPECT_TRUE(unwanted.slice(0, 2, 2).empty());

  // No elements is another thing than no data.
  float x = 0;
  const View<float, 2> no_rows(&x, {0, 6});
  EXPECT_FALSE(no_rows.empty());
  EXPECT_TRUE(no_rows);
  EXPECT_EQ(no_rows.size(), 0);
}

TEST(View, WorksInConstantExpressions) {
  static constexpr float kData[6] = {0, 1, 2, 3, 4, 5};
  constexpr View<const float, 2> v(kData, {2, 3});
  static_assert(v(1, 2) == 5 && v.transposed(0, 1)(2, 0) == 2);
}

}  // namespace
}  // namespace heed
