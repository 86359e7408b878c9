// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/rope.h"

#include <cassert>
#include <cmath>

namespace heed::kernels::reference {
namespace {

// body({b, h, t}, cos, sin, a, b) for every pair (a, b) of every row, and rest({b, h, t}, d) for the elements that are
// not rotated.
void for_each_pair(const RopeTables<double>& tables, const Dims<4>& shape, const auto& body, const auto& rest) {
  const int64_t half = tables.cos.shape(1);
  assert(2 * half <= shape[3] && tables.cos.shape() == tables.sin.shape());
  for (int64_t b = 0; b < shape[0]; ++b) {
    for (int64_t h = 0; h < shape[1]; ++h) {
      for (int64_t t = 0; t < shape[2]; ++t) {
        const int64_t p = tables.positions ? tables.positions(b, t) : t + tables.offset;
        assert(p >= 0 && p < tables.cos.shape(0));
        for (int64_t i = 0; i < half; ++i) {
          const bool halves = tables.pairs == RopePairs::halves;
          body(Dims<3>{b, h, t}, tables.cos(p, i), tables.sin(p, i), halves ? i : 2 * i, halves ? i + half : 2 * i + 1);
        }
        for (int64_t d = 2 * half; d < shape[3]; ++d) rest(Dims<3>{b, h, t}, d);
      }
    }
  }
}

}  // namespace

void rope_tables(double base, View<double, 2> cos, View<double, 2> sin, int64_t first) {
  const auto R = static_cast<double>(2 * cos.shape(1));
  for (int64_t p = 0; p < cos.shape(0); ++p) {
    for (int64_t i = 0; i < cos.shape(1); ++i) {
      const double angle = static_cast<double>(first + p) * std::pow(base, -2 * static_cast<double>(i) / R);
      cos(p, i) = std::cos(angle);
      sin(p, i) = std::sin(angle);
    }
  }
}

void rope_forward(const RopeTables<double>& tables, View<const double, 4> x, View<double, 4> y) {
  assert(x.shape() == y.shape());
  for_each_pair(
      tables, x.shape(),
      [&](const Dims<3>& row, double cos, double sin, int64_t a, int64_t b) {
        const double *from = x.at(row[0], row[1], row[2]), x_a = from[a], x_b = from[b];
        double* to = y.at(row[0], row[1], row[2]);
        to[a] = x_a * cos - x_b * sin;
        to[b] = x_a * sin + x_b * cos;
      },
      [&](const Dims<3>& row, int64_t d) { y(row[0], row[1], row[2], d) = x(row[0], row[1], row[2], d); });
}

void rope_backward(const RopeTables<double>& tables, View<const double, 4> dy, View<double, 4> dx) {
  assert(dy.shape() == dx.shape());
  for_each_pair(
      tables, dy.shape(),
      [&](const Dims<3>& row, double cos, double sin, int64_t a, int64_t b) {
        const double* from = dy.at(row[0], row[1], row[2]);
        double* to = dx.at(row[0], row[1], row[2]);
        to[a] += from[a] * cos + from[b] * sin;
        to[b] += from[b] * cos - from[a] * sin;
      },
      [&](const Dims<3>& row, int64_t d) { dx(row[0], row[1], row[2], d) += dy(row[0], row[1], row[2], d); });
}

}  // namespace heed::kernels::reference
