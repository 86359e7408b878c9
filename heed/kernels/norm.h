// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation of rows:
//   layer norm  y = (x - mean) rstd weight + bias,  rstd = 1 / sqrt(mean((x - mean)^2) + eps)
//   RMS norm    y = x rstd weight,                  rstd = 1 / sqrt(mean(x^2) + eps)
// Rows may have any stride. Gradients are accumulated; an empty gradient view means 'not wanted'. Results are the
// same bits for any number of threads. A NaN in x shows in the whole of its row, and nowhere else.
#include <cstddef>
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"

namespace heed::kernels {

template <class T>
struct NormInputs {
  View<const T, 2> x{};       // [rows, width]
  View<const T, 1> weight{};  // [width]; empty: all 1
  View<const T, 1> bias{};    // [width]; empty: none. RMS norm has none
  double eps{1e-5};
};

template <class T>
struct NormOutputs {
  View<T, 2> y{};     // [rows, width], may be x
  View<T, 1> mean{};  // [rows], if wanted: backward needs it. RMS norm has none
  View<T, 1> rstd{};  // [rows], if wanted: backward needs it
};

template <class T>
struct NormGradients {
  View<const T, 1> mean{}, rstd{};  // [rows], as forward gave them
  View<const T, 2> dy{};            // [rows, width]
  View<T, 2> dx{};                  // [rows, width]
  View<T, 1> dweight{}, dbias{};    // [width]
};

HEED_API void layer_norm_forward(const NormInputs<float>&, const NormOutputs<float>&, Parallel&) noexcept;
HEED_API void rms_norm_forward(const NormInputs<float>&, const NormOutputs<float>&, Parallel&) noexcept;

// The workspace has at least norm_backward_bytes(rows, width).
HEED_API void layer_norm_backward(const NormInputs<float>&, const NormGradients<float>&, Workspace&,
                                  Parallel&) noexcept;
HEED_API void rms_norm_backward(const NormInputs<float>&, const NormGradients<float>&, Workspace&, Parallel&) noexcept;
HEED_API size_t norm_backward_bytes(int64_t rows, int64_t width);

}  // namespace heed::kernels
