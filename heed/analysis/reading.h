// SPDX-License-Identifier: Apache-2.0
#pragma once
// A text that a model reads and the output that it is made to say, as words and as tokens: what people ask in words
// becomes a Question in tokens, and numbers of tokens become numbers of words.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/links.h"
#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/data/text_model.h"

namespace heed::analysis {

// A word of a text, by its number.
struct WordPlace {
  nn::TextSide side{};
  size_t word = 0;
};

// Numbers by words, and the sum of those of tokens that are no word: begin and end.
struct ByWord {
  std::vector<double> words{};
  double rest = 0;
};

class HEED_API Reading {
 public:
  // `output` is the tokens of a translation, the tags of a text, or what comes after a language model's text: both
  // together are then its target. Throws Error where the text has no word in it.
  Reading(const data::TextModel&, const std::string& text, std::vector<int32_t> output);

  const data::TextModel& model() const { return model_; }
  const data::TokenPair& pair() const { return pair_; }
  // As text::words_and_marks cuts them; of a tagger, the words and no target; of a language model, no source.
  const std::vector<std::string>& words(nn::TextSide) const;
  // Where what the model was not given begins: 0, or the number of a language model's first token of output.
  int64_t first_output() const { return first_output_; }

  // The tokens of another text with the same output. Throws Error where it has no word in it.
  data::TokenPair with_text(const std::string& other) const;

  // The first word that is `word`, in whatever case: in the source, else in the target. Throws Error where there is
  // none.
  WordPlace find(const std::string& word) const;
  // The tokens of a word as queries: a word of a translation looks when it is predicted, others when they are read.
  Queries queries(const WordPlace&) const;
  // Positions in pair() of the tokens of each word that the model reads, for leave_out().
  std::vector<std::vector<int64_t>> tokens_of_words() const;
  // Of numbers for each token that the model reads of a side, begin and end included.
  ByWord by_word(nn::TextSide, std::span<const double> tokens) const;

  // About the first token of an output word (of a tagger: the tag of a word); none: about the whole output, or a
  // language model's next token. `against` is another word in its place, compared at the first token that differs, or
  // another tag; without `of` it stands for the word of the output that has most of its beginning in common with it.
  // Borrows the model that this object holds. Throws Error.
  Question question(const std::optional<std::string>& of = {}, const std::optional<std::string>& against = {}) const;

 private:
  const std::vector<int64_t>& map(nn::TextSide side) const;
  Target target_of(const std::optional<std::string>& of) const;
  Target contrast(const std::optional<std::string>& of, const std::string& against) const;
  size_t output_word(const std::string& word) const;

  data::TextModel model_;
  data::TokenPair pair_;
  std::string said_;
  std::vector<std::string> source_, target_;
  std::vector<int64_t> source_map_, target_map_;  // the word of each token of the pair
  int64_t first_output_ = 0;
};

}  // namespace heed::analysis
