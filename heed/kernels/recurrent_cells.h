// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cells of recurrent.h for one row at one step, forward and backward. Internal. Arrays are of H elements, or [G,H]
// for gates; `gates` holds their sums p on entry, and the gates after their activations on return.
#include <cstdint>

namespace heed::kernels {

// h = gates = tanh(p + q)
void rnn_cell(float* gates, const float* q, float* h, int64_t H) noexcept;
// d_gates = dh (1 - h^2)
void rnn_cell_backward(const float* gates, const float* dh, float* d_gates, int64_t H) noexcept;

// r, z = sigmoid(p + q); reset = r h', if not null
void gru_reset(float* gates, const float* q, const float* before, float* reset, int64_t H) noexcept;

struct GruRow {
  float* gates;
  const float *q, *before;  // q of n alone; h'
  bool reset_before;
};
// n = tanh(p + q), or tanh(p + r q) where the reset comes after the product; h = (1 - z) n + z h'
void gru_cell(const GruRow&, float* h, int64_t H) noexcept;

struct GruBackward {
  const float *gates, *before;
  float* dh;       // of h; becomes the part of dh' that bypasses the gates
  float* d_gates;  // [4,H]: of the sums of r, z, n, and of q_n where q is given
};
// Of z and n; where q is given, of r as well.
void gru_cell_backward(const GruBackward&, const float* q, int64_t H) noexcept;
// Of r, from d_reset; accumulates into dh.
void gru_reset_backward(const GruBackward&, const float* d_reset, int64_t H) noexcept;

struct LstmRow {
  float* gates;
  const float *before, *peepholes;  // c'; [3,H] or null
};
void lstm_cell(const LstmRow&, const float* q, float* c, float* h, int64_t H) noexcept;

struct LstmBackward {
  const float *gates, *before, *peepholes;
};
// dc of c becomes dc of c'.
void lstm_cell_backward(const LstmBackward&, const float* dh, float* dc, float* d_gates, int64_t H) noexcept;

}  // namespace heed::kernels
