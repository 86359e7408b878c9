// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/layers.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"

namespace heed::nn {

Linear::Linear(int64_t in, int64_t out, Init init, bool with_bias)
    : weight(init.uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)))) {
  if (with_bias) bias = init.constant({out}, 0);
}

SharedPacking Linear::packing_of(const Parameter& weight, DType dtype, Parallel& parallel) {
  if (!weight.value || weight.value.dtype() != DType::f32) return nullptr;
  if (dtype == DType::i8 && weight.value.shape(1) > kernels::Weight::kMostInt8Inputs) dtype = DType::f32;
  return std::make_shared<const kernels::PackedWeight>(weight.value.view<const float, 2>(), dtype, parallel);
}

Var Linear::project_packed(const Pass& pass, const Var& x, const kernels::PackedWeight& weight, const Parameter& bias,
                           Activation activation) {
  if (pass.tape) throw Error("linear: a tape came, expected none: a packed weight is for inference alone");
  return ops::linear(pass, x.value(), weight, bias.value, activation);
}

namespace {

// Rows of a tensor [O] or [O,I], one after the other; none of one that is not there.
Tensor gathered(const Tensor& from, std::span<const int32_t> rows) {
  if (!from) return {};
  const Tensor to = Tensor::uninitialised(from.shape().with(0, std::ssize(rows)), from.dtype());
  const int64_t width = from.size() / from.shape(0);
  with_float("linear", from.dtype(), [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < std::ssize(rows); ++i) {
      std::copy_n(from.data<T>() + rows[static_cast<size_t>(i)] * width, width, to.data<T>() + i * width);
    }
  });
  return to;
}

}  // namespace

Linear Linear::subset_of(const Parameter& weight, const SharedPacking& packed, const Parameter& bias,
                         std::span<const int32_t> outputs, Parallel& parallel) {
  const int64_t all = packed ? packed->weight().outputs() : weight.shape()[0];
  for (const int32_t output : outputs) {
    if (output >= 0 && output < all) continue;
    throw Error("linear: an output of the subset is " + std::to_string(output) + ", expected 0 to " +
                std::to_string(all - 1));
  }
  Tensor rows = gathered(weight.value, outputs);
  if (!rows) {  // of a packed layer, that may be all there is
    rows = Tensor::uninitialised({std::ssize(outputs), packed->weight().inputs()});
    kernels::unpack_outputs(*packed, outputs, rows.view<float, 2>(), parallel);
  }
  Linear some;
  some.bias.value = gathered(bias.value, outputs);
  some.weight.value = rows;
  if (!packed) return some;
  some.pack(packed->weight().dtype(), parallel);
  some.weight.value = {};
  return some;
}

Embedding::Embedding(int64_t vocabulary, int64_t width, Init init)
    : weight(init.normal({vocabulary, width}, 1 / std::sqrt(static_cast<double>(width)))) {}

Norm::Norm(int64_t width, NormKind norm_kind, double epsilon)
    : weight{.value = Tensor::full({width}, 1), .decay = false}, kind(norm_kind), eps(epsilon) {
  if (kind == NormKind::layer) bias = {.value = Tensor::zeros({width}), .decay = false};
}

Norm::Norm(int64_t width, Init init, NormKind norm_kind, double epsilon)
    : weight(init.constant({width}, 1)), kind(norm_kind), eps(epsilon) {
  if (kind == NormKind::layer) bias = init.constant({width}, 0);
}

FeedForward::FeedForward(const FeedForwardOptions& o, Init init)
    : first(o.width, o.inner, init, o.bias),
      second(o.inner, o.width, init, o.bias),
      activation(o.activation),
      dropout(o.dropout) {
  if (o.gated) third = Linear(o.width, o.inner, init, o.bias);
}

Tensor sinusoids(int64_t positions, int64_t width, const SinusoidOptions& o) {
  const Tensor table = Tensor::uninitialised({positions, width}, DType::f64);
  const bool halves = o.layout == SinusoidLayout::halves;
  const int64_t sines = (width + 1) / 2;
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < width; ++i) {
      const bool is_sine = halves ? i < sines : i % 2 == 0;
      const int64_t pair = halves ? (is_sine ? i : i - sines) : i / 2;
      const double angle = static_cast<double>(o.first_position + p) *
                           std::pow(10000.0, -static_cast<double>(2 * pair) / static_cast<double>(width));
      table.data<double>()[p * width + i] = is_sine ? std::sin(angle) : std::cos(angle);
    }
  }
  return table.converted(o.dtype);
}

std::vector<float> alibi_slopes(int64_t heads) {
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<float> slopes;
  for (int64_t h = 0; h < heads; ++h) {
    // For the first 2^n heads 2^(-8 i / 2^n), i from 1; for the others the odd ones of twice as many.
    const double exponent = h < power ? -8.0 * static_cast<double>(h + 1) / static_cast<double>(power)
                                      : -4.0 * static_cast<double>(2 * (h - power) + 1) / static_cast<double>(power);
    slopes.push_back(static_cast<float>(std::exp2(exponent)));
  }
  return slopes;
}

}  // namespace heed::nn
