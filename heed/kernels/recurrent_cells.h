#pragma once
// The gates of recurrent.h for one row of one step, forward and backward. Internal. All pointers are to H numbers, or
// to as many times H as there are gates; what comes in as a sum goes out as the gate.
#include <cstdint>

namespace heed::kernels {

// h = gates = tanh(p + q)
void rnn_cell(float* gates, const float* q, float* h, int64_t H) noexcept;
// d_gates = dh (1 - h^2)
void rnn_cell_back(const float* gates, const float* dh, float* d_gates, int64_t H) noexcept;

// r, z = sigmoid(p + q); reset = r before, if wanted
void gru_reset(float* gates, const float* q, const float* before, float* reset, int64_t H) noexcept;

struct GruRow {
  float* gates;
  const float *q, *before;  // of n alone; h'
  bool reset_before;
};
// n = tanh(p + q), or tanh(p + r q) where r comes after the product; h = (1 - z) n + z before
void gru_cell(const GruRow&, float* h, int64_t H) noexcept;

struct GruBack {
  const float *gates, *before;
  float* dh;       // of h, and then what of it goes to `before` past the gates
  float* d_gates;  // [4 H]: r, z, n, and r n where q is given
};
// Of z and n; where q is given, of r as well.
void gru_cell_back(const GruBack&, const float* q, int64_t H) noexcept;
// Of r, from d_reset; adds to dh.
void gru_reset_back(const GruBack&, const float* d_reset, int64_t H) noexcept;

struct LstmRow {
  float* gates;
  const float *before, *peepholes;  // c'; [3 H] or null
};
void lstm_cell(const LstmRow&, const float* q, float* c, float* h, int64_t H) noexcept;

struct LstmBack {
  const float *gates, *before, *peepholes;
};
// dc of c becomes that of c'.
void lstm_cell_back(const LstmBack&, const float* dh, float* dc, float* d_gates, int64_t H) noexcept;

}  // namespace heed::kernels
