// SPDX-License-Identifier: Apache-2.0
#include "heed/train/loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/train/curve.h"

namespace heed::train {
namespace {

constexpr const char* kStopped = "stopped";
constexpr double kSaveSeconds = 60;  // between checkpoints, beside those after an evaluation

}  // namespace

Loop::Loop(const LoopParts& parts, const LoopOptions& options, const Plan& wanted, const std::string& folder,
           std::string title)
    : parts_(parts),
      options_(options),
      wanted_(wanted),
      plan_(wanted),
      layout_(folder),
      title_(std::move(title)),
      engine_(data::TextModel(parts.model, parts.tokenizers, folder), parts.parallel),
      log_(layout_.log()),
      snapshots_(layout_.snapshots(), options.average),
      best_{.loss = std::numeric_limits<double>::infinity()} {}

void Loop::save_checkpoint() {
  Trainer::Notes notes{{"best_accuracy", shortest(best_.accuracy)},
                       {"best_step", std::to_string(best_step_)},
                       {"without_progress", std::to_string(without_progress_)},
                       {"last_evaluated", std::to_string(last_evaluated_)},
                       {"ended", std::to_string(ended_)}};
  notes.insert(parts_.identity.begin(), parts_.identity.end());
  if (std::isfinite(best_.loss)) notes["best_loss"] = shortest(best_.loss);
  if (best_.bleu >= 0) notes["best_bleu"] = shortest(best_.bleu);
  if (by_minutes() && plan_.steps > 0) {
    notes["planned_minutes"] = shortest(options_.minutes);
    notes["planned_steps"] = std::to_string(plan_.steps);
    notes["planned_warmup"] = std::to_string(plan_.warmup);
  }
  if (best_.averaged > 0) notes["best_averaged"] = std::to_string(best_.averaged);
  parts_.trainer.save(layout_.checkpoint(), notes);
  saved_ = Clock::now();
}

void Loop::check_identity(const Trainer::Notes& notes) const {
  for (const auto& [name, now] : parts_.identity) {
    const auto found = notes.find(name);
    if (found == notes.end()) {
      parts_.listener.told("the checkpoint does not tell which " + name + " it is of: not compared");
    } else if (found->second != now) {
      throw Error("train: " + name + " has " + now + ", expected " + found->second + ", as the run began with");
    }
  }
}

void Loop::restore() {
  const Trainer::Notes notes = parts_.trainer.restore(layout_.checkpoint());
  check_identity(notes);
  const auto number = [&](const char* name) {
    const auto found = notes.find(name);
    return found == notes.end() ? 0.0 : std::strtod(found->second.c_str(), nullptr);
  };
  best_.loss = notes.contains("best_loss") ? number("best_loss") : best_.loss;
  best_.accuracy = number("best_accuracy");
  best_.bleu = notes.contains("best_bleu") ? number("best_bleu") : best_.bleu;
  best_.averaged = static_cast<int64_t>(number("best_averaged"));
  best_step_ = static_cast<int64_t>(number("best_step"));
  without_progress_ = static_cast<int64_t>(number("without_progress"));
  last_evaluated_ = notes.contains("last_evaluated") ? static_cast<int64_t>(number("last_evaluated")) : -1;
  ended_ = notes.contains("ended") ? static_cast<int64_t>(number("ended")) : last_evaluated_;
  // A plan for other minutes does not hold any more.
  if (by_minutes() && notes.contains("planned_steps") && number("planned_minutes") == options_.minutes) {
    follow({static_cast<int64_t>(number("planned_steps")), static_cast<int64_t>(number("planned_warmup"))});
  }
  progress_.step.step = parts_.trainer.steps_done();
  log_.cut_after(parts_.trainer.steps_done());
  snapshots_.cut_after(parts_.trainer.steps_done());
}

RunResult Loop::go() {
  started_ = saved_ = Clock::now();
  std::string why;
  try {
    if (evaluation_is_due()) evaluate();
    why = train_to_the_end();
    if (why != kStopped) evaluate_end();
  } catch (const Cancelled&) {
    why = kStopped;
  }
  save_checkpoint();
  return {parts_.trainer.steps_done(), best_, best_step_, why, progress_.seconds, parts_.dev.unknown()};
}

// Says why it ended.
std::string Loop::train_to_the_end() {
  while (plan_.steps == 0 || parts_.trainer.steps_done() < plan_.steps) {
    progress_.step = parts_.trainer.step(parts_.listener.cancel());
    measure_speed();
    if (plan_.steps == 0 && plan_is_due(options_.minutes, pace())) make_plan();
    log_.step(progress_);
    parts_.listener.stepped(progress_);
    if (evaluation_is_due()) evaluate();
    if (parts_.listener.stop()) return kStopped;
    if (options_.minutes > 0 && progress_.seconds >= 60 * options_.minutes) return "out of time";
    if (options_.patience > 0 && without_progress_ >= options_.patience) return "no progress";
    if (std::chrono::duration<double>(Clock::now() - saved_).count() > kSaveSeconds) save_checkpoint();
  }
  return "all steps done";
}

Pace Loop::pace() const {
  const double steps = static_cast<double>(std::max<int64_t>(1, steps_here_ - 1));
  return {.steps = steps_here_,
          .seconds = progress_.seconds,
          .seconds_a_step = (progress_.seconds - first_step_ - looking_) / steps,
          .steps_between_looks = options_.evaluate_every};
}

// A look at the dev set is measured for it, and not kept: only those are that come at their steps.
void Loop::make_plan() {
  Pace now = pace();
  const Clock::time_point begin = Clock::now();
  measured();
  now.seconds_a_look = std::chrono::duration<double>(Clock::now() - begin).count();
  now.seconds += now.seconds_a_look;
  now.steps = parts_.trainer.steps_done();
  follow(plan_for(options_.minutes, wanted_.warmup, now));
  save_checkpoint();
  parts_.listener.told("planned for " + shortest(options_.minutes) + " minutes: " + counted(plan_.steps, "step") +
                       ", of which " + grouped(plan_.warmup) + " are warm-up");
}

void Loop::follow(const Plan& plan) {
  plan_ = plan;
  parts_.trainer.reschedule(plan.steps, plan.warmup);
}

// Also where the run was stopped in the midst of one.
bool Loop::evaluation_is_due() const {
  const int64_t done = parts_.trainer.steps_done();
  return done > 0 && done % options_.evaluate_every == 0 && last_evaluated_ < done;
}

void Loop::measure_speed() {
  progress_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  tokens_ += progress_.step.tokens;
  if (++steps_here_ == 1) first_step_ = progress_.seconds, looking_ = 0;
  progress_.tokens_per_second = static_cast<double>(tokens_) / std::max(1e-9, progress_.seconds);
  progress_.seconds_left = std::numeric_limits<double>::infinity(), progress_.done = 0;
  if (plan_.steps > 0) {
    const int64_t left = plan_.steps - progress_.step.step;
    progress_.seconds_left = progress_.seconds / static_cast<double>(steps_here_) * static_cast<double>(left);
    progress_.done = static_cast<double>(progress_.step.step) / static_cast<double>(plan_.steps);
  }
  if (options_.minutes > 0) {
    progress_.seconds_left = std::min(progress_.seconds_left, std::max(0.0, 60 * options_.minutes - progress_.seconds));
    progress_.done = std::max(progress_.done, progress_.seconds / (60 * options_.minutes));
  }
}

void Loop::evaluate() {
  const Evaluation now = measured();
  last_evaluated_ = parts_.trainer.steps_done();
  const bool better = keep_if_better(now);
  without_progress_ = better ? 0 : without_progress_ + 1;
  snapshots_.add(parts_.trainer.steps_done(), parts_.model->parameters());
  save_checkpoint();
  write_curve();
}

// Once: a run that had nothing left to do has been here before.
void Loop::evaluate_end() {
  const int64_t done = parts_.trainer.steps_done();
  if (ended_ == done) return;
  if (last_evaluated_ < done) evaluate();
  if (snapshots_.count() > 1) evaluate_mean();
  ended_ = done;
}

// The mean of the last snapshots in place of the parameters, which come back.
void Loop::evaluate_mean() {
  struct Own {
    Tensor values, copy = values.clone();
    ~Own() { values.copy_from(copy); }  // where the evaluation was cancelled, too
  } const own{parts_.model->parameters().values()};
  snapshots_.set_to_mean(parts_.model->parameters());
  Evaluation mean = measured();
  mean.averaged = snapshots_.count();
  keep_if_better(mean);
}

Evaluation Loop::measured() {
  const Clock::time_point begin = Clock::now();
  evaluate::EvaluateOptions options{.translate = options_.stop_on == StopOn::bleu};
  options.translation.call.cancel = parts_.listener.cancel();
  const auto judged = evaluate::judge(engine_, parts_.dev, options);
  looking_ += std::chrono::duration<double>(Clock::now() - begin).count();
  return evaluation_of(evaluate::scores_of(judged, parts_.dev.corpus()));
}

bool Loop::keep_if_better(const Evaluation& now) {
  const bool better = options_.stop_on == StopOn::bleu ? now.bleu > best_.bleu : now.loss < best_.loss;
  if (better) {
    best_ = now;
    best_step_ = parts_.trainer.steps_done();
    folder::save(layout_.folder(), *parts_.model);
  }
  log_.evaluation(progress_, now, better);
  parts_.listener.evaluated(progress_, now, better);
  return better;
}

void Loop::write_curve() const {
  const std::string page = curve_page(title_, read_curves(layout_.log()));
  write_file_atomically(layout_.curve(), std::as_bytes(std::span(page)));
}

}  // namespace heed::train
