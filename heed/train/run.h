#pragma once
// A training run from files to a model folder: tokenizer, batches, steps, dev set, checkpoints. A run that was stopped,
// or killed, goes on from its last save to the same bits.
//
// The folder: config.json and model.safetensors (the best model so far), tokenizer, train.json (these options),
// checkpoint.safetensors (to go on from), log.jsonl (a line a report), curve.html (a picture of it), README.md (written
// at the end), and with `average`, snapshots/.
#include <cstdint>
#include <string>

#include "heed/base/describe.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"
#include "heed/train/trainer.h"

namespace heed::train {

// What decides which model is the best, and when there is no more progress: the loss on the dev set, or the BLEU of its
// greedy translations, which takes longer to measure.
enum class StopOn : uint8_t { loss, bleu };

constexpr auto enum_names(StopOn) {
  return std::to_array<EnumName<StopOn>>({{"loss", StopOn::loss}, {"bleu", StopOn::bleu}});
}

struct RunOptions {
  std::string data{}, dev{};  // TSV files
  std::string preset{"transformer-tiny"};
  int64_t source_column{1}, target_column{2};
  text::TokenizerOptions tokenizer{};
  int64_t batch_tokens{4096}, max_length{128};
  TrainOptions train{};
  double dropout{-1};           // below 0: the preset's
  double minutes{0};            // 0: no limit
  int64_t evaluate_every{250};  // steps
  StopOn stop_on{StopOn::loss};
  int64_t patience{0};  // evaluations without a better one until it stops; 0: goes on
  int64_t average{0};  // at the end, the mean of the parameters at the last so many evaluations is kept if it is better
  int64_t seed{1};     // of parameters, dropout and batches

  static void describe(RunOptions& o, auto&& field) {
    field("data", o.data, "pairs to learn from: TSV, a pair a line");
    field("dev", o.dev, "pairs to measure with: TSV");
    field("preset", o.preset, "which model; see above");
    field("source_column", o.source_column, "of the TSV files, from 1; a language model reads this one",
          Range::at_least(1));
    field("target_column", o.target_column, "of the TSV files, from 1", Range::at_least(1));
    field("tokenizer", o.tokenizer, "how text becomes tokens");
    field("batch_tokens", o.batch_tokens, "tokens of a batch, padding included", Range::at_least(1));
    field("max_length", o.max_length, "longer pairs are left out", Range::at_least(2));
    field("train", o.train, "the optimiser");
    field("dropout", o.dropout, "below 0: the preset's", Range::from_below(-1, 1));
    field("minutes", o.minutes, "stop after this long; 0: no limit", Range::at_least(0));
    field("evaluate_every", o.evaluate_every, "steps between looks at the dev set", Range::at_least(1));
    field("stop_on", o.stop_on, "which model is the best: by loss, or by BLEU, on the dev set");
    field("patience", o.patience, "looks without progress until it stops; 0: goes on", Range::at_least(0));
    field("average", o.average, "also try the mean of so many last evaluated models; 0: no", Range::at_least(0));
    field("seed", o.seed, "of parameters, dropout and the order of batches", Range::at_least(0));
  }
};

struct Progress {
  StepReport step;
  double tokens_per_second = 0;
  double seconds = 0;       // since the run began, or went on
  double seconds_left = 0;  // by steps or by minutes, whichever ends first
  double done = 0;          // 0 to 1
};

// What a run tells on its way, and whether it should stop.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void told(const std::string& /*message*/) {}
  virtual void stepped(const Progress&) {}
  virtual void evaluated(const Progress&, const Evaluation&, bool /*best*/) {}
  virtual bool stop() { return false; }  // asked after every step: saves and ends
};

struct RunResult {
  int64_t steps = 0;
  Evaluation best{};
  int64_t best_step = 0;
  std::string why;  // it ended: "all steps done", "out of time", "no progress", "stopped"
  double seconds = 0;
};

// Into a folder that is new or empty. Throws Error; the last good checkpoint is then still there.
RunResult run(const RunOptions&, const std::string& folder, Listener&, Parallel&);
// Goes on in a folder that a run has left, with its options; steps and minutes may be set anew (0: as they were).
RunResult resume(const std::string& folder, int64_t steps, double minutes, Listener&, Parallel&);

}  // namespace heed::train
