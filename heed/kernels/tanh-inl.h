// SPDX-License-Identifier: Apache-2.0
// tanh on vectors. Compiled once for each SIMD target, as vec-inl.h is.
#if defined(HEED_KERNELS_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TANH_INL_H_
#undef HEED_KERNELS_TANH_INL_H_
#else
#define HEED_KERNELS_TANH_INL_H_
#endif

#include "heed/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The smaller of the two; NaN in x stays NaN, see max_keep_nan in vec-inl.h.
HWY_INLINE V min_keep_nan(F d, V ceiling, V x) {
  (void)d;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Min(ceiling, x);
#else
  return hn::IfThenElse(hn::Lt(ceiling, x), ceiling, x);
#endif
}

// x[i] <- tanh(x[i]), wrong by less than 3 units in the last place; odd to the bit, exactly +-1 from |x| = 8.5 on, NaN
// for NaN. With r = |x| - n log(2) / 2, |r| <= log(2) / 4, s = e^(2 (r - |x|)) = 2^-n and t = tanh(r),
//   tanh(|x|) = (1 - s + t (1 + s)) / (1 + s + t (1 - s))
// which is t itself for n = 0, so that small numbers keep their accuracy. -n is rounded, and 2^-n made, as in
// exp2_less. Several vectors go through each step together, see exp2_less in vec-inl.h.
template <int N>
HWY_INLINE void tanh(F d, V (&x)[N]) {
  const hn::RebindToUnsigned<F> du;
  const V magic = hn::Set(d, 0x1.8p23f + 127.0f), one = hn::Set(d, 1.0f);
  V r[N], s[N], t[N], z[N];
  for (int i = 0; i < N; ++i) r[i] = min_keep_nan(d, hn::Set(d, 10.0f), hn::Abs(x[i]));
  for (int i = 0; i < N; ++i) s[i] = hn::MulAdd(r[i], hn::Set(d, -0x1.715476p1f), magic);                // -2 / log(2)
  for (int i = 0; i < N; ++i) r[i] = hn::MulAdd(hn::Sub(s[i], magic), hn::Set(d, 0x1.62e43p-2f), r[i]);  // log(2) / 2
  for (int i = 0; i < N; ++i) s[i] = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, s[i])));
  // tanh(r) = r + r z (k1 + k2 z), z = r^2, within 5.6e-8: tools/fit_tanh.py.
  for (int i = 0; i < N; ++i) z[i] = hn::Mul(r[i], r[i]);
  for (int i = 0; i < N; ++i) t[i] = hn::MulAdd(z[i], hn::Set(d, 0x1.0c809p-3f), hn::Set(d, -0x1.554fecp-2f));
  for (int i = 0; i < N; ++i) z[i] = hn::Mul(z[i], r[i]);
  for (int i = 0; i < N; ++i) t[i] = hn::MulAdd(t[i], z[i], r[i]);
  for (int i = 0; i < N; ++i) {
    const V minus = hn::Sub(one, s[i]), plus = hn::Add(one, s[i]);
    t[i] = hn::Div(hn::MulAdd(t[i], plus, minus), hn::MulAdd(t[i], minus, plus));
  }
  for (int i = 0; i < N; ++i) x[i] = hn::CopySignToAbs(t[i], x[i]);
}

HWY_INLINE V tanh(F d, V x) {
  V one[1] = {x};
  tanh(d, one);
  return one[0];
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
