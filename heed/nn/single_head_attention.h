// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention as recurrent models have it (Bahdanau, Luong): one head, one of four scores, and the source's own states as
// values. The queries are all tokens of a sequence at once; or, step by step, the state before a token, whose context
// is then fed to the cell.
//
//   dot q . h   scaled q . h / sqrt(width)   bilinear q W . h   additive w . tanh(W q + U h + b)
// Not here: several heads, projected values (nn/attention.h).
#include <string>

#include "heed/base/export.h"
#include "heed/nn/attention.h"
#include "heed/ops/attentive_recurrence.h"

namespace heed::nn {

// The score, and the parameters that it needs.
struct HEED_API SingleHeadAttention {
  Score score = Score::dot;
  std::string path;   // reported to observers: "decoder.cross"
  Linear query, key;  // bilinear: query; additive: both; else empty
  Parameter w;        // [1,width], additive

  SingleHeadAttention() = default;
  // Throws Error for dot and scaled where width and source_width differ.
  SingleHeadAttention(Score score, std::string path, int64_t width, int64_t source_width, Init init);

  // The keys of a source [B,S,source_width], to be computed once per source: projected for the additive score, else the
  // source itself.
  Var keys(Pass&, const Var& source) const;
  // Contexts [B,T,source_width] of x [B,T,width].
  Var operator()(Pass&, const Var& x, const Var& keys, const Var& source, const AttentionCall&) const;
  // A recurrence whose cell is fed each token's context, or what w_feed makes of it (input feeding). The caller fills
  // in the recurrence, keys, values and w_feed of `a`; query, score, mask and gate are filled in here. recurrence_path
  // is that of the recurrence's parameters, reported to observers.
  ops::AttentiveRecurrenceResult recurrence(Pass&, const std::string& recurrence_path,
                                            ops::AttentiveRecurrenceArguments a, const AttentionCall&) const;

  void visit(auto&& each) { each("query", query), each("key", key), each("w", w); }

 private:
  ops::AttentionArguments arguments(Pass&, const Var& keys, const Var& source, const AttentionCall&) const;
};

}  // namespace heed::nn
