// SPDX-License-Identifier: Apache-2.0
#pragma once
// The small translators that some experiments look into, trained on sentences of the built-in grammar.
//
//   const Sentences sentences = draw_sentences({.train = 20000, .unseen = 200, .seed = 1});
//   const data::TextModel model = train_translator(context, sentences, small_transformer(), {.steps = 400, .seed = 1});
#include <cstdint>
#include <vector>

#include "heed/data/text_model.h"
#include "heed/grammar/sentence.h"
#include "heed/lab/training.h"
#include "heed/models/options.h"
#include "heed/text/corpus.h"
#include "heed/text/metrics.h"

namespace heed::lab {

struct SentenceOptions {
  int64_t train{20000}, unseen{200};
  uint64_t seed{1};
  size_t longest{8};  // in words of the source
};

// Sentences to train on, others with combinations of words that are not among them, and a token for each word.
struct Sentences {
  std::vector<grammar::Sentence> train{}, unseen{};
  data::Tokenizers tokenizers{};

  data::TokenPair ids(const grammar::Sentence&) const;
};
Sentences draw_sentences(const SentenceOptions&);
// A tokenizer for each side, whose tokens are the words of these sentences.
data::Tokenizers words_of(const std::vector<grammar::Sentence>&);
text::Corpus corpus_of(const std::vector<grammar::Sentence>&);
std::vector<text::Alignment> alignments_of(const std::vector<grammar::Sentence>&);

// 2 + 2 layers of width 64 with four heads.
models::ModelOptions small_transformer();

// Trained on batches of 1,024 tokens; vocabularies of the options are filled in.
data::TextModel train_translator(Context&, const Sentences&, models::ModelOptions, const TrainingOptions&);
data::TextModel untrained_translator(const Sentences&, models::ModelOptions, uint64_t seed);

// The one that several experiments look into, a small Transformer. It is trained once for each seed in a process.
struct Translator {
  Sentences sentences;
  data::TextModel model;
};
int64_t translator_steps(const Context&);  // of the context, that a training has
const Translator& small_translator(Context&, uint64_t seed);

}  // namespace heed::lab
