// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop of a training run: steps, looks at the dev set, the best model so far, checkpoints, and when it is over.
// Not here: where data and model come from (run.h), what a step is (trainer.h).
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/data/text_model.h"
#include "heed/evaluate/evaluate.h"
#include "heed/folder/model_folder.h"
#include "heed/train/average.h"
#include "heed/train/log.h"
#include "heed/train/plan.h"
#include "heed/train/report.h"
#include "heed/train/trainer.h"

namespace heed::train {

// What decides which model is the best, and when there is no more progress: the loss on the dev set, or the BLEU of its
// greedy translations, which takes longer to measure.
enum class StopOn : uint8_t { loss, bleu };

constexpr auto enum_names(StopOn) {
  return std::to_array<EnumName<StopOn>>({{"loss", StopOn::loss}, {"bleu", StopOn::bleu}});
}

struct LoopOptions {
  double minutes{0};            // 0: no limit; where the number of steps is 0, it follows from them (plan.h)
  int64_t evaluate_every{250};  // steps
  StopOn stop_on{StopOn::loss};
  int64_t patience{0};  // evaluations without a better one until it stops; 0: goes on
  int64_t average{0};  // at the end, the mean of the parameters at the last so many evaluations is kept if it is better

  static void describe(LoopOptions& o, auto&& field) {
    field("minutes", o.minutes, "stop after this long, and do as many steps as fit, unless steps came; 0: no limit",
          Range::at_least(0));
    field("evaluate_every", o.evaluate_every, "steps between looks at the dev set", Range::at_least(1));
    field("stop_on", o.stop_on, "which model is the best: by loss, or by BLEU, on the dev set");
    field("patience", o.patience, "looks without progress until it stops; 0: goes on", Range::at_least(0));
    field("average", o.average, "also try the mean of so many last evaluated models; 0: no", Range::at_least(0));
  }
};

// What a loop works on. All is borrowed but the shared.
struct LoopParts {
  std::shared_ptr<models::Model> model;
  data::Tokenizers tokenizers;
  const evaluate::TestSet& dev;
  Trainer& trainer;
  Listener& listener;
  Parallel& parallel;
  // What checkpoints keep of the data, by name; a checkpoint that has something else there is of another run.
  std::map<std::string, std::string> identity{};
};

class HEED_API Loop {
 public:
  // Until the steps of `wanted` are done; where they are 0, as many as the minutes allow, with its warm-up at most. The
  // folder gets the best model so far, checkpoints, log and curve; `title` is the curve's.
  Loop(const LoopParts&, const LoopOptions&, const Plan& wanted, const std::string& folder, std::string title);

  void save_checkpoint();
  // Goes on from the folder's checkpoint. Throws Error, with nothing written, where it is of other data.
  void restore();
  RunResult go();

 private:
  using Clock = std::chrono::steady_clock;
  void check_identity(const Trainer::Notes&) const;
  std::string train_to_the_end();
  bool by_minutes() const { return wanted_.steps == 0; }
  Pace pace() const;
  void make_plan();
  void follow(const Plan&);
  bool evaluation_is_due() const;
  void measure_speed();
  void evaluate();
  void evaluate_end();
  void evaluate_mean();
  Evaluation measured();
  bool keep_if_better(const Evaluation&);
  void write_curve() const;

  LoopParts parts_;
  const LoopOptions options_;
  const Plan wanted_;
  Plan plan_;  // what is followed
  const folder::Layout layout_;
  const std::string title_;
  decode::Engine engine_;
  Log log_;
  Snapshots snapshots_;
  Progress progress_;
  Evaluation best_;
  int64_t best_step_ = 0, without_progress_ = 0, last_evaluated_ = -1, ended_ = -1, tokens_ = 0, steps_here_ = 0;
  double first_step_ = 0, looking_ = 0;  // seconds of this sitting: to the end of its first step; at the dev set since
  Clock::time_point started_, saved_;
};

}  // namespace heed::train
