// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution along the tokens of sequences, as long as they are ('same' padding):
//
//   y_t = b + sum_k w_k x_{t + k - (K - 1) / 2}          x [B,T,I]  w [O,K I]  b [O]  ->  y [B,T,O]
//
// w holds K matrices [O,I] side by side, K odd. Rows may have different lengths: padding counts as zero and is
// never read, and y is zero there. Gradients are accumulated; an empty view means 'not wanted'. Results
// are the same bits for any number of threads. Nothing is allocated and nothing can fail: shapes are the caller's to
// check.
#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"

namespace heed::kernels {

template <class T>
struct Conv1dInputs {
  View<const T, 3> x{};                // [B,T,I], contiguous rows
  View<const T, 2> w{};                // [O,K I], contiguous rows
  View<const T, 1> b{};                // [O], contiguous; empty: none
  std::span<const int64_t> lengths{};  // [B], each in [0,T]; empty: T

  int64_t taps() const { return w.shape(1) / x.shape(2); }  // K
  int64_t length(int64_t row) const { return lengths.empty() ? x.shape(1) : lengths[static_cast<size_t>(row)]; }
};

template <class T>
struct Conv1dGradients {
  View<const T, 3> dy{};  // [B,T,O]; not read beyond a row's length
  View<T, 3> dx{};        // [B,T,I]
  View<T, 2> dw{};        // [O,K I]
  View<T, 1> db{};        // [O]
};

// The bytes of workspace that the calls below need.
HEED_API size_t conv1d_forward_bytes(const Conv1dInputs<float>&);
HEED_API size_t conv1d_backward_bytes(const Conv1dInputs<float>&);
// y [B,T,O], whole: rows lie without a gap.
HEED_API void conv1d_forward(const Conv1dInputs<float>&, const View<float, 3>& y, Workspace&, Parallel&) noexcept;
HEED_API void conv1d_backward(const Conv1dInputs<float>&, const Conv1dGradients<float>&, Workspace&,
                              Parallel&) noexcept;

}  // namespace heed::kernels
