#pragma once
// Producing output one token at a time: greedy, beam search with a length penalty, and sampling, for any model.
#include <cstdint>
#include <vector>

#include "heed/base/describe.h"
#include "heed/models/model.h"
#include "heed/nn/pass.h"

namespace heed::decode {

struct SearchOptions {
  int64_t beam{1};           // hypotheses kept; 1: greedy
  int64_t nbest{1};          // results of each sentence, at most `beam`
  double length_penalty{1};  // scores are divided by (length)^penalty
  int64_t max_length{0};     // tokens at most; 0: twice the source and 20 more, or 256 without a source
  bool sample{false};        // draw from the distribution instead of taking the best
  double temperature{1};
  int64_t top_k{0};  // of the tokens to draw from; 0: all
  int64_t seed{1};   // of sampling

  static void describe(SearchOptions& o, auto&& field) {
    field("beam", o.beam, "hypotheses kept; 1: greedy", Range::within(1, 1024));
    field("nbest", o.nbest, "results of each sentence", Range::at_least(1));
    field("length_penalty", o.length_penalty, "scores are divided by length to this power", Range::at_least(0));
    field("max_length", o.max_length, "tokens at most; 0: by the source's length", Range::at_least(0));
    field("sample", o.sample, "draw tokens instead of taking the best");
    field("temperature", o.temperature, "of drawing", Range::above(0));
    field("top_k", o.top_k, "draw from this many of the best; 0: all", Range::at_least(0));
    field("seed", o.seed, "of drawing", Range::at_least(0));
  }
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // without begin and end
  double log_probability = 0;   // of all tokens, a prefix and the end included
  double score = 0;             // after the length penalty
  bool finished = false;        // reached the end token
};

struct SpecialTokens {
  int32_t begin, end, pad;
};

// The best hypotheses of each row of `source`, best first. A language model goes on from `prefix` [B,n] instead, which
// may also force the first tokens of a translation. Throws Error for options that do not fit.
std::vector<std::vector<Hypothesis>> search(nn::Pass&, const models::Model&, const models::Tokens& source,
                                            const SpecialTokens&, const SearchOptions&, const Tensor& prefix = {});

}  // namespace heed::decode
