// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/loss.h"

#include <cassert>
#include <cmath>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/loss.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/exp-inl.h"
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The sum of x - max over a row.
HWY_INLINE float sum_below_max(F d, const float* x, float max, int64_t n) {
  Sums sums(d);
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    for (V& value : v) value = hn::Sub(value, hn::Set(d, max));
    sums.add(d, v, left);
  });
  return sums.total(d);
}

// loss = log(sum) - (1 - s) (z_target - max) - s mean(z - max), since -log p_j = log(sum) - (z_j - max).
void cross_entropy_row(const CrossEntropyInputs<float>& in, const CrossEntropyOutputs<float>& out, int64_t n) {
  const F d;
  const float* z = in.logits.at(n);
  const int64_t vocabulary = in.logits.shape(1);
  float max = 0, sum = 1;
  double loss = 0;
  if (in.targets(n) != in.ignored) {
    assert(in.targets(n) >= 0 && in.targets(n) < vocabulary);
    max = max_of(d, z, vocabulary);
    sum = sum_exp_of(d, z, max, vocabulary, nullptr);
    loss = std::log(double{sum});
    if (in.smoothing < 1) loss -= (1 - in.smoothing) * (double{z[in.targets(n)]} - double{max});
    if (in.smoothing > 0)
      loss -= in.smoothing * double{sum_below_max(d, z, max, vocabulary)} / static_cast<double>(vocabulary);
  }
  out.losses(n) = static_cast<float>(loss);
  if (out.stats) out.stats(n, 0) = max, out.stats(n, 1) = sum;
}

// dz += scale (p - q)
void cross_entropy_backward_row(const CrossEntropyInputs<float>& in, View<const float, 2> stats, double scale,
                                View<float, 2> d_logits, int64_t n) {
  if (in.targets(n) == in.ignored) return;
  const F d;
  const float* z = in.logits.at(n);
  float* dz = d_logits.at(n);
  const int64_t vocabulary = in.logits.shape(1);
  const V max = hn::Set(d, stats(n, 0)), factor = hn::Set(d, static_cast<float>(scale / double{stats(n, 1)}));
  const V everywhere = hn::Set(d, static_cast<float>(scale * in.smoothing / static_cast<double>(vocabulary)));
  for_vectors(vocabulary, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V p[N], to[N];
    load_vectors(d, z + at, left, p);
    load_vectors(d, dz + at, left, to);
    for (V& value : p) value = hn::Sub(value, max);
    exp(d, p);
    for (int i = 0; i < N; ++i) to[i] = hn::Add(to[i], hn::MulSub(p[i], factor, everywhere));
    store_vectors(d, to, dz + at, left);
  });
  dz[in.targets(n)] -= static_cast<float>(scale * (1 - in.smoothing));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(cross_entropy_row);
HWY_EXPORT(cross_entropy_backward_row);

CrossEntropySum cross_entropy_forward(const CrossEntropyInputs<float>& in, const CrossEntropyOutputs<float>& out,
                                      Parallel& parallel) noexcept {
  assert(in.targets.shape(0) == in.logits.shape(0) && out.losses.shape(0) == in.logits.shape(0));
  for_each_row(in.logits.shape(), parallel, [&](int64_t n) { HWY_DYNAMIC_DISPATCH(cross_entropy_row)(in, out, n); });
  CrossEntropySum total;
  for (int64_t n = 0; n < in.targets.shape(0); ++n) {
    total.sum += double{out.losses(n)};
    total.count += in.targets(n) != in.ignored;
  }
  return total;
}

void cross_entropy_backward(const CrossEntropyInputs<float>& in, View<const float, 2> stats, double scale,
                            View<float, 2> d_logits, Parallel& parallel) noexcept {
  assert(in.logits.shape() == d_logits.shape() && stats.shape(0) == in.logits.shape(0) && stats.shape(1) == 2);
  for_each_row(in.logits.shape(), parallel, [&](int64_t n) {
    HWY_DYNAMIC_DISPATCH(cross_entropy_backward_row)(in, stats, scale, d_logits, n);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
