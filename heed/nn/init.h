// SPDX-License-Identifier: Apache-2.0
#pragma once
// Init: how the parameters of a new layer are initialised. An Rng draws them; Init::none() leaves them to be loaded
// from a file: a parameter then has a shape and no memory until a ParameterStore allocates it.
//
//   Linear drawn(4, 4, rng);             // an Rng is an Init
//   Linear empty(4, 4, Init::none());
//
// Not here: reading the file (models/parameter_file.h).
#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/base/rng.h"

namespace heed::nn {

// Numbers of a normal distribution, or uniform in [-bound, bound].
HEED_API Tensor normal(const Shape&, double deviation, Rng&);
HEED_API Tensor uniform(const Shape&, double bound, Rng&);

// An Rng, or none.
class HEED_API Init {
 public:
  Init(Rng& rng) : rng_(&rng) {}  // NOLINT(google-explicit-constructor): a layer takes either
  static Init none() { return {}; }

  bool draws() const { return rng_ != nullptr; }
  Parameter normal(const Shape&, double deviation) const;
  Parameter uniform(const Shape&, double bound) const;
  // Biases and norms: without weight decay.
  Parameter constant(const Shape&, double value) const;

 private:
  Init() = default;
  Rng* rng_ = nullptr;  // borrowed; null: none
};

}  // namespace heed::nn
