// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the choices of a recorded text owe to words, heads and links, put into its trace: what leaving a word out and
// switching a head off changes, which is measured, and what gradients predict (docs/explaining.md).
//
//   trace::Trace it = trace::record(engine, "The animal was tired.");
//   trace::add_effects(it, engine);
//
// Not here: the methods (heed/analysis/), and recording (record.h).
#include <cstdint>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/decode/engine.h"
#include "heed/trace/trace.h"

namespace heed::trace {

// Of each row: a pass forward and backward, a pass a word, and two a head that is measured.
struct EffectOptions {
  int64_t measured{4};    // heads that are switched off: those with the largest gradients
  int64_t integrated{0};  // points of integrated gradients, each a pass forward and backward; 0: without
  bool rollout{false};    // of Transformers
  // That all passes together read; above it only the first rows that fit are explained.
  int64_t most_tokens{250000};

  static void describe(EffectOptions& o, auto&& field) {
    field("measured", o.measured, "heads that are switched off in turn, of each row", Range::at_least(0));
    field("integrated", o.integrated, "points of integrated gradients; 0: without", Range::within(0, 10000));
    field("rollout", o.rollout, "also attention rollout, of Transformers");
  }
};

// Of every row of the best hypothesis that was not given, each by the log-probability of what was chosen there. The
// model needs gradients: weights that are not packed (folder::OpenOptions). Throws Error.
HEED_API void add_effects(Trace&, const decode::Engine&, const EffectOptions& = {});
// Of one row, by the log-probability of its choice minus that of another token.
HEED_API void add_contrast(Trace&, const decode::Engine&, int64_t row, int32_t against, const EffectOptions& = {});

}  // namespace heed::trace
