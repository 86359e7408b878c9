// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recurrent layer over whole sequences, in one direction, from the first token of each row to its last or in reverse:
//
//   x [B,T,I]  ->  h [B,T,H]          h' is the state before a token, h the one after it; p, q: see below
//
//   rnn    h = tanh(p + q)
//   gru    r = sigmoid(p_r + q_r), z = sigmoid(p_z + q_z), n = tanh(p_n + r q_n), h = (1 - z) n + z h'
//   lstm   i, f, o = sigmoid(p + q), g = tanh(p_g + q_g), c = f c' + i g, h = o tanh(c)
//
// with p = x w_ih^T + b_ih and q = h' w_hh^T + b_hh, gates one after the other in the rows of the weights in the order
// r, z, n and i, f, g, o, as PyTorch has them. A GRU may reset before the product: n = tanh(p_n + (r h') w_n^T + b_n).
// Peepholes of an LSTM add u_i c' to i, u_f c' to f and u_o c to o before their sigmoids.
//
// Rows may have different lengths: padding beyond a row's length is never read, and h is zero there; the last states
// are those of a row's last token. Gradients are accumulated; an empty view means 'not wanted'. Results are the same
// bits for any number of threads. Nothing is allocated and nothing can fail: shapes are the caller's to check.
#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"

namespace heed::kernels {

enum class Cell : uint8_t { rnn, gru, lstm };

constexpr const char* name_of(Cell cell) {
  constexpr const char* kNames[] = {"rnn", "gru", "lstm"};
  return kNames[static_cast<uint8_t>(cell)];
}
constexpr auto enum_names(Cell) {
  return std::to_array<EnumName<Cell>>({{"rnn", Cell::rnn}, {"gru", Cell::gru}, {"lstm", Cell::lstm}});
}
// G: how many times H rows the weights have.
constexpr int64_t gates_of(Cell cell) {
  constexpr int64_t kGates[] = {1, 3, 4};
  return kGates[static_cast<uint8_t>(cell)];
}
// Columns of RecurrentOutputs::saved: the gates, h', and c' (lstm), q_n or r h' (gru). Padding keeps the same column of
// many rows from falling into one set of a cache.
constexpr int64_t saved_width(Cell cell, int64_t H) { return (gates_of(cell) + (cell == Cell::rnn ? 1 : 2)) * H + 16; }

struct RecurrentOptions {
  Cell cell{Cell::lstm};
  bool reverse{false};       // from the last token to the first
  bool reset_before{false};  // of a GRU: before the product, not after it
};

// A context computed from the state before each token, and appended to the token's input: attention with that state as
// its query. Rows are those of the batch, which has no lengths then and runs forward; calls come step by step, forward
// or backward.
template <class T>
class Feedback {
 public:
  virtual ~Feedback() = default;
  // h [B,H] before token `step` -> its context [B,C]
  virtual void forward(int64_t step, const View<const T, 2>& h, const View<T, 2>& context) noexcept = 0;
  // dh += the gradient of that context with respect to h
  virtual void backward(int64_t step, const View<const T, 2>& d_context, const View<T, 2>& dh) noexcept = 0;
};

template <class T>
struct RecurrentInputs {
  View<const T, 3> x{};                // [B,T,I], contiguous rows
  View<const T, 2> w_ih{}, w_hh{};     // [G H,I + C]  [G H,H], contiguous rows
  View<const T, 1> b_ih{}, b_hh{};     // [G H], contiguous; empty: none
  View<const T, 2> peepholes{};        // [3,H]: of i, f and o; empty: none
  View<const T, 2> h0{}, c0{};         // [B,H]: the states to begin from; empty: zero
  std::span<const int64_t> lengths{};  // [B], each in [0,T]; empty: T
  Feedback<T>* feedback{nullptr};      // null: none, C = 0
};

template <class T>
struct RecurrentOutputs {
  View<T, 3> h{};                 // [B,T,H]
  View<T, 2> last_h{}, last_c{};  // [B,H], if wanted
  View<T, 3> context{};           // [B,T,C], where there is feedback
  View<T, 2> saved{};             // [B T, saved_width]: scratch, and what backward needs
};

template <class T>
struct RecurrentGradients {
  View<const T, 2> saved{};                 // as forward left it
  View<const T, 3> context{};               // as forward gave it
  View<const T, 3> d_h{}, d_context{};      // [B,T,H]  [B,T,C]; empty: zero. Not read beyond a row's length
  View<const T, 2> d_last_h{}, d_last_c{};  // [B,H]; empty: zero
  View<T, 3> dx{};                          // [B,T,I]
  View<T, 2> dw_ih{}, dw_hh{};              // [G H,I + C]  [G H,H]
  View<T, 1> db_ih{}, db_hh{};              // [G H]
  View<T, 2> d_peepholes{};                 // [3,H]
  View<T, 2> dh0{}, dc0{};                  // [B,H]
};

// The activations of the cells, token by token, for observers; zero at padding. An empty view: not wanted.
template <class T>
struct RecurrentTrace {
  View<T, 4> gates{};  // [B,T,G,H], contiguous: after their activations, in the order of the weights
  View<T, 3> c{};      // [B,T,H], of an LSTM
};

// The bytes of workspace that the calls below need.
HEED_API size_t recurrent_forward_bytes(const RecurrentInputs<float>&, const RecurrentOptions&);
HEED_API size_t recurrent_backward_bytes(const RecurrentInputs<float>&, const RecurrentOptions&);
HEED_API void recurrent_forward(const RecurrentInputs<float>&, const RecurrentOutputs<float>&, const RecurrentOptions&,
                                Workspace&, Parallel&) noexcept;
HEED_API void recurrent_backward(const RecurrentInputs<float>&, const RecurrentGradients<float>&,
                                 const RecurrentOptions&, Workspace&, Parallel&) noexcept;
// From what forward left in its outputs, with last_c of an LSTM. The workspace is as large as forward's.
HEED_API void recurrent_trace(const RecurrentInputs<float>&, const RecurrentOutputs<float>&, const RecurrentOptions&,
                              const RecurrentTrace<float>&, Workspace&) noexcept;

}  // namespace heed::kernels
