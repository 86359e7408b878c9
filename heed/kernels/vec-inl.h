// SPDX-License-Identifier: Apache-2.0
// SIMD helpers that several kernels share: 2^x with exact zeros, transposes into and out of vector lanes, a finiteness
// test. Compiled once for each SIMD target, by inclusion from a kernel's source after hwy/foreach_target.h.
#if defined(HEED_KERNELS_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_VEC_INL_H_
#undef HEED_KERNELS_VEC_INL_H_
#else
#define HEED_KERNELS_VEC_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <utility>

#include "heed/base/half.h"
#include "hwy/highway.h"

// For a lambda that must be inlined into the function around it: a call would pass vectors through memory.
#ifndef HEED_INLINED
#define HEED_INLINED HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// Lanes of a vector, as a constant: tiles are laid out by it. (No scalable target is built: SVE would need another
// layout.)
constexpr int64_t kLanes = HWY_LANES(float);

// Whether there are 32 vector registers, not 16.
constexpr bool kManyRegisters = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

// f(0), f(1) ... f(N - 1), the index a constant expression: for loops over accumulators in registers. A plain loop is
// unrolled too late: by then the compiler has spilled the arrays to memory.
template <int N, class Function>
HWY_INLINE void unrolled(const Function& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) HEED_INLINED { (f(std::integral_constant<int, I>()), ...); }
  (std::make_integer_sequence<int, N>());
}

// Rows in memory, `stride` elements apart.
template <class T>
struct RowsOf {
  T* data;
  int64_t stride;
  T* row(int64_t i) const { return data + i * stride; }
  RowsOf from(int64_t i) const { return {row(i), stride}; }
};
using Rows = RowsOf<const float>;

// `count` rows of `columns` elements.
template <class T>
struct MatrixOf {
  RowsOf<T> rows;
  int64_t count, columns;
};
using Matrix = MatrixOf<const float>;

// kLanes elements from memory, widened to f32.
HWY_INLINE V load_wide(F d, const float* p) { return hn::LoadU(d, p); }
HWY_INLINE V load_wide(F d, const BFloat16* p) {
  const hn::Rebind<uint16_t, F> dh;
  const hn::RebindToUnsigned<F> du;
  const auto bits = hn::LoadU(dh, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}
HWY_INLINE V load_wide(F d, const Float16* p) {
  const hn::Rebind<hwy::float16_t, F> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
}

// Lanes [0, left) of a row, zero beyond. Never reads past the row, as a masked load may do on some targets.
template <class T>
HWY_INLINE V load_part(F d, const T* p, int64_t left) {
  if (left >= kLanes) return load_wide(d, p);
  HWY_ALIGN T part[kLanes] = {};
  std::memcpy(part, p, static_cast<size_t>(left < 0 ? 0 : left) * sizeof(T));
  return load_wide(d, part);
}

// The larger of the two; NaN in x stays NaN. x86's max returns its second operand where one is NaN; Highway's scalar
// target drops the NaN, and Highway promises nothing.
HWY_INLINE V max_keep_nan(F d, V floor, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  (void)d;
  return hn::Max(floor, x);
#else
  (void)d;
  return hn::IfThenElse(hn::Lt(x, floor), floor, x);
#endif
}

// x[i] <- 2^(x[i] - m) for an integer m = whole[i % M] of magnitude below kExp2Whole, where x - m <= 127; relative
// error below 2^-23, NaN for NaN. Exactly 0 for x - m <= -127, -inf included. x is rounded to an integer by adding a
// magic number so large that the integer lands in the lowest mantissa bits, with the exponent's bias and -m already
// included: no bit of x is lost to m. Several vectors go through each step together: one alone is a dependency chain of
// forty cycles, and a core's scheduler holds too few such chains to overlap them.
constexpr float kExp2Whole = 0x1p21f;

template <int N, int M>
HWY_INLINE void exp2_less(F d, const V (&whole)[M], V (&x)[N]) {
  const hn::RebindToUnsigned<F> du;
  V magic[M], low[M], shifted[N], p[N];
  for (int i = 0; i < M; ++i) {
    magic[i] = hn::Sub(hn::Set(d, 0x1.8p23f + 127.0f), whole[i]);
    low[i] = hn::Sub(whole[i], hn::Set(d, 127.0f));
  }
  for (int i = 0; i < N; ++i) x[i] = max_keep_nan(d, low[i % M], x[i]);
  for (int i = 0; i < N; ++i) shifted[i] = hn::Add(x[i], magic[i % M]);
  for (int i = 0; i < N; ++i) x[i] = hn::Sub(x[i], hn::Sub(shifted[i], magic[i % M]));
  // Minimax of degree 6 on [-1/2, 1/2] with the constant term held at 1.
  const float terms[] = {0x1.5f3e52p-10f, 0x1.3b2d4cp-7f, 0x1.c6aee8p-5f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f, 1.0f};
  for (int i = 0; i < N; ++i) p[i] = hn::Set(d, 0x1.41fbbcp-13f);
  for (const float term : terms) {
    for (int i = 0; i < N; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, term));
  }
  // A product, not a sum of exponents: a NaN stays one whatever its payload.
  for (int i = 0; i < N; ++i) {
    x[i] = hn::Mul(p[i], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted[i]))));
  }
}

// x[i] <- 2^x[i].
template <int N>
HWY_INLINE void exp2(F d, V (&x)[N]) {
  const V zero[] = {hn::Zero(d)};
  exp2_less(d, zero, x);
}

HWY_INLINE V exp2(F d, V x) {
  V one[1] = {x};
  exp2(d, one);
  return one[0];
}

// 2^n for an integer n <= 0, exactly; 0 for n <= -127.
HWY_INLINE V exp2_integer(F d, V n) {
  const hn::RebindToUnsigned<F> du;
  n = max_keep_nan(d, hn::Set(d, -127.0f), n);
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, hn::Add(n, hn::Set(d, 0x1.8p23f + 127.0f)))));
  return hn::IfThenElse(hn::Eq(n, n), scale, n);
}

#if HWY_TARGET != HWY_SCALAR
// A vector of 128-bit blocks, block b from p + 4 b stride: four columns of rows 0, 4, 8 ...
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* p, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kHalf = hn::MaxLanes(D()) / 2;
    return hn::Combine(d, load_blocks(half, p + kHalf * stride, stride), load_blocks(half, p, stride));
  }
}
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* p, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> half;
    constexpr int64_t kHalf = hn::MaxLanes(D()) / 2;
    store_blocks(half, hn::LowerHalf(half, v), p, stride);
    store_blocks(half, hn::UpperHalf(half, v), p + kHalf * stride, stride);
  }
}

// Each 128-bit block of the four vectors is a 4 x 4 matrix: transposes it.
HWY_INLINE void transpose_blocks(F d, V& v0, V& v1, V& v2, V& v3) {
  const hn::Repartition<double, F> dd;
  const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, v0, v1));
  const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, v2, v3));
  const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, v0, v1));
  const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, v2, v3));
  v0 = hn::BitCast(d, hn::InterleaveLower(dd, low01, low23));
  v1 = hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23));
  v2 = hn::BitCast(d, hn::InterleaveLower(dd, high01, high23));
  v3 = hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23));
}
#endif

#if HWY_CAP_GE512
// A 4 x 4 matrix of 128-bit blocks: transposes it.
HWY_INLINE void transpose_of_blocks(F d, V& v0, V& v1, V& v2, V& v3) {
  const V low02 = hn::ConcatLowerLower(d, v2, v0), low13 = hn::ConcatLowerLower(d, v3, v1);
  const V high02 = hn::ConcatUpperUpper(d, v2, v0), high13 = hn::ConcatUpperUpper(d, v3, v1);
  v0 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
  v1 = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
  v2 = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
  v3 = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
}

// 16 x 16 in registers, row 4 g + i in v[g][i]: transposes it.
HWY_INLINE void transpose_whole(F d, V (&v)[4][4]) {
  for (int g = 0; g < 4; ++g) transpose_blocks(d, v[g][0], v[g][1], v[g][2], v[g][3]);
  for (int i = 0; i < 4; ++i) transpose_of_blocks(d, v[0][i], v[1][i], v[2][i], v[3][i]);
}
#endif

// Into lanes: to[c][r] = factor[r] * from[r][c] for kLanes rows r and `columns` columns c; rows of `to` are aligned.
HWY_INLINE void transpose_in(F d, Rows from, int64_t columns, V factor, RowsOf<float> to) {
  int64_t c = 0;
#if HWY_CAP_GE512
  // A whole cache line of each row at a time: where rows share a set of the cache, they are gone at a second visit.
  for (; c + kLanes <= columns; c += kLanes) {
    V v[4][4];
    for (int r = 0; r < kLanes; ++r) v[r / 4][r % 4] = hn::LoadU(d, from.row(r) + c);
    transpose_whole(d, v);
    for (int i = 0; i < kLanes; ++i) hn::Store(hn::Mul(v[i / 4][i % 4], factor), d, to.row(c + i));
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  for (; c + 4 <= columns; c += 4) {
    V v0 = load_blocks(d, from.row(0) + c, from.stride);
    V v1 = load_blocks(d, from.row(1) + c, from.stride);
    V v2 = load_blocks(d, from.row(2) + c, from.stride);
    V v3 = load_blocks(d, from.row(3) + c, from.stride);
    transpose_blocks(d, v0, v1, v2, v3);
    hn::Store(hn::Mul(v0, factor), d, to.row(c));
    hn::Store(hn::Mul(v1, factor), d, to.row(c + 1));
    hn::Store(hn::Mul(v2, factor), d, to.row(c + 2));
    hn::Store(hn::Mul(v3, factor), d, to.row(c + 3));
  }
#endif
  HWY_ALIGN float column[kLanes];
  for (; c < columns; ++c) {
    for (int64_t r = 0; r < kLanes; ++r) column[r] = from.row(r)[c];
    hn::Store(hn::Mul(hn::Load(d, column), factor), d, to.row(c));
  }
}

// Out of lanes: to[r][c] = factor[r] * from[c][r] for kLanes rows r and `columns` columns c.
HWY_INLINE void transpose_out(F d, Rows from, int64_t columns, V factor, RowsOf<float> to) {
  int64_t c = 0;
#if HWY_CAP_GE512
  // Whole rows of 16 at a time: four stores of 16 bytes for each would take longer than all shuffles.
  for (; c + kLanes <= columns; c += kLanes) {
    V v[4][4];
    for (int i = 0; i < kLanes; ++i) v[i / 4][i % 4] = hn::Mul(hn::Load(d, from.row(c + i)), factor);
    transpose_whole(d, v);
    for (int r = 0; r < kLanes; ++r) hn::StoreU(v[r / 4][r % 4], d, to.row(r) + c);
  }
#endif
#if HWY_TARGET != HWY_SCALAR
  for (; c + 4 <= columns; c += 4) {
    V v0 = hn::Mul(hn::Load(d, from.row(c)), factor);
    V v1 = hn::Mul(hn::Load(d, from.row(c + 1)), factor);
    V v2 = hn::Mul(hn::Load(d, from.row(c + 2)), factor);
    V v3 = hn::Mul(hn::Load(d, from.row(c + 3)), factor);
    transpose_blocks(d, v0, v1, v2, v3);
    store_blocks(d, v0, to.row(0) + c, to.stride);
    store_blocks(d, v1, to.row(1) + c, to.stride);
    store_blocks(d, v2, to.row(2) + c, to.stride);
    store_blocks(d, v3, to.row(3) + c, to.stride);
  }
#endif
  HWY_ALIGN float column[kLanes];
  for (; c < columns; ++c) {
    hn::Store(hn::Mul(hn::Load(d, from.row(c)), factor), d, column);
    for (int64_t r = 0; r < kLanes; ++r) to.row(r)[c] = column[r];
  }
}

// Whether all elements are finite: x * 0 is 0 then, and NaN otherwise.
inline bool all_finite(F d, Matrix x) {
  const int64_t columns = x.columns;
  const V zero = hn::Zero(d);
  V sum[4] = {zero, zero, zero, zero};  // independent chains: bound by loads, not by latency
  float tail = 0;
  const float* p = x.rows.data;
  for (int64_t r = 0; r < x.count; ++r, p += x.rows.stride) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
      for (int i = 0; i < 4; ++i) sum[i] = hn::MulAdd(hn::LoadU(d, p + c + i * kLanes), zero, sum[i]);
    }
    for (; c + kLanes <= columns; c += kLanes) sum[0] = hn::MulAdd(hn::LoadU(d, p + c), zero, sum[0]);
    for (; c < columns; ++c) tail += p[c] * 0.0f;
  }
  const V total = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  return hn::AllTrue(d, hn::Eq(total, zero)) && tail == 0.0f;
}

inline void copy_rows(Matrix from, RowsOf<float> to) {
  for (int64_t r = 0; r < from.count; ++r) {
    std::memcpy(to.row(r), from.rows.row(r), static_cast<size_t>(from.columns) * sizeof(float));
  }
}

// The same, widened to f32.
template <class T>
inline void widen_rows(F d, MatrixOf<const T> from, RowsOf<float> to) {
  const T* x = from.rows.data;
  float* y = to.data;
  for (int64_t r = 0; r < from.count; ++r, x += from.rows.stride, y += to.stride) {
    int64_t c = 0;
    for (; c + kLanes <= from.columns; c += kLanes) hn::StoreU(load_wide(d, x + c), d, y + c);
    for (; c < from.columns; ++c) y[c] = static_cast<float>(x[c]);
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
