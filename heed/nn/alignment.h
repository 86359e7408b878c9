#pragma once
// Attention as recurrent models have it: one head, a score, and the source's own states as values. The queries are
// states of a whole sequence at once, or each the state before a token, whose context then goes into the cell.
//
//   dot q . h   scaled q . h / sqrt(width)   bilinear q W . h   additive w . tanh(W q + U h + b)
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/nn/attention.h"
#include "heed/ops/attentive_recurrence.h"

namespace heed::nn {

struct HEED_API Alignment {
  Score score = Score::dot;
  std::string path;   // told to observers: "decoder.cross"
  Linear query, key;  // bilinear has a query's, additive both
  Parameter w;        // [1,width], additive

  Alignment() = default;
  // Throws Error where widths differ that a score compares as they are.
  Alignment(Score score, std::string path, int64_t width, int64_t source_width, Init init);

  // What the scores read of a source [B,S,source_width]: made once.
  Var keys(Pass&, const Var& source) const;
  // Contexts [B,T,source_width] of x [B,T,width].
  Var operator()(Pass&, const Var& x, const Var& keys, const Var& source, const AttentionCall&) const;
  // A recurrence that is fed with its contexts, or with what w_feed makes of them. `a` comes with the recurrence, keys,
  // values and what feeds; how they are looked at is put in here. The path is that of the recurrence's parameters, told
  // to observers.
  ops::AttentiveRecurrenceResult recurrence(Pass&, const std::string& recurrence_path,
                                            ops::AttentiveRecurrenceArguments a, const AttentionCall&) const;

  void visit(auto&& each) { each("query", query), each("key", key), each("w", w); }

 private:
  ops::AttentionArguments arguments(Pass&, const Var& keys, const Var& source, const AttentionCall&) const;
};

// The mean [B,width] of the tokens of each row of x [B,T,width], or the last one of each; zero where a row has none.
// Lengths are borrowed until the tape has gone back, empty: all.
HEED_API Var mean_of_tokens(Pass&, const Var& x, std::span<const int64_t> lengths);
HEED_API Var last_of_tokens(Pass&, const Var& x, std::span<const int64_t> lengths);

}  // namespace heed::nn
