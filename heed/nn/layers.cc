#include "heed/nn/layers.h"

namespace heed::nn {

Tensor normal(const Shape& shape, double deviation, Rng& rng) {
  Tensor t = Tensor::uninitialised(shape);
  for (float& x : t.span<float>()) x = static_cast<float>(deviation) * rng.normal();
  return t;
}

Tensor uniform(const Shape& shape, double bound, Rng& rng) {
  Tensor t = Tensor::uninitialised(shape);
  for (float& x : t.span<float>()) x = static_cast<float>(bound) * rng.uniform(-1, 1);
  return t;
}

Linear::Linear(int64_t in, int64_t out, Rng& rng, bool with_bias)
    : weight{uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)), rng)} {
  if (with_bias) bias = {.value = Tensor::zeros({out}), .decay = false};
}

Embedding::Embedding(int64_t vocabulary, int64_t width, Rng& rng)
    : weight{normal({vocabulary, width}, 1 / std::sqrt(static_cast<double>(width)), rng)} {}

Norm::Norm(int64_t width, NormKind norm_kind, double epsilon)
    : weight{.value = Tensor::full({width}, 1), .decay = false}, kind(norm_kind), eps(epsilon) {
  if (kind == NormKind::layer) bias = {.value = Tensor::zeros({width}), .decay = false};
}

FeedForward::FeedForward(int64_t width, int64_t inner, Activation act, float rate, Rng& rng)
    : first(width, inner, rng), second(inner, width, rng), activation(act), dropout(rate) {}

Tensor sinusoids(int64_t positions, int64_t width, DType dtype) {
  const Tensor table = Tensor::uninitialised({positions, width}, DType::f64);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < width; ++i) {
      const int64_t even = i - i % 2;
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(even) / static_cast<double>(width));
      table.data<double>()[p * width + i] = i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return table.converted(dtype);
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
