// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of training share: a little corpus of sentences that can be learnt, a model for it, and a folder with
// both as files.
#include <fstream>
#include <string>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/text/corpus.h"
#include "heed/train/run.h"

namespace heed::train::testing {

// "a c b" becomes "A C B": every word is translated by itself. Its seed is that of the call in every run: trainings on
// it have to succeed.
inline text::Corpus letters(int64_t pairs, uint64_t seed) {
  Rng rng(seed);
  text::Corpus corpus;
  for (int64_t n = 0; n < pairs; ++n) {
    text::Pair pair;
    for (uint64_t i = 0, length = 2 + rng.below(5); i < length; ++i) {
      const auto letter = static_cast<char>(rng.below(8));
      (pair.source += i ? " " : "") += static_cast<char>('a' + letter);
      (pair.target += i ? " " : "") += static_cast<char>('A' + letter);
    }
    corpus.pairs.push_back(pair);
  }
  return corpus;
}

inline std::vector<std::string> lines_of(const text::Corpus& corpus) {
  std::vector<std::string> lines;
  for (const text::Pair& pair : corpus.pairs) lines.push_back(pair.source), lines.push_back(pair.target);
  return lines;
}

inline models::ModelOptions small_model(int64_t vocabulary) {
  models::TransformerOptions o;
  o.vocabulary = vocabulary;
  o.width = 16, o.heads = 2, o.inner = 32, o.max_length = 32;
  o.encoder_layers = o.decoder_layers = 1;
  o.dropout = 0.2f, o.attention_dropout = 0.1f;
  return o;
}

inline void write_tsv(const std::string& path, const text::Corpus& corpus) {
  std::ofstream file(path);
  for (const text::Pair& pair : corpus.pairs) file << pair.source << '\t' << pair.target << '\n';
}

// The options that a folder's run had, with another number of steps: to go on to.
inline RunOptions with_steps(const std::string& folder, int64_t steps) {
  RunOptions options = options_of(folder);
  options.train.steps = steps;
  return options;
}

// Files to train from, and short runs over them.
struct Files {
  Files() {
    write_tsv(folder.file("train.tsv"), letters(60, 1));
    write_tsv(folder.file("dev.tsv"), letters(10, 2));
  }
  RunOptions options() const {
    RunOptions o;
    o.data = folder.file("train.tsv"), o.dev = folder.file("dev.tsv");
    o.tokenizer.kind = text::TokenizerKind::words;  // learnt in no time
    o.batch_tokens = 64;
    o.train.steps = 8, o.train.warmup = 4;
    o.loop.evaluate_every = 3;
    return o;
  }
  std::string out(const std::string& name) const { return folder.file(name); }

  heed::testing::TemporaryFolder folder;
};

}  // namespace heed::train::testing
