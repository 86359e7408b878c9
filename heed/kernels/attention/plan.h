#pragma once
// What a plan has settled, as the kernels read it. Internal: users see AttentionPlan alone (attention.h).
#include "heed/base/allocator.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::kernels {

// How the work is cut. It depends on shapes and strides alone, so results do not depend on threads.
struct Blocking {
  int64_t queries = 0;     // that a task works on at a time
  int64_t key_chunk = 0;   // keys of one task (backward), or of one partial sum of the output (decode)
  int64_t key_chunks = 1;  // what they give to dq, or to out, is added in their order
  bool gather = false;     // rows of k and v that lie far apart, or in 16 bits, are copied to f32 a block at a time
  bool in_turn = false;    // backward: tasks add to a bias that they share one after the other
  bool next_head = false;  // the next head's first rows are prefetched: all together do not stay in a cache
};

// What scores go through beside the scale and the runs of visible keys.
struct ScoreStages {
  bool additive = false;        // the score, see AttentionInputs::w
  float softcap = 0;            // 0: none
  CachedVector<float> slopes;   // [Hq]; empty: no ALiBi
  View<const bool, 4> dense{};  // [B,Hq,T,S], broadcast by strides of 0; empty: none
  bool bias = false, gate = false;
  Dropout dropout{};
  int64_t top = 0;       // keys of each row to be found
  bool entropy = false;  // wanted

  // None of them is needed: the kernels' short way.
  bool plain() const {
    return !additive && softcap == 0 && slopes.empty() && !dense && !bias && !gate && !dropout.on() && top == 0 &&
           !entropy;
  }
};

// A plain struct: kernels hold a reference to it, and read its fields as cheaply as if the plan were open.
struct AttentionPlan::Details {
  Kernel kernel = Kernel::tiles;
  AttentionShape shape;
  DType kv_dtype = DType::f32;
  float scale = 1;
  Visibility visibility;
  ScoreStages stages;
  Blocking blocking;
};

// Forward as far as the scores, whatever is then made of them. Throws Error.
AttentionPlan::Details plan_scores(const AttentionInputs&, const AttentionOptions&);

struct ObservationPlan::Details {
  AttentionPlan::Details scores;
  int64_t key_chunks = 1;  // each a task of its own: whole columns of a map
};

}  // namespace heed::kernels
