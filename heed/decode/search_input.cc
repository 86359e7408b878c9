// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/search_input.h"

#include <algorithm>
#include <span>
#include <string>

#include "heed/base/error.h"

namespace heed::decode {
namespace {

int64_t tokens_of(std::span<const Phrase> phrases) {
  int64_t tokens = 0;
  for (const Phrase& phrase : phrases) tokens += std::ssize(phrase);
  return tokens;
}

}  // namespace

void check_options(const SearchOptions& o) {
  const auto fail = [](const std::string& what) { throw Error("search: " + what); };
  if (o.beam < 1) fail("beam is " + std::to_string(o.beam) + ", expected 1 or more");
  if (o.nbest < 1 || o.nbest > o.beam) {
    fail("nbest is " + std::to_string(o.nbest) + ", expected 1 to " + std::to_string(o.beam) + " (beam)");
  }
  if (!(o.top_p > 0 && o.top_p <= 1)) fail("top_p is " + std::to_string(o.top_p) + ", expected above 0, at most 1");
  if (!(o.repetition_penalty > 0)) {
    fail("repetition_penalty is " + std::to_string(o.repetition_penalty) + ", expected above 0");
  }
  if (!(o.temperature > 0)) fail("temperature is " + std::to_string(o.temperature) + ", expected above 0");
}

int64_t sentences_of(const SearchInput& input) {
  return input.source.ids ? input.source.ids.shape(0) : input.prefix ? input.prefix.shape(0) : 1;
}

int64_t forced_by(const SearchInput& input) { return input.prefix ? input.prefix.shape(1) : 0; }

Tensor first_tokens(const SearchInput& input) {
  const int64_t rows = sentences_of(input), forced = forced_by(input);
  Tensor first = Tensor::uninitialised({rows, forced + 1}, DType::i32);
  for (int64_t i = 0; i < rows; ++i) {
    int32_t* row = first.data<int32_t>() + i * (forced + 1);
    row[0] = input.special.begin;
    for (int64_t t = 0; t < forced; ++t) row[t + 1] = input.prefix.data<int32_t>()[i * forced + t];
  }
  return first;
}

void check_phrases(const SearchInput& input, const SearchOptions& options) {
  for (const std::vector<Phrase>* phrases : {&input.required, &input.forbidden}) {
    for (const Phrase& phrase : *phrases) {
      if (phrase.empty()) throw Error("search: a required or forbidden phrase is empty, expected one token or more");
    }
  }
  if (input.required.empty()) return;
  if (options.sample) throw Error("search: phrases are required of drawn tokens, expected a beam search");
  // Of two hypotheses, one may wait for a better place for the phrase.
  if (options.beam < 2) throw Error("search: beam is 1, expected 2 or more where phrases are required");
}

void check_prefix(const SearchInput& input, int64_t max_length) {
  const int64_t forced = forced_by(input);
  if (forced <= max_length - 2) return;
  throw Error("search: the prefix has " + std::to_string(forced) + " tokens, expected at most " +
              std::to_string(max_length - 2) + ": the model takes " + std::to_string(max_length) +
              " with its begin and one more");
}

int64_t limit_of(const SearchInput& input, int64_t row, const SearchOptions& options, int64_t max_length) {
  const models::Tokens& source = input.source;
  const int64_t length = !source.ids              ? 0
                         : source.lengths.empty() ? source.ids.shape(1)
                                                  : source.lengths[static_cast<size_t>(row)];
  const int64_t required = tokens_of(input.required);
  const int64_t usual = (source.ids ? 2 * length + 20 : 256) + required;
  const int64_t limit =
      std::min(options.max_length > 0 ? options.max_length : usual, max_length - 1 - forced_by(input));
  if (required < limit || required == 0) return limit;
  throw Error("search: the phrases that must come have " + std::to_string(required) + " tokens, expected at most " +
              std::to_string(limit - 1) + ": an output has " + std::to_string(limit) + " at most, with its end");
}

}  // namespace heed::decode
