// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations: y = act(x), element by element.
//   relu       max(x, 0)
//   gelu       x Phi(x) = x (1 + erf(x / sqrt(2))) / 2
//   gelu_tanh  x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
//   silu       x sigmoid(x)
//   tanh, sigmoid = 1 / (1 + e^-x)
// NaN gives NaN. Views of two dimensions may have any stride between rows; results are the same bits for any number of
// threads.
#include <cstdint>
#include <span>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

enum class Activation : uint8_t { none, relu, gelu, gelu_tanh, silu, tanh, sigmoid };

constexpr auto enum_names(Activation) {
  return std::to_array<EnumName<Activation>>({{"none", Activation::none},
                                              {"relu", Activation::relu},
                                              {"gelu", Activation::gelu},
                                              {"gelu_tanh", Activation::gelu_tanh},
                                              {"silu", Activation::silu},
                                              {"tanh", Activation::tanh},
                                              {"sigmoid", Activation::sigmoid}});
}
constexpr const char* name_of(Activation activation) {
  return enum_names(activation)[static_cast<uint8_t>(activation)].name.data();
}

// y may be x.
HEED_API void activation_forward(Activation, View<const float, 2> x, View<float, 2> y, Parallel&) noexcept;
// dx += dy act'(x), x as forward had it.
HEED_API void activation_backward(Activation, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
                                  Parallel&) noexcept;

// On the calling thread, for kernels that end or begin with an activation.
// y may be x.
HEED_API void activate(Activation, std::span<const float> x, std::span<float> y) noexcept;
// dx = dy act'(x): written, not added to; dx may be dy.
HEED_API void activation_slope(Activation, std::span<const float> x, std::span<const float> dy,
                               std::span<float> dx) noexcept;

}  // namespace heed::kernels
