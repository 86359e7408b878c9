// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/weight.h"

#include <algorithm>
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
  const size_t element = dtype == DType::f32 ? sizeof(float) : sizeof(BFloat16);
  return static_cast<size_t>(panels_of(outputs) * Weight::kPanel * inputs) * element;
}

Weight pack_weight(const Weight& from, DType dtype, std::byte* to, Parallel& parallel) noexcept {
  with_type(from.dtype(), [&](auto narrow) {
    const auto w = from.view<decltype(narrow)>();
    with_type(dtype, [&](auto kind) {
      auto* panels = reinterpret_cast<decltype(kind)*>(to);
      parallel.for_each(panels_of(from.outputs()),
                        [&](int64_t p, int) { pack_panel(w, p, panels + p * Weight::kPanel * from.inputs()); });
    });
  });
  return Weight::from_panels(to, from.outputs(), from.inputs(), dtype);
}

void unpack_outputs(const Weight& packed, std::span<const int32_t> outputs, const View<float, 2>& to,
                    Parallel& parallel) noexcept {
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
