// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/rope.h"

#include <cassert>
#include <cmath>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/rope.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// One row: x, rotated, to y; or, backward, rotated by the opposite angle and accumulated into y.
template <bool kBackward>
struct Rotation {
  const float *cos, *sin, *x;
  float* y;

  HWY_INLINE void vectors(V c, V s, V& a, V& b) const {
    if (kBackward) s = hn::Neg(s);
    const V rotated_a = hn::MulSub(a, c, hn::Mul(b, s));
    b = hn::MulAdd(a, s, hn::Mul(b, c));
    a = rotated_a;
  }
  HWY_INLINE void store(F d, V v, int64_t at, int64_t left) const {
    store_part(d, kBackward ? hn::Add(v, load_part(d, y + at, left)) : v, y + at, left);
  }

  HWY_INLINE void halves(F d, int64_t half) const {
    for (int64_t i = 0; i < half; i += kLanes) {
      const int64_t left = half - i;
      V a = load_part(d, x + i, left), b = load_part(d, x + half + i, left);
      vectors(load_part(d, cos + i, left), load_part(d, sin + i, left), a, b);
      store(d, a, i, left);
      store(d, b, half + i, left);
    }
  }

  HWY_INLINE void interleaved(F d, int64_t half) const {
    int64_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      V a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      vectors(hn::LoadU(d, cos + i), hn::LoadU(d, sin + i), a, b);
      if (kBackward) {
        V to_a, to_b;
        hn::LoadInterleaved2(d, y + 2 * i, to_a, to_b);
        a = hn::Add(a, to_a);
        b = hn::Add(b, to_b);
      }
      hn::StoreInterleaved2(a, b, d, y + 2 * i);
    }
    for (; i < half; ++i) {
      const float s = kBackward ? -sin[i] : sin[i], a = x[2 * i], b = x[2 * i + 1];
      const float to_a = kBackward ? y[2 * i] : 0, to_b = kBackward ? y[2 * i + 1] : 0;
      y[2 * i] = to_a + (a * cos[i] - b * s);
      y[2 * i + 1] = to_b + (a * s + b * cos[i]);
    }
  }

  HWY_INLINE void rest(F d, int64_t from, int64_t D) const {
    for (int64_t i = from; i < D; i += kLanes) store(d, load_part(d, x + i, D - i), i, D - i);
  }
};

template <bool kBackward>
HWY_INLINE void rotate_row(const RopeTables<float>& tables, int64_t position, const float* x, float* y, int64_t D) {
  const F d;
  const int64_t half = tables.cos.shape(1);
  const Rotation<kBackward> rotation{tables.cos.at(position), tables.sin.at(position), x, y};
  if (tables.pairs == RopePairs::halves) {
    rotation.halves(d, half);
  } else {
    rotation.interleaved(d, half);
  }
  rotation.rest(d, 2 * half, D);
}

void rope_row(const RopeTables<float>& tables, int64_t position, const float* x, float* y, int64_t D) {
  rotate_row<false>(tables, position, x, y, D);
}

void rope_backward_row(const RopeTables<float>& tables, int64_t position, const float* dy, float* dx, int64_t D) {
  rotate_row<true>(tables, position, dy, dx, D);
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(rope_row);
HWY_EXPORT(rope_backward_row);

namespace {

// body(position, from, to) for every row of D elements.
template <class Body>
void for_each_token(const RopeTables<float>& tables, View<const float, 4> x, View<float, 4> y, Parallel& parallel,
                    const Body& body) {
  const auto [B, H, T, D] = x.shape();
  assert(x.shape() == y.shape() && 2 * tables.cos.shape(1) <= D && tables.cos.shape() == tables.sin.shape());
  for_each_row({B * H * T, D}, parallel, [&, heads = H, tokens = T](int64_t row) {
    const int64_t b = row / (heads * tokens), h = row / tokens % heads, t = row % tokens;
    const int64_t position = tables.positions ? tables.positions(b, t) : t + tables.offset;
    assert(position >= 0 && position < tables.cos.shape(0));
    body(position, x.at(b, h, t), y.at(b, h, t));
  });
}

}  // namespace

void rope_tables(double base, View<float, 2> cos, View<float, 2> sin, int64_t first) noexcept {
  const auto R = static_cast<double>(2 * cos.shape(1));
  for (int64_t i = 0; i < cos.shape(1); ++i) {
    const double frequency = std::pow(base, -2 * static_cast<double>(i) / R);
    for (int64_t p = 0; p < cos.shape(0); ++p) {
      cos(p, i) = static_cast<float>(std::cos(static_cast<double>(first + p) * frequency));
      sin(p, i) = static_cast<float>(std::sin(static_cast<double>(first + p) * frequency));
    }
  }
}

void rope_forward(const RopeTables<float>& tables, View<const float, 4> x, View<float, 4> y,
                  Parallel& parallel) noexcept {
  for_each_token(tables, x, y, parallel, [&](int64_t position, const float* from, float* to) {
    HWY_DYNAMIC_DISPATCH(rope_row)(tables, position, from, to, x.shape(3));
  });
}

void rope_backward(const RopeTables<float>& tables, View<const float, 4> dy, View<float, 4> dx,
                   Parallel& parallel) noexcept {
  for_each_token(tables, dy, dx, parallel, [&](int64_t position, const float* from, float* to) {
    HWY_DYNAMIC_DISPATCH(rope_backward_row)(tables, position, from, to, dy.shape(3));
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
