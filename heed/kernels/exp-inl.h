// SPDX-License-Identifier: Apache-2.0
// e^x, the logistic function and the normal distribution on vectors. Compiled once for each SIMD target, as vec-inl.h
// is. The polynomials are from tools/fit_exp_normal.py. NaN gives NaN.
#if defined(HEED_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_EXP_INL_H_
#undef HEED_KERNELS_EXP_INL_H_
#else
#define HEED_KERNELS_EXP_INL_H_
#endif

#include "heed/kernels/rows-inl.h"
#include "heed/kernels/tanh-inl.h"
#include "heed/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// x[i] <- e^x[i] for x <= 88, wrong by less than 2 units in the last place; exactly 0 below about -87.7, -inf included.
// exp2 of x log2(e) would lose |x| units: here x is reduced by n log(2) in two parts, of which the first is exact.
// Several vectors go through each step together, see exp2.
template <int N>
HWY_INLINE void exp(F d, V (&x)[N]) {
  const hn::RebindToUnsigned<F> du;
  const V magic = hn::Set(d, 0x1.8p23f + 127.0f), low = hn::Set(d, -88.0f);
  V shifted[N], p[N];
  for (int i = 0; i < N; ++i) x[i] = max_keep_nan(d, low, x[i]);
  for (int i = 0; i < N; ++i) shifted[i] = hn::MulAdd(x[i], hn::Set(d, 0x1.715476p0f), magic);  // 1 / log(2)
  for (int i = 0; i < N; ++i) {
    const V n = hn::Sub(shifted[i], magic);
    x[i] = hn::NegMulAdd(n, hn::Set(d, 0x1.62e4p-1f), x[i]);
    x[i] = hn::NegMulAdd(n, hn::Set(d, 0x1.7f7d1cp-20f), x[i]);
  }
  // 1 + r + r^2 P(r)
  const float terms[] = {0x1.123a2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f};
  for (int i = 0; i < N; ++i) p[i] = hn::Set(d, 0x1.6a23dp-10f);
  for (const float term : terms) {
    for (int i = 0; i < N; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, term));
  }
  for (int i = 0; i < N; ++i) p[i] = hn::MulAdd(p[i], hn::Mul(x[i], x[i]), x[i]);
  // A product, not a sum of exponents: a NaN stays one whatever its payload.
  for (int i = 0; i < N; ++i) {
    const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted[i])));
    x[i] = hn::Mul(hn::Add(p[i], hn::Set(d, 1.0f)), power);
  }
}

// sigmoid(x) = 1 / (1 + e^-x) and sigmoid(-x), each right to a few units in its own last place.
template <int N>
HWY_INLINE void sigmoids(F d, const V (&x)[N], V (&of_x)[N], V (&of_minus_x)[N]) {
  const V one = hn::Set(d, 1.0f);
  V e[N];
  for (int i = 0; i < N; ++i) e[i] = hn::Neg(hn::Abs(x[i]));
  exp(d, e);
  for (int i = 0; i < N; ++i) {
    const V large = hn::Div(one, hn::Add(one, e[i])), small = hn::Mul(e[i], large);
    const auto negative = hn::Lt(x[i], hn::Zero(d));
    of_x[i] = hn::IfThenElse(negative, small, large);
    of_minus_x[i] = hn::IfThenElse(negative, large, small);
  }
}

// The sum of e^(x - max) over a row; the exponentials are stored where `to` is not null, which may be x.
HWY_INLINE float sum_exp_of(F d, const float* x, float max, int64_t n, float* to) {
  Sums sums(d);
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    for (V& value : v) value = hn::Sub(value, hn::Set(d, max));
    exp(d, v);
    if (to) store_vectors(d, v, to + at, left);
    sums.add(d, v, left);
  });
  return sums.total(d);
}

// The normal distribution: below[i] = Phi(x), density[i] = e^(-x^2/2) / sqrt(2 pi). With a = |x|, t = 1 / (a + K):
//   Phi(-a) = e^(-a^2/2) t P(1 - 2 K t)
// which keeps the digits of a small Phi, but for the x^2/2 units that the rounding of x^2 costs.
template <int N>
HWY_INLINE void normal(F d, const V (&x)[N], V (&below)[N], V (&density)[N]) {
  constexpr float kMiddle = 2.75f;  // K
  const V one = hn::Set(d, 1.0f);
  V a[N], t[N], q[N], p[N];
  for (int i = 0; i < N; ++i) a[i] = min_keep_nan(d, hn::Set(d, 14.0f), hn::Abs(x[i]));  // Phi(-14) is 0 in f32
  for (int i = 0; i < N; ++i) density[i] = hn::Mul(hn::Mul(a[i], a[i]), hn::Set(d, -0.5f));
  exp(d, density);
  for (int i = 0; i < N; ++i) {
    t[i] = hn::Div(one, hn::Add(a[i], hn::Set(d, kMiddle)));
    q[i] = hn::NegMulAdd(t[i], hn::Set(d, 2 * kMiddle), one);
    p[i] = hn::Set(d, -0x1.472c54p-12f);
  }
  const float terms[] = {-0x1.365adap-12f, 0x1.394954p-9f, 0x1.a2f88ep-9f,  -0x1.0ce4fep-6f,
                         -0x1.0f5dbap-6f,  0x1.7569fcp-3f, -0x1.e5bd1ep-2f, 0x1.701ef2p-1f};
  for (const float term : terms) {
    for (int i = 0; i < N; ++i) p[i] = hn::MulAdd(p[i], q[i], hn::Set(d, term));
  }
  for (int i = 0; i < N; ++i) {
    const V tail = hn::Mul(density[i], hn::Mul(t[i], p[i]));
    below[i] = hn::IfThenElse(hn::Lt(x[i], hn::Zero(d)), tail, hn::Sub(one, tail));
    density[i] = hn::Mul(density[i], hn::Set(d, 0x1.988454p-2f));  // 1 / sqrt(2 pi)
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
