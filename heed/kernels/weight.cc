// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/weight.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "heed/kernels/product_tiles.h"

namespace heed::kernels {

namespace {

// Panel p of w as `to`, [I][16].
template <class From, class To>
void pack_panel(const View<const From, 2>& w, int64_t p, To* to) {
  const int64_t first = p * Weight::kPanel, outputs = std::min(Weight::kPanel, w.shape(0) - first);
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>) {
    if (outputs == Weight::kPanel && w.stride(1) == 1) {
      return pack_whole_panel(w.at(first), w.stride(0), w.shape(1), to);
    }
  }
  for (int64_t i = 0; i < w.shape(1); ++i, to += Weight::kPanel) {
    const From* from = w.at(first, i);
    for (int64_t j = 0; j < Weight::kPanel; ++j) {
      const float value = j < outputs ? static_cast<float>(from[j * w.stride(0)]) : 0.0f;
      To& entry = to[Weight::place(kDType<To>, j)];
      if constexpr (kDType<To> == DType::f32) {
        entry = value;
      } else {
        entry = To::from(value);
      }
    }
  }
}

// The scale of an output whose largest |w| has these bits; see weight.h.
float int8_scale(uint32_t largest) {
  if (largest >= std::bit_cast<uint32_t>(std::numeric_limits<float>::infinity())) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float most = std::bit_cast<float>(largest);
  if (most < 0x1p-100f) return 0;
  constexpr uint32_t kCut = 0xFF;  // 8 of 24 bits
  return std::bit_cast<float>((std::bit_cast<uint32_t>(most / 127.0f) + kCut) & ~kCut);
}

// Where input i of an output is, from the output's first on.
constexpr int64_t int8_place(int64_t i) {
  return i / Weight::kInner * Weight::kPanel * Weight::kInner + i % Weight::kInner;
}

// The numbers of one output, `stride` apart, into a panel. Gives their scale.
template <class From>
float quantise_output(const From* from, int64_t stride, int64_t inputs, int8_t* to) {
  constexpr uint32_t kMagnitude = 0x7FFFFFFF;
  uint32_t largest = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(static_cast<float>(from[i * stride])) & kMagnitude);
  }
  const float scale = int8_scale(largest);
  if (!(scale > 0)) return scale;
  constexpr float kWhole = 0x1.8p23f;  // added, it leaves no bits for a fraction: to the nearest, ties to even
  for (int64_t i = 0; i < inputs; ++i) {
    to[int8_place(i)] = static_cast<int8_t>((static_cast<float>(from[i * stride]) / scale + kWhole) - kWhole);
  }
  return scale;
}

// Packed weights in int8, to be written to: as Weight has them.
struct Int8Panels {
  int8_t* values;
  float* scales;
  int32_t* starts;

  Int8Panels(std::byte* to, int64_t panels, int64_t inputs)
      : values(reinterpret_cast<int8_t*>(to)),
        scales(reinterpret_cast<float*>(values + panels * Weight::kPanel * Weight::padded_inputs(inputs))),
        starts(reinterpret_cast<int32_t*>(scales + panels * Weight::kPanel)) {}
};

template <class From>
void pack_int8_panel(const View<const From, 2>& w, int64_t p, const Int8Panels& to) {
  const int64_t inputs = w.shape(1), bytes = Weight::kPanel * Weight::padded_inputs(inputs);
  int8_t* const panel = to.values + p * bytes;
  std::fill_n(panel, bytes, int8_t{0});
  for (int64_t j = 0; j < Weight::kPanel; ++j) {
    const int64_t output = p * Weight::kPanel + j;
    int8_t* const q = panel + j * Weight::kInner;
    to.scales[output] = output < w.shape(0) ? quantise_output(w.at(output), w.stride(1), inputs, q) : 0.0f;
    int32_t sum = 0;
    for (int64_t i = 0; i < inputs; ++i) sum += q[int8_place(i)];
    to.starts[output] = -128 * sum;
  }
}

// call(T()) with the type that a dtype of a weight stands for.
template <class Call>
void with_type(DType dtype, const Call& call) {
  if (dtype == DType::f32) call(float{});
  if (dtype == DType::bf16) call(BFloat16{});
  if (dtype == DType::f16) call(Float16{});
}

int64_t panels_of(int64_t outputs) { return (outputs + Weight::kPanel - 1) / Weight::kPanel; }

}  // namespace

size_t packed_weight_bytes(int64_t outputs, int64_t inputs, DType dtype) {
  if (dtype == DType::i8) {
    constexpr auto kOutput = static_cast<int64_t>(sizeof(float) + sizeof(int32_t));
    return static_cast<size_t>(panels_of(outputs) * Weight::kPanel * (Weight::padded_inputs(inputs) + kOutput));
  }
  const size_t element = dtype == DType::f32 ? sizeof(float) : sizeof(BFloat16);
  return static_cast<size_t>(panels_of(outputs) * Weight::kPanel * inputs) * element;
}

Weight pack_weight(const Weight& from, DType dtype, std::byte* to, Parallel& parallel) noexcept {
  with_type(from.dtype(), [&](auto narrow) {
    const auto w = from.view<decltype(narrow)>();
    if (dtype == DType::i8) {
      assert(from.inputs() <= Weight::kMostInt8Inputs);
      const Int8Panels panels(to, panels_of(from.outputs()), from.inputs());
      return parallel.for_each(panels_of(from.outputs()), [&](int64_t p, int) { pack_int8_panel(w, p, panels); });
    }
    with_type(dtype, [&](auto kind) {
      auto* panels = reinterpret_cast<decltype(kind)*>(to);
      parallel.for_each(panels_of(from.outputs()),
                        [&](int64_t p, int) { pack_panel(w, p, panels + p * Weight::kPanel * from.inputs()); });
    });
  });
  return Weight::from_panels(to, from.outputs(), from.inputs(), dtype);
}

void unpack_int8(const Weight& packed, const View<int8_t, 2>& to) noexcept {
  for (int64_t o = 0; o < packed.outputs(); ++o) {
    const int8_t* const q = packed.panel<int8_t>(o / Weight::kPanel) + o % Weight::kPanel * Weight::kInner;
    for (int64_t i = 0; i < packed.inputs(); ++i) to(o, i) = q[int8_place(i)];
  }
}

void unpack_outputs(const Weight& packed, std::span<const int32_t> outputs, const View<float, 2>& to,
                    Parallel& parallel) noexcept {
  if (packed.dtype() == DType::i8) {
    return parallel.for_each(std::ssize(outputs), [&](int64_t row, int) {
      const int64_t output = outputs[static_cast<size_t>(row)];
      const int8_t* const q = packed.panel<int8_t>(output / Weight::kPanel) + output % Weight::kPanel * Weight::kInner;
      const float scale = packed.scales()[output];
      for (int64_t i = 0; i < packed.inputs(); ++i) *to.at(row, i) = static_cast<float>(q[int8_place(i)]) * scale;
    });
  }
  with_type(packed.dtype(), [&](auto kind) {
    parallel.for_each(std::ssize(outputs), [&](int64_t row, int) {
      const int64_t output = outputs[static_cast<size_t>(row)];
      const auto* from = packed.panel<decltype(kind)>(output / Weight::kPanel) +
                         Weight::place(packed.dtype(), output % Weight::kPanel);
      for (int64_t i = 0; i < packed.inputs(); ++i) *to.at(row, i) = static_cast<float>(from[i * Weight::kPanel]);
    });
  });
}

}  // namespace heed::kernels
