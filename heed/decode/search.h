// SPDX-License-Identifier: Apache-2.0
#pragma once
// Producing output one token at a time: greedy, beam search with a length penalty, and sampling, for any model that can
// be stepped (models::Stepwise: three functions), in f32 or f64. Sentences leave the batch as soon as they are done,
// and waiting ones take their places (continuous batching). Not here: text (translate.h, generate.h).
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "heed/base/cancel.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/decode/constraints.h"
#include "heed/models/model.h"
#include "heed/nn/pass.h"
#include "heed/text/tokenizer.h"

namespace heed::decode {

struct SearchOptions {
  int64_t beam{1};               // hypotheses kept; 1: greedy
  int64_t nbest{1};              // results of each sentence, at most `beam`
  double length_penalty{1};      // scores are divided by (length)^penalty
  int64_t max_length{0};         // tokens at most; 0: twice the source and 20 more, or 256 without a source
  int64_t min_length{0};         // tokens before the end may come
  double repetition_penalty{1};  // logits of tokens that came already are divided by it where above 0, else multiplied
  bool sample{false};            // draw from the distribution instead of taking the best
  double temperature{1};
  int64_t top_k{0};  // of the tokens to draw from; 0: all
  double top_p{1};   // draw from the fewest tokens that have this much probability together
  int64_t seed{1};   // of sampling

  static void describe(SearchOptions& o, auto&& field) {
    field("beam", o.beam, "hypotheses kept; 1: greedy", Range::within(1, 1024));
    field("nbest", o.nbest, "results of each sentence", Range::at_least(1));
    field("length_penalty", o.length_penalty, "scores are divided by length to this power", Range::at_least(0));
    field("max_length", o.max_length, "tokens at most; 0: by the source's length", Range::at_least(0));
    field("min_length", o.min_length, "tokens before the end may come", Range::at_least(0));
    field("repetition_penalty", o.repetition_penalty, "makes tokens that came already less likely; 1: does not",
          Range::above(0));
    field("sample", o.sample, "draw tokens instead of taking the best");
    field("temperature", o.temperature, "of drawing", Range::above(0));
    field("top_k", o.top_k, "draw from this many of the best; 0: all", Range::at_least(0));
    field("top_p", o.top_p, "draw from the fewest tokens that have this probability together", Range::within(0, 1));
    field("seed", o.seed, "of drawing", Range::at_least(0));
  }
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without begin and end
  double log_probability = 0;   // of all tokens, a prefix and the end included
  double score = 0;             // after the length penalty
  bool finished = false;        // reached the end token
  // The node of the sentence's search tree that chose each token after the prefix, and the end: attention events name
  // it (nn::HypothesisRow). Node 0 has read the begin and the prefix; any other has read one token more than its
  // parent.
  std::vector<int64_t> nodes;
};

// What is searched for. A language model goes on from `prefix` [B,n] and has no source; a prefix may also force the
// first tokens of translations.
struct SearchInput {
  models::Tokens source{};
  Tensor prefix{};
  text::SpecialTokens special{};
  std::vector<int64_t> streams{};   // of random numbers, for each row; empty: its number
  std::vector<Phrase> required{};   // phrases that must come; for beams of 2 or more, not for drawing
  std::vector<Phrase> forbidden{};  // phrases that never come
  // For each row the tokens that may come, in any order; the end, the prefix and required phrases may always. Logits of
  // others are not computed, and probabilities are those among these tokens. Empty: all.
  std::vector<std::vector<int32_t>> shortlists{};
};

struct SearchCall {
  const Cancel* cancel{nullptr};  // looked at before each step: throws Cancelled
  // Told of a row's hypotheses, best first, as soon as they are known: rows may end in any order.
  std::function<void(int64_t row, const std::vector<Hypothesis>&)> done{};
};

// The best hypotheses of each row, best first. Throws Error for options that do not fit.
HEED_API std::vector<std::vector<Hypothesis>> search(nn::Pass&, const models::Stepwise&, const SearchInput&,
                                                     const SearchOptions&, const SearchCall& = {});

// The next sentences, at most `room` of them; none: there are no more.
using NextSentences = std::function<std::optional<SearchInput>(int64_t room)>;

// Up to `places` sentences at a time, of any number: places that become free are taken by the next ones. Rows count on
// over all of them in the order in which they came; results are told to `call.done` alone. An observer sees sentences
// of one length of target at a time: with one, the next come when all before them are done.
HEED_API void search_all(nn::Pass&, const models::Stepwise&, int64_t places, const NextSentences&, const SearchOptions&,
                         const SearchCall&);

}  // namespace heed::decode
