#pragma once
// What a pass tells of its attention, and how it may be interfered with. A layer makes nothing for an observer that it
// would not make anyway: whoever listens can compute rows, maps and entropies from what it is shown
// (kernels/attention/observe.h).
#include <cstdint>
#include <string>

#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

enum class AttentionRole : uint8_t { self, masked, cross };

constexpr const char* name_of(AttentionRole role) {
  constexpr const char* kNames[] = {"self", "masked", "cross"};
  return kNames[static_cast<uint8_t>(role)];
}

// Borrowed for the time of the call.
struct AttentionEvent {
  const std::string& path;  // of the layer: "decoder.0.cross"
  AttentionRole role;
  int64_t position;                        // of the first query: the step, where tokens come one at a time
  const kernels::AttentionInputs& inputs;  // q, k, v by heads, and what else there was; empty in f64
  const Tensor& stats;                     // [B,Hq,T,2], as the kernel gave them; empty in f64
  const kernels::AttentionOptions& options;
};

class HEED_API Observer {
 public:
  virtual ~Observer() = default;
  virtual void attention(const AttentionEvent&) {}
  // A factor for each head of the layer at `path` [Hq], or nothing: 0 switches a head off.
  virtual Tensor head_gate(const std::string& /*path*/, int64_t /*heads*/) { return {}; }
};

}  // namespace heed::nn
