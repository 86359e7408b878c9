// SPDX-License-Identifier: Apache-2.0
// x W^T in int8. Panels of W hold 16 outputs with four inputs of each side by side, 64 bytes. Few rows are bound by
// reading W: several panels are streamed side by side. Many rows are bound by arithmetic: a few panels stay in the
// cache while all rows pass over them. Sums of integers are exact in any order, so tiles may be cut as is best.
//
// This file is compiled without contraction of a product and a sum into one operation (CMakeLists.txt): not every
// instruction set has it, and results are the same bits on all.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/product_int8.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <span>

#include "heed/base/workspace.h"
#include "heed/kernels/product_int8.h"
#include "heed/kernels/product_tiles.h"
#include "heed/kernels/vec-inl.h"

#ifndef HEED_KERNELS_PRODUCT_INT8_ONCE_
#define HEED_KERNELS_PRODUCT_INT8_ONCE_
namespace heed::kernels {

struct Int8Call {
  const LinearInt8Inputs& in;
  const View<float, 2>& y;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

using I = hn::RebindToSigned<F>;
using VI = hn::Vec<I>;

constexpr int64_t kPanel = Weight::kPanel, kInner = Weight::kInner;
constexpr int64_t kStep = kPanel * kInner;  // bytes of a panel for kInner inputs
constexpr int kVectors = static_cast<int>(kPanel / kLanes);
// Rows of a block, and panels beside each other: as many accumulators as leave registers for the factors.
constexpr int kMostRows = kManyRegisters ? 8 : kVectors < 4 ? 4 : 2;
constexpr int kFewRows = kMostRows / 2;
constexpr int panels_beside(int rows) { return !kManyRegisters ? 1 : rows <= kFewRows ? 4 : 2; }

// The two ways to add four products to each output's sum. x is a row, w the vector of a panel for kInner inputs.

// AVX-512 VNNI: products of unsigned and signed bytes. As assembly, because the target of this file is AVX-512 without
// it. Highway's next one has many more conditions than this one instruction, which older processors do not meet.
struct Bytes {
  static constexpr int64_t kBytes = kInner;  // of x
  struct Factor {
    VI w;
  };
  static HWY_INLINE Factor load(I d, const int8_t* w) { return {hn::LoadU(d, reinterpret_cast<const int32_t*>(w))}; }
  static HWY_INLINE VI start(I d, const int32_t* sums) { return hn::LoadU(d, sums); }
  struct Row {
    VI x;
  };
  static HWY_INLINE Row row(I d, const std::byte* x) {
    int32_t four;
    std::memcpy(&four, x, sizeof(four));
    return {hn::Set(d, four)};
  }
  static HWY_INLINE void add(I, const Row& row, const Factor& factor, VI& sum) {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
    asm("vpdpbusd %[w], %[x], %[sum]" : [sum] "+v"(sum.raw) : [x] "v"(row.x.raw), [w] "v"(factor.w.raw));
#else
    (void)row, (void)factor, (void)sum;
#endif
  }
};

// Products of 16 bits, which pairs of inputs are added up from: bytes 0 and 2 of each word of w, and bytes 1 and 3.
// None of them saturates: a sum of two products is at most 2 * 127 * 127.
struct Words {
  static constexpr int64_t kBytes = kInner * 2;
  static HWY_INLINE VI start(I d, const int32_t*) { return hn::Zero(d); }
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  using I16 = hn::Repartition<int16_t, I>;
  struct Factor {
    hn::Vec<I16> even, odd;
  };
  static HWY_INLINE Factor load(I, const int8_t* from) {
    const I16 d16;
    const auto w = hn::LoadU(d16, reinterpret_cast<const int16_t*>(from));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(w)), hn::ShiftRight<8>(w)};
  }
  struct Row {
    hn::Vec<I16> even, odd;
  };
  static HWY_INLINE Row row(I d, const std::byte* x) {
    int32_t pairs[2];
    std::memcpy(pairs, x, sizeof(pairs));
    const I16 d16;
    return {hn::BitCast(d16, hn::Set(d, pairs[0])), hn::BitCast(d16, hn::Set(d, pairs[1]))};
  }
  static HWY_INLINE void add(I d, const Row& row, const Factor& factor, VI& sum) {
    VI unused = hn::Zero(d);  // on x86 the pairs of a lane are added up in it
    sum = hn::ReorderWidenMulAccumulate(d, row.even, factor.even, sum, unused);
    sum = hn::ReorderWidenMulAccumulate(d, row.odd, factor.odd, sum, unused);
  }
#else  // in 32 bits: elsewhere it is not said which pairs come together
  struct Factor {
    VI w[kInner];
  };
  static HWY_INLINE Factor load(I d, const int8_t* from) {
    const VI w = hn::LoadU(d, reinterpret_cast<const int32_t*>(from));
    return {{hn::ShiftRight<24>(hn::ShiftLeft<24>(w)), hn::ShiftRight<24>(hn::ShiftLeft<8>(w)),
             hn::ShiftRight<24>(hn::ShiftLeft<16>(w)), hn::ShiftRight<24>(w)}};
  }
  struct Row {
    VI x[kInner];
  };
  static HWY_INLINE Row row(I d, const std::byte* x) {
    int16_t four[kInner];
    std::memcpy(four, x, sizeof(four));
    return {{hn::Set(d, four[0]), hn::Set(d, four[1]), hn::Set(d, four[2]), hn::Set(d, four[3])}};
  }
  static HWY_INLINE void add(I, const Row& row, const Factor& factor, VI& sum) {
    for (int64_t i = 0; i < kInner; ++i) sum = hn::Add(sum, hn::Mul(row.x[i], factor.w[i]));
  }
#endif
};

// Rows of x and y from here on.
struct Int8Block {
  const std::byte* x;
  const float* scales;
  float* y;
  int64_t y_stride;
};

// The sums of one row and one vector of outputs become y.
HWY_INLINE void finish(F d, const Int8Call& call, VI sum, const Int8Block& block, int64_t r, int64_t column) {
  const int64_t left = call.y.shape(1) - column;
  float* y = block.y + r * block.y_stride + column;
  const float* const scales = call.in.w.scales() + column;
  const float* const bias = call.in.b ? call.in.b.data() + column : nullptr;
  const V scale = hn::Mul(hn::Set(d, block.scales[r]), hn::LoadU(d, scales));
  V value = hn::Mul(hn::ConvertTo(d, sum), scale);
  if (left >= kLanes) {
    if (bias) value = hn::Add(value, hn::LoadU(d, bias));
    return hn::StoreU(value, d, y);
  }
  if (left <= 0) return;
  if (bias) value = hn::Add(value, load_part(d, bias, left));
  HWY_ALIGN float whole[kLanes];
  hn::Store(value, d, whole);
  std::memcpy(y, whole, static_cast<size_t>(left) * sizeof(float));
}

// R rows times P panels, the first of which is that of `column`.
template <class Dot, int R, int P>
HWY_NOINLINE void multiply(const Int8Call& call, const Int8Block& block, int64_t column) {
  const I d;
  const Weight& w = call.in.w;
  const int64_t apart = kPanel * w.padded_inputs(), steps = w.padded_inputs() / kInner, stride = call.in.x.stride;
  const int8_t* panel = w.panel<int8_t>(column / kPanel);
  const std::byte* x = block.x;
  VI sum[R][P * kVectors];
  unrolled<P * kVectors>([&](auto n) HEED_INLINED {
    const VI start = Dot::start(d, w.starts() + column + n * kLanes);
    unrolled<R>([&](auto r) HEED_INLINED { sum[r][n] = start; });
  });
  for (int64_t k = 0; k < steps; ++k, panel += kStep, x += Dot::kBytes) {
    typename Dot::Factor factor[P * kVectors];
    unrolled<P * kVectors>([&](auto n) HEED_INLINED {
      constexpr int p = n / kVectors, v = n % kVectors;
      factor[n] = Dot::load(d, panel + p * apart + v * kLanes * kInner);
    });
    unrolled<R>([&](auto r) HEED_INLINED {
      const typename Dot::Row row = Dot::row(d, x + r * stride);
      unrolled<P * kVectors>([&](auto n) HEED_INLINED { Dot::add(d, row, factor[n], sum[r][n]); });
    });
  }
  unrolled<R * P * kVectors>([&](auto n) HEED_INLINED {
    constexpr int r = n / (P * kVectors), v = n % (P * kVectors);
    finish(F(), call, sum[r][v], block, r, column + v * kLanes);
  });
}

// call(R) for the constant R = rows.
template <int Most, class Call>
HWY_INLINE void with_count(int64_t rows, const Call& call) {
  unrolled<Most>([&](auto n) HEED_INLINED {
    if (rows == n + 1) call(std::integral_constant<int, n + 1>());
  });
}

template <class Dot>
void multiply_tile(const Int8Call& call, const Tile& tile) {
  const int64_t blocks = (tile.rows + kMostRows - 1) / kMostRows;
  const int64_t beside = panels_beside(static_cast<int>(std::min<int64_t>(tile.rows, kMostRows)));
  for (int64_t column = tile.column, end = tile.column + tile.columns, panels; column < end;
       column += panels * kPanel) {
    panels = end - column > (beside - 1) * kPanel ? beside : 1;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t row = tile.row + tile.rows * b / blocks, after = tile.row + tile.rows * (b + 1) / blocks;
      const Int8Block block{call.in.x.values + row * call.in.x.stride, call.in.x.scales + row, call.y.at(row),
                            call.y.stride(0)};
      with_count<kMostRows>(after - row, [&](auto R) {
        constexpr int kRows = R;
        if (panels == 1) return multiply<Dot, kRows, 1>(call, block, column);
        if (panels == 2) return multiply < Dot, kRows, kManyRegisters ? 2 : 1 > (call, block, column);
        if constexpr (kRows <= kFewRows) multiply<Dot, kRows, kManyRegisters ? 4 : 1>(call, block, column);
      });
    }
  }
}

void linear_int8_tile(const Int8Call& call, const Tile& tile) {
  if (call.in.x.form == Int8Form::words) return multiply_tile<Words>(call, tile);
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
  multiply_tile<Bytes>(call, tile);
#else
  assert(false);  // the processor has no instruction for it
#endif
}

Int8Form best_form() {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) return Int8Form::bytes;
#endif
  return Int8Form::words;
}

// The bits of the largest |x|: those of a NaN are above those of infinity.
uint32_t largest_bits(F d, const float* x, int64_t inputs) {
  const hn::RebindToUnsigned<F> du;
  const auto magnitude = hn::Set(du, 0x7FFFFFFFu);
  auto most = hn::Zero(du);
  int64_t i = 0;
  for (; i + kLanes <= inputs; i += kLanes) {
    most = hn::Max(most, hn::And(hn::BitCast(du, hn::LoadU(d, x + i)), magnitude));
  }
  if (i < inputs) most = hn::Max(most, hn::And(hn::BitCast(du, load_part(d, x + i, inputs - i)), magnitude));
  return hn::GetLane(hn::MaxOfLanes(du, most));
}

// kLanes inputs; `to` has room for all of them.
HWY_INLINE void store_quantised(I d, VI q, Int8Form form, std::byte* to) {
  if (form == Int8Form::bytes) {
    const hn::Rebind<uint8_t, I> d8;
    hn::StoreU(hn::DemoteTo(d8, hn::Add(q, hn::Set(d, 128))), d8, reinterpret_cast<uint8_t*>(to));
  } else {
    const hn::Rebind<int16_t, I> d16;
    hn::StoreU(hn::DemoteTo(d16, q), d16, reinterpret_cast<int16_t*>(to));
  }
}

// The second and the third of each four 16-bit words change places.
void swap_middle(std::byte* words, int64_t count) {
  for (int64_t i = 0; i < count; i += kInner, words += sizeof(uint64_t)) {
    uint64_t four;
    std::memcpy(&four, words, sizeof(four));
    four = (four & 0xFFFF00000000FFFFu) | (four << 16 & 0x0000FFFF00000000u) | (four >> 16 & 0x00000000FFFF0000u);
    std::memcpy(words, &four, sizeof(four));
  }
}

// One row; gives its scale.
float quantise(const float* x, int64_t inputs, Int8Form form, std::byte* to) {
  const F d;
  const uint32_t bits = largest_bits(d, x, inputs);
  const float most = std::bit_cast<float>(bits);
  const bool finite = bits < 0x7F800000u, zero = !finite || most < 0x1p-100f;
  const V factor = hn::Set(d, zero ? 0.0f : 127.0f / most);
  const int64_t width = form == Int8Form::bytes ? 1 : 2, padded = Weight::padded_inputs(inputs);
  const auto rounded = [&](V value) HEED_INLINED {
    return hn::NearestInt(zero ? hn::Zero(d) : hn::Mul(value, factor));  // not NaN times 0
  };
  int64_t i = 0;
  for (; i + kLanes <= inputs; i += kLanes) store_quantised(I(), rounded(hn::LoadU(d, x + i)), form, to + i * width);
  for (; i < padded; i += kLanes) {  // once, but for the scalar code
    HWY_ALIGN std::byte whole[kLanes * sizeof(int16_t)];
    store_quantised(I(), rounded(load_part(d, x + i, inputs - i)), form, whole);
    std::memcpy(to + i * width, whole, static_cast<size_t>(std::min(kLanes, padded - i) * width));
  }
  if (form == Int8Form::words) swap_middle(to, padded);
  return !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : most / 127.0f;
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::kernels {

HWY_EXPORT(linear_int8_tile);
HWY_EXPORT(best_form);
HWY_EXPORT(quantise);

namespace {

int64_t row_bytes(int64_t inputs, Int8Form form) {
  const int64_t whole = Weight::padded_inputs(inputs);
  return form == Int8Form::bytes ? whole : 2 * whole;
}

int64_t scales_bytes(int64_t rows) {
  constexpr auto kUnit = static_cast<int64_t>(Workspace::kAlignment);
  return (rows * static_cast<int64_t>(sizeof(float)) + kUnit - 1) / kUnit * kUnit;
}

// Each task is worth its start, and there are several of a large product, for a few threads.
Tiling int8_tiling(int64_t rows, int64_t outputs, int64_t inputs) {
  constexpr int64_t kRows = 128, kGroup = 4 * Weight::kPanel;
  constexpr int64_t kLeast = 1 << 20;  // products
  const int64_t group = std::max<int64_t>(1, std::min(rows, kRows) * inputs * kGroup);
  return {rows, outputs, {kRows, kGroup * std::max<int64_t>(1, kLeast / group)}, kGroup};
}

}  // namespace

Int8Form best_int8_form() { return HWY_DYNAMIC_DISPATCH(best_form)(); }

size_t quantised_rows_bytes(int64_t rows, int64_t inputs) {
  return static_cast<size_t>(scales_bytes(rows) + rows * row_bytes(inputs, Int8Form::words));
}

QuantisedRows quantise_rows(const View<const float, 2>& x, Int8Form form, std::byte* to, Parallel& parallel) noexcept {
  const int64_t rows = x.shape(0), inputs = x.shape(1), stride = row_bytes(inputs, form);
  auto* const scales = reinterpret_cast<float*>(to);
  std::byte* const values = to + scales_bytes(rows);
  constexpr int64_t kRows = 16;  // of a task
  parallel.for_each((rows + kRows - 1) / kRows, [&](int64_t task, int) {
    for (int64_t r = task * kRows; r < std::min(rows, (task + 1) * kRows); ++r) {
      scales[r] = HWY_DYNAMIC_DISPATCH(quantise)(x.at(r), inputs, form, values + r * stride);
    }
  });
  return {values, scales, rows, inputs, stride, form};
}

void linear_int8(const LinearInt8Inputs& in, const View<float, 2>& y, Activation activation,
                 Parallel& parallel) noexcept {
  assert(in.w.dtype() == DType::i8 && in.w.inputs() == in.x.inputs && y.shape(0) == in.x.rows);
  const Int8Call call{in, y};
  const Tiling tiling = int8_tiling(y.shape(0), y.shape(1), in.x.inputs);
  parallel.for_each(tiling.count(), [&](int64_t task, int) {
    const Tile tile = tiling[task];
    HWY_DYNAMIC_DISPATCH(linear_int8_tile)(call, tile);
    if (activation == Activation::none) return;
    for (int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
      const std::span<float> row(y.at(r, tile.column), static_cast<size_t>(tile.columns));
      activate(activation, row, row);
    }
  });
}

}  // namespace heed::kernels

#endif  // HWY_ONCE
