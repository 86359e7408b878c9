#pragma once
// Learning: one optimiser step at a time, with all that has to be kept to go on later as if nothing had happened.
// Not here: when to stop, what to print, where files go (cli/train.cc).
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heed/autograd/tape.h"
#include "heed/base/describe.h"
#include "heed/kernels/optimizer.h"
#include "heed/models/model.h"
#include "heed/text/batching.h"
#include "heed/train/schedule.h"

namespace heed::train {

struct TrainOptions {
  int64_t steps{2000};
  double rate{1e-3};
  int64_t warmup{400};
  Schedule schedule{Schedule::inverse_sqrt};
  int64_t accumulate{1};  // batches a step
  double smoothing{0.1};
  double clip{1};  // of the gradient's norm; 0: none
  double weight_decay{0.01};
  double beta2{0.98};
  uint64_t seed{1};  // of dropout

  static void describe(TrainOptions& o, auto&& field) {
    field("steps", o.steps, "optimiser steps", Range::at_least(1));
    field("rate", o.rate, "the highest learning rate", Range::above(0));
    field("warmup", o.warmup, "steps until the rate is reached", Range::at_least(0));
    field("schedule", o.schedule, "how the rate falls after that");
    field("accumulate", o.accumulate, "batches a step", Range::at_least(1));
    field("smoothing", o.smoothing, "of labels", Range::from_below(0, 1));
    field("clip", o.clip, "the gradient's norm at most; 0: any", Range::at_least(0));
    field("weight_decay", o.weight_decay, "of matrices", Range::at_least(0));
    field("beta2", o.beta2, "AdamW's", Range::from_below(0, 1));
  }
};

struct StepReport {
  int64_t step = 0;
  double loss = 0;  // a token, smoothing included
  double norm = 0;  // of the gradient, before clipping
  double rate = 0;
  int64_t tokens = 0;  // of the target
};

// The model's loss on data it does not learn from: without smoothing and dropout.
struct Evaluation {
  double loss = 0;      // a token
  double accuracy = 0;  // of tokens, given those before
  int64_t tokens = 0;
  double bleu = -1;      // of greedy translations; below 0: not measured
  int64_t averaged = 0;  // of the mean of that many earlier parameters; 0: of the parameters themselves
};

class Trainer {
 public:
  // All are borrowed.
  Trainer(models::Model&, const text::Batches& data, const TrainOptions&, Parallel&);

  // Throws Error where the loss or the gradient is not finite; parameters are then as they were before the step.
  StepReport step();
  Evaluation evaluate(const std::vector<text::Batch>&);
  int64_t steps_done() const { return step_; }
  int64_t epoch() const { return epoch_; }

  // Everything that the next step depends on, and `notes` of the caller's, in one file, whole or not at all. restore()
  // gives the notes back and continues to the same bits.
  using Notes = std::map<std::string, std::string>;
  void save(const std::string& path, const Notes& notes = {}) const;
  Notes restore(const std::string& path);

 private:
  struct Loss {
    double sum = 0;
    int64_t count = 0;
  };
  Loss backward(const text::Batch&, double share);
  void update(double rate, double norm);

  models::Model& model_;
  const text::Batches& data_;
  TrainOptions options_;
  Parallel& parallel_;
  Workspace workspace_;
  Tape tape_;
  Tensor m_, v_;
  std::vector<kernels::ElementRange> decayed_;
  nn::RandomStream random_;
  int64_t step_ = 0, epoch_ = 0, batch_ = 0;
};

}  // namespace heed::train
