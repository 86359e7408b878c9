#pragma once
// What a pass tells of its attention, and how it may be interfered with. In f32 and in f64 alike. A layer makes nothing
// for an observer that it would not make anyway: whoever listens can compute rows, maps and entropies from what it is
// shown (nn/attention_weights.h, kernels/attention/observe.h).
#include <cstdint>
#include <span>
#include <string>

#include "heed/kernels/attention/attention.h"
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

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void attention(const AttentionEvent&) {}
  // A factor for each head of the layer at `path` [Hq], or nothing: 0 switches a head off.
  virtual Tensor head_gate(const std::string& /*path*/, int64_t /*heads*/) { return {}; }
};

}  // namespace heed::nn
