// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/softmax.h"

#include <cassert>
#include <cmath>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/softmax.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/exp-inl.h"
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

void softmax_row(const float* x, float* y, int64_t width) {
  const F d;
  const float max = max_of(d, x, width);
  scale_row(d, y, 1 / sum_exp_of(d, x, max, width, y), y, width);
}

void log_softmax_row(const float* x, float* y, int64_t width) {
  const F d;
  const float max = max_of(d, x, width), log_sum = std::log(sum_exp_of(d, x, max, width, nullptr));
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    for (V& value : v) value = hn::Sub(hn::Sub(value, hn::Set(d, max)), hn::Set(d, log_sum));
    store_vectors(d, v, y + at, left);
  });
}

// dx += y (dy - sum dy y)
void softmax_backward_row(const float* y, const float* dy, float* dx, int64_t width) {
  const F d;
  Sums sums(d);
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], g[N];
    load_vectors(d, y + at, left, v);
    load_vectors(d, dy + at, left, g);
    for (int i = 0; i < N; ++i) v[i] = hn::Mul(v[i], g[i]);
    sums.add(d, v, left);
  });
  const V dot = hn::Set(d, sums.total(d));
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], g[N], to[N];
    load_vectors(d, y + at, left, v);
    load_vectors(d, dy + at, left, g);
    load_vectors(d, dx + at, left, to);
    for (int i = 0; i < N; ++i) to[i] = hn::MulAdd(v[i], hn::Sub(g[i], dot), to[i]);
    store_vectors(d, to, dx + at, left);
  });
}

// dx += dy - e^y sum dy
void log_softmax_backward_row(const float* y, const float* dy, float* dx, int64_t width) {
  const F d;
  Sums sums(d);
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V g[N];
    load_vectors(d, dy + at, left, g);
    sums.add(d, g, left);
  });
  const V sum = hn::Set(d, sums.total(d));
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], g[N], to[N];
    load_vectors(d, y + at, left, v);
    load_vectors(d, dy + at, left, g);
    load_vectors(d, dx + at, left, to);
    exp(d, v);
    for (int i = 0; i < N; ++i) to[i] = hn::Add(to[i], hn::NegMulAdd(v[i], sum, g[i]));
    store_vectors(d, to, dx + at, left);
  });
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_backward_row);
HWY_EXPORT(log_softmax_row);
HWY_EXPORT(log_softmax_backward_row);

void softmax_forward(View<const float, 2> x, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape());
  for_each_row(x.shape(), parallel, [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(softmax_row)(x.at(r), y.at(r), x.shape(1));
  });
}

void softmax_backward(View<const float, 2> y, View<const float, 2> dy, View<float, 2> dx, Parallel& parallel) noexcept {
  assert(y.shape() == dy.shape() && y.shape() == dx.shape());
  for_each_row(y.shape(), parallel, [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(softmax_backward_row)(y.at(r), dy.at(r), dx.at(r), y.shape(1));
  });
}

void log_softmax_forward(View<const float, 2> x, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape());
  for_each_row(x.shape(), parallel, [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(log_softmax_row)(x.at(r), y.at(r), x.shape(1));
  });
}

void log_softmax_backward(View<const float, 2> y, View<const float, 2> dy, View<float, 2> dx,
                          Parallel& parallel) noexcept {
  assert(y.shape() == dy.shape() && y.shape() == dx.shape());
  for_each_row(y.shape(), parallel, [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(log_softmax_backward_row)(y.at(r), dy.at(r), dx.at(r), y.shape(1));
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
