// SPDX-License-Identifier: Apache-2.0
#pragma once
// Observers: what a pass shows of its attention and recurrent layers while it runs, in f32 and f64 alike, and how they
// intervene: heads are scaled, switched off, or given other outputs, and embeddings others. A layer computes little for
// an observer that it would not compute anyway: weights, maps and entropies of attention are computed by the observer
// from what it is shown (nn/attention_weights.h, kernels/attention/observe.h), and gates of recurrent layers are kept
// only if it wants them.
#include <cstdint>
#include <span>
#include <string>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/reference/attention.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

// The hypothesis that a row of the batch is, where beam search runs several of a sentence side by side: the sentence,
// and the node of its search tree, numbered by the search.
struct HypothesisRow {
  int64_t sentence = 0, node = 0;
};

enum class AttentionRole : uint8_t { self, masked, cross };

constexpr const char* name_of(AttentionRole role) {
  constexpr const char* kNames[] = {"self", "masked", "cross"};
  return kNames[static_cast<uint8_t>(role)];
}

// One call of one attention layer: where it is in the model, its inputs by heads, and its softmax statistics. Borrowed
// for the time of the call. A pass in f32 fills `inputs`, one in f64 `inputs_f64`; the other is empty.
struct AttentionEvent {
  const std::string& path;  // of the layer: "decoder.0.cross"
  AttentionRole role;
  int64_t position;                        // of the first query: the step, where tokens come one at a time
  std::span<const HypothesisRow> rows;     // [B]; empty: row b is sentence b, node 0
  const kernels::AttentionInputs& inputs;  // q, k, v by heads, bias, gate and w
  const kernels::reference::Inputs& inputs_f64;
  const Tensor& stats;  // [B,Hq,T,2], in the dtype of the pass: see ops::AttentionResult
  const kernels::AttentionOptions& options;
  bool projected = false;  // the heads' outputs go through a projection
  Tensor projection{};     // [width,Hq Dv]: its weight; empty where there is none, or it was packed for inference

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

// One direction of one recurrent layer over some tokens: its states and gates. Borrowed for the time of the call.
// Tensors are in the dtype of the pass, and zero beyond a row's length.
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

// The side of a model that a text is on: taggers and encoders have a source alone, language models a target alone.
enum class TextSide : uint8_t { source, target };

// The hidden states of a text after one layer of a Transformer, or its embeddings before the first. Borrowed for the
// time of the call.
struct HiddenEvent {
  const std::string& path;  // "encoder.0"; "embedding" before the first layer
  TextSide side;
  int64_t position;      // of the first token
  const Tensor& states;  // [B,T,width]
};

// To derive from. Called during a forward pass, on the thread that runs it.
class HEED_API Observer {
 public:
  virtual ~Observer() = default;
  virtual void attention(const AttentionEvent&) {}
  // Whether recurrent() is called: gates of all tokens take memory that a pass does not need.
  virtual bool wants_recurrent() const { return false; }
  virtual void recurrent(const RecurrentEvent&) {}
  virtual void hidden(const HiddenEvent&) {}
  // A factor for each head of the layer at `path` [Hq]; 0 switches a head off. Empty: all 1.
  virtual Tensor head_gate(const std::string& /*path*/, int64_t /*heads*/) { return {}; }
  // Where the gradient by these factors is added, [Hq] in the dtype of the pass; empty: it is not wanted. For passes
  // with a tape.
  virtual Tensor head_gate_gradient(const std::string& /*path*/, int64_t /*heads*/, DType) { return {}; }
  // The outputs of a layer's heads, side by side [B,T,Hq Dv], after their gates and before the projection: what is
  // returned takes their place. Not called where contexts are fed to a recurrent cell: that recurrence is one op.
  virtual Var head_outputs(const Context&, const std::string& /*path*/, int64_t /*heads*/, const Var& outputs) {
    return outputs;
  }
  // The embeddings of tokens [B,T,E], before positions are added: what is returned takes their place.
  virtual Var embeddings(const Context&, TextSide, const Var& embedded) { return embedded; }
};

// An observer beside another one, which is told and asked all that the derived class does not take itself.
class HEED_API ObserverBeside : public Observer {
 public:
  explicit ObserverBeside(Observer* other) : other_(other ? other : &none_) {}
  ObserverBeside(const ObserverBeside&) = delete;
  ObserverBeside& operator=(const ObserverBeside&) = delete;

  void attention(const AttentionEvent& event) override { other_->attention(event); }
  bool wants_recurrent() const override { return other_->wants_recurrent(); }
  void recurrent(const RecurrentEvent& event) override { other_->recurrent(event); }
  void hidden(const HiddenEvent& event) override { other_->hidden(event); }
  Tensor head_gate(const std::string& path, int64_t heads) override { return other_->head_gate(path, heads); }
  Tensor head_gate_gradient(const std::string& path, int64_t heads, DType dtype) override {
    return other_->head_gate_gradient(path, heads, dtype);
  }
  Var head_outputs(const Context& context, const std::string& path, int64_t heads, const Var& outputs) override {
    return other_->head_outputs(context, path, heads, outputs);
  }
  Var embeddings(const Context& context, TextSide side, const Var& embedded) override {
    return other_->embeddings(context, side, embedded);
  }

 private:
  Observer none_{};
  Observer* other_;
};

}  // namespace heed::nn
