#pragma once
// The small layers: plain structs with named parameters. They are called with a Pass and hold no state of it.
#include <cmath>
#include <cstdint>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/base/rng.h"
#include "heed/nn/pass.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/embedding.h"
#include "heed/ops/linear.h"
#include "heed/ops/norm.h"

namespace heed::nn {

using kernels::Activation;

// Numbers of a normal distribution, or spread evenly over [-bound, bound].
HEED_API Tensor normal(const Shape&, double deviation, Rng&);
HEED_API Tensor uniform(const Shape&, double bound, Rng&);

// y = act(x w^T + b): weight [O,I], bias [O].
struct HEED_API Linear {
  Parameter weight, bias;

  Linear() = default;
  // Glorot's uniform weights, zero bias.
  Linear(int64_t in, int64_t out, Rng& rng, bool with_bias = true);
  Var operator()(Pass& pass, const Var& x, Activation activation = Activation::none) const {
    return ops::linear(pass, x, pass.use(weight), pass.use(bias), activation);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};

// Rows of a table [V,E], times sqrt(E) where it is shared with the output, as Vaswani et al. do.
struct HEED_API Embedding {
  Parameter weight;
  double factor = 1;

  Embedding() = default;
  Embedding(int64_t vocabulary, int64_t width, Rng& rng);
  Var operator()(Pass& pass, const Tensor& ids) const { return ops::embedding(pass, pass.use(weight), ids, factor); }
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
  Var operator()(Pass& pass, const Var& x) const {
    return kind == NormKind::layer ? ops::layer_norm(pass, x, pass.use(weight), pass.use(bias), eps)
                                   : ops::rms_norm(pass, x, pass.use(weight), eps);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};

// act(x W1^T + b1) W2^T + b2, dropout after the activation.
struct HEED_API FeedForward {
  Linear first, second;
  Activation activation = Activation::relu;
  float dropout = 0;

  FeedForward() = default;
  FeedForward(int64_t width, int64_t inner, Activation activation, float dropout, Rng& rng);
  Var operator()(Pass& pass, const Var& x) const {
    return second(pass, ops::dropout(pass, first(pass, x, activation), pass.next_dropout(dropout)));
  }
  void visit(auto&& each) { each("first", first), each("second", second); }
};

// Positions [P,E] to be added to embeddings: sines and cosines of falling frequency (Vaswani et al. 2017), interleaved.
HEED_API Tensor sinusoids(int64_t positions, int64_t width, DType = DType::f32);
// -1, -1/2, ... for ALiBi: the slopes of Press et al. for any number of heads.
HEED_API std::vector<float> alibi_slopes(int64_t heads);

}  // namespace heed::nn
