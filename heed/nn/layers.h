// SPDX-License-Identifier: Apache-2.0
#pragma once
// The small layers: plain structs with named parameters. They are called with a Pass and hold no state of it.
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>

#include "heed/autograd/parameter.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/kernels/weight.h"
#include "heed/nn/init.h"
#include "heed/nn/pass.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/embedding.h"
#include "heed/ops/linear.h"
#include "heed/ops/norm.h"

namespace heed::nn {

using kernels::Activation;

// A matrix in the order in which products read it, shared by copies of its layer.
using SharedPacking = std::shared_ptr<const kernels::PackedWeight>;

// y = act(x w^T + b): weight [O,I], bias [O].
struct HEED_API Linear {
  Parameter weight, bias;
  SharedPacking packed;  // of the weight: from pack() on, products read it

  Linear() = default;
  // Glorot's uniform weights, zero bias.
  Linear(int64_t in, int64_t out, Init init, bool with_bias = true);
  bool exists() const { return weight.exists(); }
  Var operator()(Pass& pass, const Var& x, Activation activation = Activation::none) const {
    if (packed) return project_packed(pass, x, *packed, bias, activation);
    return ops::linear(pass, x, pass.use(weight), pass.use(bias), activation);
  }
  // For inference: the weight is packed once, in f32, bf16, f16 or int8, and not read again. Does nothing to one in
  // f64; one with more inputs than int8 can have is packed in f32.
  void pack(DType dtype, Parallel& parallel) { packed = packing_of(weight, dtype, parallel); }
  // For inference: the same layer with these of its outputs alone, in this order, stored as this one is. Throws Error
  // for an output that it does not have.
  Linear subset(std::span<const int32_t> outputs, Parallel& parallel) const {
    return subset_of(weight, packed, bias, outputs, parallel);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }

  // A weight of f32 [O,I] as panels; none of one that is empty or in f64.
  static SharedPacking packing_of(const Parameter& weight, DType dtype, Parallel&);
  // What a Linear does with a packed weight. Throws Error where there is a tape: there are no gradients.
  static Var project_packed(const Pass&, const Var& x, const kernels::PackedWeight&, const Parameter& bias,
                            Activation activation);
  // What subset() does, for a weight that is packed or not.
  static Linear subset_of(const Parameter& weight, const SharedPacking& packed, const Parameter& bias,
                          std::span<const int32_t> outputs, Parallel&);
};

// Rows of a table [V,E], times sqrt(E) where it is shared with the output, as Vaswani et al. do.
struct HEED_API Embedding {
  Parameter weight;
  double factor = 1;
  bool tied = false;     // the output reads it, too
  SharedPacking packed;  // of one that is tied: from pack() on, the output reads it

  Embedding() = default;
  Embedding(int64_t vocabulary, int64_t width, Init init);
  Var operator()(Pass& pass, const Tensor& ids) const { return ops::embedding(pass, pass.use(weight), ids, factor); }
  // The tied output: x [...,E] against each row, without the factor. -> [...,V]
  Var output(Pass& pass, const Var& x, const Parameter& bias = {}) const {
    if (packed) return Linear::project_packed(pass, x, *packed, bias, Activation::none);
    return ops::linear(pass, x, pass.use(weight), pass.use(bias));
  }
  // The tied output for these tokens alone (Linear::subset).
  Linear output_subset(std::span<const int32_t> tokens, const Parameter& bias, Parallel& parallel) const {
    return Linear::subset_of(weight, packed, bias, tokens, parallel);
  }
  // For inference; the rows stay as they are.
  void pack(DType dtype, Parallel& parallel) {
    if (tied) packed = Linear::packing_of(weight, dtype, parallel);
  }
  void visit(auto&& each) { each("weight", weight); }
};

enum class NormKind : uint8_t { layer, rms };

// Layer norm or RMS norm of the last dimension.
struct HEED_API Norm {
  Parameter weight, bias;  // no bias: RMS
  NormKind kind = NormKind::layer;
  double eps = 1e-5;

  Norm() = default;
  explicit Norm(int64_t width, NormKind kind = NormKind::layer, double eps = 1e-5);
  Norm(int64_t width, Init init, NormKind kind, double eps);  // the same, or unfilled
  Var operator()(Pass& pass, const Var& x) const {
    return kind == NormKind::layer ? ops::layer_norm(pass, x, pass.use(weight), pass.use(bias), eps)
                                   : ops::rms_norm(pass, x, pass.use(weight), eps);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};

struct FeedForwardOptions {
  int64_t width{0}, inner{0};
  Activation activation{Activation::relu};
  bool gated{false};  // a third product beside the activation
  bool bias{true};
  float dropout{0};  // of what goes into the second product
};

// W2 act(W1 x), or gated, as in SwiGLU: W2 (act(W1 x) * (W3 x)); each with its bias.
struct HEED_API FeedForward {
  Linear first, second, third;  // third: empty where it is not gated
  Activation activation = Activation::relu;
  float dropout = 0;

  FeedForward() = default;
  FeedForward(const FeedForwardOptions&, Init init);
  Var operator()(Pass& pass, const Var& x) const {
    Var inner = first(pass, x, activation);
    if (third.exists()) inner = ops::multiply(pass, inner, third(pass, x));
    return second(pass, ops::dropout(pass, inner, pass.next_dropout(dropout)));
  }
  void visit(auto&& each) { each("first", first), each("second", second), each("third", third); }
};

// The order of sines and cosines in a row: in turn, or all sines in the first half.
enum class SinusoidLayout : uint8_t { interleaved, halves };

constexpr auto enum_names(SinusoidLayout) {
  return std::to_array<EnumName<SinusoidLayout>>(
      {{"interleaved", SinusoidLayout::interleaved}, {"halves", SinusoidLayout::halves}});
}

struct SinusoidOptions {
  SinusoidLayout layout{SinusoidLayout::interleaved};
  int64_t first_position{0};  // of the first row
  DType dtype{DType::f32};
};

// Rows [P,E] to be added to embeddings: sines and cosines of falling frequency (Vaswani et al. 2017).
HEED_API Tensor sinusoids(int64_t positions, int64_t width, const SinusoidOptions& = {});
// -1, -1/2, ... for ALiBi: the slopes of Press et al. for any number of heads.
HEED_API std::vector<float> alibi_slopes(int64_t heads);

}  // namespace heed::nn
