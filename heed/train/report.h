// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a training run tells on its way, and at its end.
#include <cstdint>
#include <string>

#include "heed/base/cancel.h"
#include "heed/base/export.h"
#include "heed/evaluate/evaluate.h"
#include "heed/train/trainer.h"

namespace heed::train {

// The model on data it does not learn from, without smoothing and dropout.
struct Evaluation {
  double loss = 0;      // a token
  double accuracy = 0;  // of tokens, given those before
  int64_t tokens = 0;
  double bleu = -1;      // of greedy translations; below 0: not measured
  int64_t averaged = 0;  // of the mean of that many earlier parameters; 0: of the parameters themselves
};

inline Evaluation evaluation_of(const evaluate::Scores& scores) {
  return {.loss = scores.loss, .accuracy = scores.accuracy, .tokens = scores.tokens, .bleu = scores.bleu.value_or(-1)};
}

struct Progress {
  StepReport step;
  double tokens_per_second = 0;
  double seconds = 0;       // since the run began, or went on
  double seconds_left = 0;  // by steps or by minutes, whichever ends first
  double done = 0;          // 0 to 1
};

// Told of what happens, and asked whether to stop.
class HEED_API Listener {
 public:
  virtual ~Listener() = default;
  virtual void told(const std::string& /*message*/) {}
  // Work begins that has no steps to report and cannot be cancelled, as learning a tokenizer. It is over when the next
  // call of any kind comes. Nothing has been written yet.
  virtual void working(const std::string& /*what*/) {}
  // All is read, and the folder gets its first files: from now on a stop saves.
  virtual void began() {}
  virtual void stepped(const Progress&) {}
  virtual void evaluated(const Progress&, const Evaluation&, bool /*best*/) {}
  // Looked at within steps and while the dev set is measured, too: saves and ends. An evaluation that was left is done
  // when the run goes on.
  virtual const Cancel* cancel() { return nullptr; }
  // Asked after every step: saves and ends.
  virtual bool stop() { return cancel() && cancel()->requested(); }
};

struct RunResult {
  int64_t steps = 0;
  Evaluation best{};
  int64_t best_step = 0;
  std::string why;  // it ended: "all steps done", "out of time", "no progress", "stopped"; of other ranks: "followed"
  double seconds = 0;
  evaluate::UnknownOfPairs unknown{};  // tokens of the dev set
};

}  // namespace heed::train
