// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step of SGD, Adam or AdamW over the flat buffers of a parameter store, as PyTorch defines them, and the global
// norm for clipping. Each is one loop; results are the same bits for any number of threads.
// Not here: schedules of the rate, and what keeps the buffers (train/).
#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"

namespace heed::kernels {

// Elements [begin, end) of the flat buffers.
struct ElementRange {
  int64_t begin = 0, end = 0;
};

// What all of them share. Buffers are [n], contiguous.
template <class T>
struct StepBuffers {
  View<T, 1> values{}, gradients{};
  std::span<const ElementRange> decayed{};  // what weight decay touches: rising, disjoint
  double gradient_scale{1};                 // every gradient counts times this: clip_scale(norm, most)
  bool clear_gradients{false};              // leave them zero
};

struct SgdOptions {
  double rate{1e-2};
  double momentum{0};  // with it, `velocity` is needed
  bool nesterov{false};
  double weight_decay{0};
};
// g += weight_decay value;  velocity = momentum velocity + g;  value -= rate velocity
// nesterov: value -= rate (g + momentum velocity). velocity [n] begins at zero; empty where momentum is 0.
HEED_API void sgd_step(const SgdOptions&, const StepBuffers<float>&, View<float, 1> velocity, Parallel&) noexcept;

struct AdamOptions {
  double rate{1e-3};
  double beta1{0.9}, beta2{0.999};
  double eps{1e-8};
  double weight_decay{0};
  bool decoupled{true};  // AdamW: value *= 1 - rate weight_decay. Adam: g += weight_decay value
};
// m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
// value -= rate / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
// step counts from 1; m and v [n] begin at zero.
template <class T>
struct AdamMoments {
  View<T, 1> m{}, v{};
  int64_t step{1};
};
HEED_API void adam_step(const AdamOptions&, const StepBuffers<float>&, const AdamMoments<float>&, Parallel&) noexcept;

// The Euclidean norm, squares added up in double. The workspace has at least gradient_norm_bytes(n).
HEED_API double gradient_norm(View<const float, 1> gradients, Workspace&, Parallel&) noexcept;
HEED_API size_t gradient_norm_bytes(int64_t n);
// What brings a norm down to `most`; 1 if it is below. A norm that is NaN or infinite shows: NaN, or 0.
inline double clip_scale(double norm, double most) {
  const double scale = most / (norm + 1e-6);
  return scale > 1 ? 1 : scale;
}

}  // namespace heed::kernels
