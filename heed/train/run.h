// SPDX-License-Identifier: Apache-2.0
#pragma once
// A training run from files to a model folder: tokenizers, batches, steps, dev set, checkpoints. A run that was
// stopped, or killed, goes on from its last save to the same bits. What the folder holds is in folder/model_folder.h.
#include <cstdint>
#include <optional>
#include <string>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/dist/communicator.h"
#include "heed/models/options.h"
#include "heed/text/corpus.h"
#include "heed/text/tokenizer.h"
#include "heed/train/loop.h"
#include "heed/train/optimizer.h"
#include "heed/train/report.h"
#include "heed/train/trainer.h"

namespace heed::train {

struct RunOptions {
  std::string data{}, dev{};  // TSV files, or any that text/lines.h can open
  // In place of each: two files with a line for each other.
  std::string source{}, target{}, dev_source{}, dev_target{};
  std::string preset{"transformer-tiny"};
  std::optional<models::ModelOptions> model{};  // in place of a preset; its vocabularies are the tokenizers' sizes
  // Folder of a model to go on from, with its options, tokenizers and parameters; preset and tokenizer do not count.
  std::string init{};
  int64_t source_column{1}, target_column{2};
  text::TokenizerOptions tokenizer{.kind = text::TokenizerKind::automatic};
  bool separate_vocabularies{false};  // source and target have a tokenizer each
  // Files to take in place of learning tokenizers (text::import_tokenizer); the target's may be empty: it is the
  // source's.
  std::string tokenizer_model{}, target_tokenizer_model{};
  int64_t batch_tokens{4096}, max_length{128};
  TrainOptions train{.steps = 0};  // 0 steps: as many as the minutes allow (plan.h), and 2000 where there is no limit
  AdamWOptions optimizer{};
  double dropout{-1};  // below 0: the preset's
  LoopOptions loop{};
  int64_t seed{1};  // of parameters, dropout and batches

  static void describe(RunOptions& o, auto&& field) {
    field("data", o.data, "pairs to learn from: TSV, a pair a line; gzip or not; -: standard input");
    field("dev", o.dev, "pairs to measure with: TSV");
    field("source", o.source, "in place of data: sentences, one a line");
    field("target", o.target, "and their translations or tags, line by line");
    field("dev_source", o.dev_source, "in place of dev: sentences, one a line");
    field("dev_target", o.dev_target, "and their translations or tags, line by line");
    field("preset", o.preset, "which model; see above");
    field("init", o.init, "folder of a model to go on from, with its tokenizers");
    field("source_column", o.source_column, "of the TSV files, from 1; a language model reads this one",
          Range::at_least(1));
    field("target_column", o.target_column, "of the TSV files, from 1", Range::at_least(1));
    field("tokenizer", o.tokenizer, "how text becomes tokens");
    field("separate_vocabularies", o.separate_vocabularies, "source and target have a vocabulary each");
    field("tokenizer_model", o.tokenizer_model,
          "a SentencePiece model, or a model folder's tokenizer, to cut text with");
    field("target_tokenizer_model", o.target_tokenizer_model, "the same for the target alone");
    field("batch_tokens", o.batch_tokens, "tokens of a batch, padding included", Range::at_least(1));
    field("max_length", o.max_length, "longer pairs are left out", Range::at_least(2));
    Learning learning{o.train, o.optimizer};
    field("train", learning, "the optimizer");
    field("dropout", o.dropout, "below 0: the preset's", Range::from_below(-1, 1));
    LoopOptions::describe(o.loop, field);
    field("seed", o.seed, "of parameters, dropout and the order of batches", Range::at_least(0));
  }

 private:
  // Both in one group of train.json.
  struct Learning {
    TrainOptions& train;
    AdamWOptions& optimizer;

    static void describe(Learning& o, auto&& field) {
      field("steps", o.train.steps, "optimizer steps; 0: as many as the minutes allow, or 2000", Range::at_least(0));
      TrainOptions::describe_others(o.train, field);
      field("weight_decay", o.optimizer.weight_decay, "of matrices", Range::at_least(0));
      field("beta2", o.optimizer.beta2, "AdamW's", Range::from_below(0, 1));
    }
  };
};

// Into a folder that is new or empty. Throws Error; the last good checkpoint is then still there, and a run that could
// not begin leaves no folder.
//
// On several ranks, all of them call it, with the same options; each reads the data. The first one alone writes to the
// folder, looks at the dev set, and has a result; listeners of the others are told nothing, and are asked for their
// Cancel. Where one throws, its communicator has to end the others.
HEED_API RunResult run(const RunOptions&, const std::string& folder, Listener&, Parallel&,
                       dist::Communicator* = nullptr);
// The options of the run that a folder holds. Throws Error where it holds none to go on with.
HEED_API RunOptions options_of(const std::string& folder);
// Goes on in a folder that a run has left, to the same bits as if it had never stopped. Options may be set anew, in
// what options_of() gave, and are kept: steps, rate, schedule and whatever else the parameters, the tokens and the
// place in the data do not depend on. Throws Error for others, and where the data is not what the run began with.
// The number of ranks may be another one.
HEED_API RunResult resume(const std::string& folder, const RunOptions&, Listener&, Parallel&,
                          dist::Communicator* = nullptr);
HEED_API RunResult resume(const std::string& folder, Listener&, Parallel&);

// Which columns of a TSV file a model reads.
HEED_API text::TsvOptions columns_of(const RunOptions&, models::Task);

}  // namespace heed::train
