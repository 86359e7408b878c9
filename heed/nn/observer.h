#pragma once
// What a pass tells of its attention and of its recurrent layers, and how it may be interfered with. In f32 and in f64
// alike. A layer makes little for an observer that it would not make anyway: whoever listens can compute rows, maps and
// entropies of attention from what it is shown (nn/attention_weights.h, kernels/attention/observe.h), and is shown the
// gates of recurrent layers only if it wants them.
#include <cstdint>
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/reference/attention.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

// Which hypothesis a row of the batch is, where a search runs several of a sentence side by side: the sentence, and the
// node of its search tree, as the search counts them.
struct HypothesisRow {
  int64_t sentence = 0, node = 0;
};

enum class AttentionRole : uint8_t { self, masked, cross };

constexpr const char* name_of(AttentionRole role) {
  constexpr const char* kNames[] = {"self", "masked", "cross"};
  return kNames[static_cast<uint8_t>(role)];
}

// Borrowed for the time of the call. A pass in f32 fills `inputs`, one in f64 `inputs_f64`; the other is empty.
struct AttentionEvent {
  const std::string& path;  // of the layer: "decoder.0.cross"
  AttentionRole role;
  int64_t position;                        // of the first query: the step, where tokens come one at a time
  std::span<const HypothesisRow> rows;     // [B]; empty: row b is sentence b, node 0
  const kernels::AttentionInputs& inputs;  // q, k, v by heads, and what else there was
  const kernels::reference::Inputs& inputs_f64;
  const Tensor& stats;  // [B,Hq,T,2], in the dtype of the pass: see ops::AttentionResult
  const kernels::AttentionOptions& options;

  DType dtype() const { return stats.dtype(); }
};

inline constexpr const char* kGruGates[] = {"reset", "update", "candidate"};
inline constexpr const char* kLstmGates[] = {"input", "forget", "candidate", "output"};

// The gates of a cell in the order of RecurrentEvent::gates, which is that of the weights' rows; none of an RNN.
constexpr std::span<const char* const> gate_names(kernels::Cell cell) {
  if (cell == kernels::Cell::gru) return kGruGates;
  if (cell == kernels::Cell::lstm) return kLstmGates;
  return {};
}

// One direction of one recurrent layer over some tokens: what its cells did. Borrowed for the time of the call. Tensors
// are in the dtype of the pass, and zero beyond a row's length.
struct RecurrentEvent {
  const std::string& path;  // of its parameters: "encoder.layers.0.forward"
  kernels::Cell cell;
  bool reverse;                         // from the last token to the first
  int64_t position;                     // of the first token: the step, where tokens come one at a time
  std::span<const HypothesisRow> rows;  // [B]; empty: row b is sentence b, node 0
  std::span<const int64_t> lengths;     // [B]; empty: all of T
  const Tensor &h, &c;                  // [B,T,H]: the states after each token; c of an LSTM, else empty
  const Tensor& gates;                  // [B,T,G,H], after their activations, see gate_names(); empty of an RNN
  const Tensor &h0, &c0;                // [B,H]: the states that it began from; empty: zero
};

class HEED_API Observer {
 public:
  virtual ~Observer() = default;
  virtual void attention(const AttentionEvent&) {}
  // Recurrent layers tell what their cells did where this says so: it takes memory that a pass does not need.
  virtual bool wants_recurrent() const { return false; }
  virtual void recurrent(const RecurrentEvent&) {}
  // A factor for each head of the layer at `path` [Hq], or nothing: 0 switches a head off.
  virtual Tensor head_gate(const std::string& /*path*/, int64_t /*heads*/) { return {}; }
};

}  // namespace heed::nn
