// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/product_int8.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heed::kernels::reference {

namespace {

constexpr float kLeast = 0x1p-100f;  // what is smaller counts as zero

float largest(std::span<const float> numbers) {
  float most = 0;
  for (const float x : numbers) most = std::max(most, std::abs(x));
  return most;
}

std::vector<float> row_of(const View<const float, 2>& matrix, int64_t row) {
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(matrix.shape(1)));
  for (int64_t i = 0; i < matrix.shape(1); ++i) numbers.push_back(matrix(row, i));
  return numbers;
}

std::vector<Quantised> quantised_rows(const View<const float, 2>& matrix,
                                      Quantised (*quantise)(std::span<const float>)) {
  std::vector<Quantised> rows;
  rows.reserve(static_cast<size_t>(matrix.shape(0)));
  for (int64_t r = 0; r < matrix.shape(0); ++r) rows.push_back(quantise(row_of(matrix, r)));
  return rows;
}

// nearbyint: to the nearest, ties to even.
int32_t nearest(float x) { return static_cast<int32_t>(std::nearbyint(x)); }

}  // namespace

Quantised quantise_row(std::span<const float> x) {
  Quantised row{.values = std::vector<int32_t>(x.size())};
  const float most = largest(x);
  if (most < kLeast) return row;
  const float factor = 127.0f / most;
  for (size_t i = 0; i < x.size(); ++i) row.values[i] = nearest(x[i] * factor);
  row.scale = most / 127.0f;
  return row;
}

Quantised quantise_output(std::span<const float> w) {
  Quantised row{.values = std::vector<int32_t>(w.size())};
  const float most = largest(w);
  if (most < kLeast) return row;
  // Up to 16 significant bits.
  int exponent = 0;
  const double fraction = std::frexp(double{most / 127.0f}, &exponent);  // [1/2, 1)
  row.scale = static_cast<float>(std::ldexp(std::ceil(std::ldexp(fraction, 16)), exponent - 16));
  for (size_t i = 0; i < w.size(); ++i) row.values[i] = nearest(w[i] / row.scale);
  return row;
}

void linear_int8(const View<const float, 2>& x, const View<const float, 2>& w, const View<const float, 1>& b,
                 const View<double, 2>& y) {
  const std::vector<Quantised> rows = quantised_rows(x, quantise_row), outputs = quantised_rows(w, quantise_output);
  for (int64_t m = 0; m < x.shape(0); ++m) {
    for (int64_t o = 0; o < w.shape(0); ++o) {
      const Quantised &row = rows[static_cast<size_t>(m)], &output = outputs[static_cast<size_t>(o)];
      int64_t sum = 0;
      for (size_t i = 0; i < row.values.size(); ++i) sum += int64_t{row.values[i]} * output.values[i];
      y(m, o) = static_cast<double>(sum) * double{row.scale} * double{output.scale} + (b ? double{b(o)} : 0);
    }
  }
}

}  // namespace heed::kernels::reference
