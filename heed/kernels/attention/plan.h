// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of a plan, as the kernels read them. Internal: users see AttentionPlan alone (attention.h).
#include "heed/base/allocator.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::kernels {

// How the work is divided. It depends on shapes and strides alone, so results do not depend on threads.
struct Blocking {
  int64_t queries = 0;     // in a block that a task works on at a time
  int64_t key_chunk = 0;   // keys of one task (backward), or of one partial result (decode)
  int64_t key_chunks = 1;  // accumulated into dq, or out, in order
  bool gather = false;     // rows of k and v that are far apart, or in 16 bits, are copied to f32 a block at a time
  bool in_turn = false;    // backward: tasks accumulate into a d_bias that they share, one after the other
  bool next_head = false;  // prefetch the next head's first rows: the inputs do not all fit into a cache
};

// The stages of a score, beside the scale and the ranges of visible keys.
struct ScoreStages {
  bool additive = false;        // the additive score, see AttentionInputs::w
  float softcap = 0;            // 0: none
  CachedVector<float> slopes;   // [Hq]; empty: no ALiBi
  View<const bool, 4> dense{};  // [B,Hq,T,S], broadcast by strides of 0; empty: none
  bool bias = false, gate = false;
  Dropout dropout{};
  int64_t top = 0;       // K of AttentionOutputs::top_keys
  bool entropy = false;  // wanted

  // None is needed: kernels take their fast path. A gate is a factor of the output, which forward applies on either
  // path, so that a gate of 1 gives the bits of none; backward also sums its gradient.
  bool plain() const {
    return !additive && softcap == 0 && slopes.empty() && !dense && !bias && !dropout.on() && top == 0 && !entropy;
  }
  bool plain_backward() const { return plain() && !gate; }
};

struct AttentionPlan::Details {
  Kernel kernel = Kernel::tiles;
  AttentionShape shape;
  DType kv_dtype = DType::f32;
  float scale = 1;
  Visibility visibility;
  ScoreStages stages;
  Blocking blocking;
};

// The plan of everything up to the scores, which forward, backward and observers share. Throws Error.
AttentionPlan::Details plan_scores(const AttentionInputs&, const AttentionOptions&);

struct ObservationPlan::Details {
  AttentionPlan::Details scores;
  int64_t key_chunks = 1;  // each a task: whole columns of a map
};

}  // namespace heed::kernels
