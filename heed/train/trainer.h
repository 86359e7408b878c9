// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning: one optimizer step at a time, over batches of any source, with all that has to be kept to go on later as if
// nothing had happened.
//
//   train::AdamW optimizer(model->parameters());
//   train::Trainer trainer(*model, optimizer, batches, {.rate = 3e-3}, parallel);
//   while (trainer.steps_done() < 1000) trainer.step();
//
// On several ranks, the first one's step() is everybody's: the others follow(), each with its share of a step's
// batches.
//
// Not here: when to stop and what is kept (loop.h), files (run.h), how ranks add their gradients up (gradient_sum.h).
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/tape.h"
#include "heed/base/cancel.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/data/batches.h"
#include "heed/dist/communicator.h"
#include "heed/models/model.h"
#include "heed/train/optimizer.h"
#include "heed/train/schedule.h"
#include "heed/train/sum_order.h"

namespace heed {
class BackwardWatcher;
}

namespace heed::train {

class GradientSum;

// More batches a step than anybody needs: a limit, so that a slip of the hand is an error and not a step without end.
inline constexpr int64_t kMostAccumulated = 10'000;

struct TrainOptions {
  int64_t steps{2000};  // that the schedule is made for
  double rate{1e-3};
  int64_t warmup{400};
  Schedule schedule{Schedule::inverse_sqrt};
  int64_t accumulate{1};                   // batches a step
  SumOrder sum_order{SumOrder::sequence};  // of their gradients; several ranks need another one
  double smoothing{0.1};
  double clip{1};    // of the gradient's norm; 0: none
  uint64_t seed{1};  // of dropout

  static void describe(TrainOptions& o, auto&& field) {
    field("steps", o.steps, "optimizer steps", Range::at_least(1));
    describe_others(o, field);
  }
  static void describe_others(TrainOptions& o, auto&& field) {
    field("rate", o.rate, "the highest learning rate", Range::above(0));
    field("warmup", o.warmup, "steps until the rate is reached", Range::at_least(0));
    field("schedule", o.schedule, "how the rate falls after that");
    field("accumulate", o.accumulate, "batches a step", Range::within(1, kMostAccumulated));
    field("sum_order", o.sum_order, "how their gradients are added: tree gives the same bits on any number of ranks");
    field("smoothing", o.smoothing, "of labels", Range::from_below(0, 1));
    field("clip", o.clip, "the gradient's norm at most; 0: any", Range::at_least(0));
  }
};

struct StepReport {
  int64_t step = 0;
  double loss = 0;  // a token, smoothing included
  double norm = 0;  // of the gradient, before clipping
  double rate = 0;
  int64_t tokens = 0;  // of the target
};

class HEED_API Trainer {
 public:
  // All are borrowed. Throws Error for options that do not fit. The communicator's ranks have the same options, data
  // and parameters; null: this process is alone.
  Trainer(models::Model&, Optimizer&, const data::BatchSource&, const TrainOptions&, Parallel&,
          dist::Communicator* = nullptr);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Throws Error where the loss or the gradient is not finite, and Cancelled, looking at `cancel` before each batch;
  // all is then as it was before the step. On several ranks it is the first one's to call, and Cancelled comes at a
  // step's end, on all of them, wherever it was requested.
  StepReport step(const Cancel* cancel = nullptr);
  // On the other ranks: does their part of each step, until the first one calls finish().
  void follow(const Cancel* cancel = nullptr);
  void finish();
  int64_t steps_done() const { return step_; }
  // For measuring: seconds in which this rank has waited for others' gradients, and whether gradients travel while the
  // backward pass still runs, as they do unless it is switched off here, on all ranks.
  double seconds_waited() const;
  void set_overlap(bool overlap) { overlap_ = overlap; }
  // A new schedule from here on, as if it had been that of the options.
  void reschedule(int64_t steps, int64_t warmup) { options_.steps = steps, options_.warmup = warmup; }
  int64_t epoch() const { return place_.epoch; }

  // Everything that the next step depends on, and `notes` of the caller's, in one file, whole or not at all. restore()
  // gives the notes back and continues to the same bits.
  using Notes = std::map<std::string, std::string>;
  void save(const std::string& path, const Notes& notes = {}) const;
  Notes restore(const std::string& path);

 private:
  struct Place {
    int64_t epoch = 0, batch = 0;
  };
  void skip(Place&) const;
  data::Batch next(Place&) const;
  int64_t tokens_ahead(const Cancel*) const;  // of the next step
  StepReport one_step(const Cancel*);
  StepReport accumulated(const Cancel*);
  StepReport summed(const Cancel*);
  bool share_losses(std::span<double> losses, bool cancelled);
  double backward(const data::Batch&, double share, BackwardWatcher* = nullptr);

  models::Model& model_;
  Optimizer& optimizer_;
  const data::BatchSource& data_;
  TrainOptions options_;
  Parallel& parallel_;
  Workspace workspace_;
  Tape tape_;
  nn::RandomStream random_;
  int64_t step_ = 0;
  Place place_;                                // of the next batch
  std::unique_ptr<dist::Communicator> alone_;  // where none was given
  dist::Communicator& communicator_;
  bool overlap_ = true;
  std::unique_ptr<GradientSum> sum_;  // of any order but `sequence`
};

}  // namespace heed::train
