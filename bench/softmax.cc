// SPDX-License-Identifier: Apache-2.0
#include "bench/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/softmax.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// 2^x for x <= 0: an interpolation of degree 5 in Chebyshev's nodes on [-1/2, 1/2], relative error 1e-7; what is under
// 2^-126 comes out as 2^-126.
HWY_INLINE V exp2(F d, V x) {
  const hn::RebindToSigned<F> di;
  x = hn::Max(x, hn::Set(d, -126.0f));
  const V magic = hn::Set(d, 0x1.8p23f);
  const V shifted = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(shifted, magic));
  V p = hn::MulAdd(hn::Set(d, 1.339086336e-03f), f, hn::Set(d, 9.676031918e-03f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.550357114e-02f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.402210749e-01f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.931471880e-01f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.000000075e+00f));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

HWY_INLINE V load_first(F d, const float* p, size_t count, V other) {
  const auto first = hn::FirstN(d, count);
  return hn::IfThenElse(first, hn::MaskedLoad(first, d, p), other);
}

// Calls f(offset, lanes) for whole vectors four at a time, then one at a time, then for what is left.
template <class Four, class One, class Rest>
HWY_INLINE void over_row(F d, size_t n, const Four& four, const One& one, const Rest& rest) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) four(i);
  for (; i + lanes <= n; i += lanes) one(i);
  if (i < n) rest(i, n - i);
}

V row_max(F d, const float* row, size_t n) {
  const size_t lanes = hn::Lanes(d);
  V m0 = hn::Set(d, row[0]), m1 = m0, m2 = m0, m3 = m0;
  over_row(
      d, n,
      [&](size_t i) {
        m0 = hn::Max(m0, hn::LoadU(d, row + i));
        m1 = hn::Max(m1, hn::LoadU(d, row + i + lanes));
        m2 = hn::Max(m2, hn::LoadU(d, row + i + 2 * lanes));
        m3 = hn::Max(m3, hn::LoadU(d, row + i + 3 * lanes));
      },
      [&](size_t i) { m0 = hn::Max(m0, hn::LoadU(d, row + i)); },
      [&](size_t i, size_t count) { m0 = hn::Max(m0, load_first(d, row + i, count, m0)); });
  return hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3)));
}

void softmax_row(float* row, int64_t length, float scale) {
  const F d;
  const size_t n = static_cast<size_t>(length), lanes = hn::Lanes(d);
  const V factor = hn::Set(d, scale * 1.44269504f), bias = hn::Mul(row_max(d, row, n), factor);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto weigh = [&](size_t i) {
    const V e = exp2(d, hn::MulSub(hn::LoadU(d, row + i), factor, bias));
    hn::StoreU(e, d, row + i);
    return e;
  };
  over_row(
      d, n,
      [&](size_t i) {
        s0 = hn::Add(s0, weigh(i));
        s1 = hn::Add(s1, weigh(i + lanes));
        s2 = hn::Add(s2, weigh(i + 2 * lanes));
        s3 = hn::Add(s3, weigh(i + 3 * lanes));
      },
      [&](size_t i) { s0 = hn::Add(s0, weigh(i)); },
      [&](size_t i, size_t count) {
        const auto first = hn::FirstN(d, count);
        const V e = exp2(d, hn::MulSub(hn::MaskedLoad(first, d, row + i), factor, bias));
        hn::BlendedStore(e, first, d, row + i);
        s1 = hn::Add(s1, hn::IfThenElseZero(first, e));
      });
  const float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  const V share = hn::Set(d, 1.0f / total);
  const auto normalise = [&](size_t i) { hn::StoreU(hn::Mul(hn::LoadU(d, row + i), share), d, row + i); };
  over_row(
      d, n,
      [&](size_t i) {
        normalise(i);
        normalise(i + lanes);
        normalise(i + 2 * lanes);
        normalise(i + 3 * lanes);
      },
      normalise,
      [&](size_t i, size_t count) {
        const auto first = hn::FirstN(d, count);
        hn::BlendedStore(hn::Mul(hn::MaskedLoad(first, d, row + i), share), first, d, row + i);
      });
}

float dot(F d, const float* a, const float* b, size_t n) {
  const size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto add = [&](V& s, size_t i) { s = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s); };
  over_row(
      d, n,
      [&](size_t i) {
        add(s0, i);
        add(s1, i + lanes);
        add(s2, i + 2 * lanes);
        add(s3, i + 3 * lanes);
      },
      [&](size_t i) { add(s0, i); },
      [&](size_t i, size_t count) {
        const auto first = hn::FirstN(d, count);
        s1 = hn::MulAdd(hn::MaskedLoad(first, d, a + i), hn::MaskedLoad(first, d, b + i), s1);
      });
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void softmax_backward_row(const float* p, float* dp, int64_t length, float scale) {
  const F d;
  const size_t n = static_cast<size_t>(length), lanes = hn::Lanes(d);
  const V factor = hn::Set(d, scale), bias = hn::Set(d, scale * dot(d, p, dp, n));
  const auto one = [&](size_t i) {
    const V ds = hn::Mul(hn::LoadU(d, p + i), hn::MulSub(hn::LoadU(d, dp + i), factor, bias));
    hn::StoreU(ds, d, dp + i);
  };
  over_row(
      d, n,
      [&](size_t i) {
        one(i);
        one(i + lanes);
        one(i + 2 * lanes);
        one(i + 3 * lanes);
      },
      one,
      [&](size_t i, size_t count) {
        const auto first = hn::FirstN(d, count);
        const V scaled = hn::MulSub(hn::MaskedLoad(first, d, dp + i), factor, bias);
        hn::BlendedStore(hn::Mul(hn::MaskedLoad(first, d, p + i), scaled), first, d, dp + i);
      });
}

}  // namespace
}  // namespace heed::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::bench {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_backward_row);

void softmax_row(float* row, int64_t n, float scale) { HWY_DYNAMIC_DISPATCH(softmax_row)(row, n, scale); }

void softmax_backward_row(const float* p, float* dp, int64_t n, float scale) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_row)(p, dp, n, scale);
}

}  // namespace heed::bench

#endif  // HWY_ONCE
