// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/init.h"

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

Parameter Init::normal(const Shape& shape, double deviation) const {
  return rng_ ? Parameter{.value = nn::normal(shape, deviation, *rng_)} : Parameter::unfilled(shape);
}

Parameter Init::uniform(const Shape& shape, double bound) const {
  return rng_ ? Parameter{.value = nn::uniform(shape, bound, *rng_)} : Parameter::unfilled(shape);
}

Parameter Init::constant(const Shape& shape, double value) const {
  Parameter parameter = rng_ ? Parameter{.value = Tensor::full(shape, value)} : Parameter::unfilled(shape);
  parameter.decay = false;
  return parameter;
}

}  // namespace heed::nn
