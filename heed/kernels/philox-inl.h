// SPDX-License-Identifier: Apache-2.0
// heed::philox, a counter a lane. Compiled once for each SIMD target, as vec-inl.h is.
#if defined(HEED_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_PHILOX_INL_H_
#undef HEED_KERNELS_PHILOX_INL_H_
#else
#define HEED_KERNELS_PHILOX_INL_H_
#endif

#include "heed/base/rng.h"
#include "heed/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

using VU = hn::Vec<hn::RebindToUnsigned<F>>;

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void philox_lanes(VU (&c)[4], uint64_t key) {
  const hn::RebindToUnsigned<F> du;
  const Block4 block = philox({hn::GetLane(c[0]), hn::GetLane(c[1]), hn::GetLane(c[2]), hn::GetLane(c[3])}, key);
  for (size_t i = 0; i < 4; ++i) c[i] = hn::Set(du, block[i]);
}
#else
// The two halves of 32 x 32 bit products.
HWY_INLINE void multiply_wide(VU x, uint32_t factor, VU& high, VU& low) {
  const hn::RebindToUnsigned<F> du;
  const hn::Repartition<uint64_t, F> du64;
  const VU m = hn::Set(du, factor);
  const auto even = hn::MulEven(x, m);
  const auto odd = hn::MulEven(hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(du64, x))), m);
  high = hn::OddEven(hn::BitCast(du, odd), hn::BitCast(du, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(odd)), hn::BitCast(du, even));
}

HWY_INLINE void philox_lanes(VU (&c)[4], uint64_t key) {
  const hn::RebindToUnsigned<F> du;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    VU high0, low0, high1, low1;
    multiply_wide(c[0], 0xD2511F53u, high0, low0);
    multiply_wide(c[2], 0xCD9E8D57u, high1, low1);
    c[0] = hn::Xor(hn::Xor(high1, c[1]), hn::Set(du, k0));
    c[1] = low1;
    c[2] = hn::Xor(hn::Xor(high0, c[3]), hn::Set(du, k1));
    c[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}
#endif

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
