// SPDX-License-Identifier: Apache-2.0
#include "heed/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"
#include "heed/train/checkpoint.h"
#include "heed/train/gradient_sum.h"

namespace heed::train {
namespace {

void check_finite(const StepReport& report) {
  if (std::isfinite(report.loss) && std::isfinite(report.norm)) return;
  throw Error("step " + std::to_string(report.step) + ": the loss is " + std::to_string(report.loss) +
              " and the gradient's norm " + std::to_string(report.norm) +
              ", expected finite numbers; try a lower rate");
}

// Each batch has draws of dropout of its own, whoever computes it: more than any batch needs.
constexpr uint64_t kDrawsOfBatch = uint64_t{1} << 24;

// What the first rank has the others do.
struct Command {
  int64_t go_on = 0;  // 0: it is over
  int64_t steps = 0, warmup = 0;
};

}  // namespace

Trainer::Trainer(models::Model& model, Optimizer& optimizer, const data::BatchSource& data, const TrainOptions& options,
                 Parallel& parallel, dist::Communicator* communicator)
    : model_(model),
      optimizer_(optimizer),
      data_(data),
      options_(options),
      parallel_(parallel),
      random_{options.seed, 0},
      alone_(communicator ? nullptr : dist::single_process()),
      communicator_(communicator ? *communicator : *alone_) {
  check_fields("train", options);
  if (data.size() < 1) throw Error("train: the source has 0 batches, expected at least 1");
  if (options.sum_order != SumOrder::sequence) {
    constexpr int64_t kLeastPart = 4096;  // that a rank adds up of a bucket: a message of 16 KB
    GradientSumOptions sum{.order = options.sum_order, .micro_batches = options.accumulate};
    sum.bucket = std::max(sum.bucket, kLeastPart * communicator_.size());
    sum_ = std::make_unique<GradientSum>(model.parameters(), sum, communicator_, parallel);
  } else if (communicator_.size() > 1) {
    throw Error("train: sum_order is sequence with " + std::to_string(communicator_.size()) +
                " ranks, expected tree or any");
  }
}

Trainer::~Trainer() = default;

double Trainer::seconds_waited() const { return sum_ ? sum_->seconds_waited() : 0; }

// Adds a batch's gradients, whose loss counts as `share` of the step's, and gives the sum of its losses.
double Trainer::backward(const data::Batch& batch, double share, BackwardWatcher* watcher) {
  nn::Pass pass{{parallel_, workspace_, &tape_}};
  pass.training = true;
  pass.random = random_;
  const models::Tokens source = data::source_tokens(batch), target = data::target_tokens(batch, model_.task());
  const Var logits = model_.logits(pass, source, target);
  const auto loss =
      ops::cross_entropy(pass, logits, data::labels(batch), {.smoothing = options_.smoothing, .ignored = batch.pad});
  random_ = pass.random;
  std::optional<WatchBackward> watching;
  if (watcher) watching.emplace(tape_, *watcher);
  tape_.backward(loss.loss, pass, Tensor::full({}, share));
  tape_.clear();
  return loss.sum;
}

void Trainer::skip(Place& place) const {
  if (place.batch >= data_.size()) place.batch = 0, ++place.epoch;
  ++place.batch;
}

data::Batch Trainer::next(Place& place) const {
  skip(place);
  return data_.at(place.epoch, place.batch - 1);
}

int64_t Trainer::tokens_ahead(const Cancel* cancel) const {
  Place place = place_;
  int64_t tokens = 0;
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    check_cancel(cancel);
    tokens += next(place).target_tokens;
  }
  return tokens;
}

// The gradients of a step's batches, each by its share of the tokens. The batches are made twice, first to count: one
// is in memory at a time, however many a step has.
StepReport Trainer::accumulated(const Cancel* cancel) {
  StepReport report{.step = step_ + 1};
  const auto all = static_cast<double>(options_.accumulate > 1 ? tokens_ahead(cancel) : 0);
  double sum = 0;
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    check_cancel(cancel);
    const data::Batch batch = next(place_);
    sum += backward(batch, options_.accumulate > 1 ? static_cast<double>(batch.target_tokens) / all : 1);
    report.tokens += batch.target_tokens;
  }
  report.loss = sum / static_cast<double>(report.tokens);
  return report;
}

// Whether a rank was cancelled. Of `losses`, each rank has those of its own batches at first, and then all have all.
bool Trainer::share_losses(std::span<double> losses, bool cancelled) {
  const auto most = static_cast<size_t>((std::ssize(losses) - 1) / communicator_.size() + 1);
  std::vector<double> mine(most + 1), all((most + 1) * static_cast<size_t>(communicator_.size()));
  const auto share = [&](int rank) {
    const SumNode node = share_of_rank(std::ssize(losses), rank, communicator_.size());
    return losses.subspan(static_cast<size_t>(node.begin), static_cast<size_t>(node.end - node.begin));
  };
  std::ranges::copy(share(communicator_.rank()), mine.begin());
  mine[most] = cancelled ? 1 : 0;
  communicator_.all_gather<double>(mine, all);
  bool any = false;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::span<double> theirs = std::span(all).subspan(static_cast<size_t>(rank) * (most + 1), most + 1);
    const std::span<double> to = share(rank);
    std::copy_n(theirs.begin(), to.size(), to.begin());
    any = any || theirs[most] != 0;
  }
  return any;
}

// The same over ranks: this one's batches, and then the sum over all.
StepReport Trainer::summed(const Cancel* cancel) {
  const bool alone = communicator_.size() == 1;
  StepReport report{.step = step_ + 1};
  report.tokens = tokens_ahead(alone ? cancel : nullptr);
  const auto all = static_cast<double>(report.tokens);
  const uint64_t draws = random_.position;
  std::vector<double> losses(static_cast<size_t>(options_.accumulate));
  for (int64_t m = 0; m < options_.accumulate; ++m) {
    if (m < sum_->mine().begin || m >= sum_->mine().end) {
      skip(place_);
      continue;
    }
    if (alone) check_cancel(cancel);
    const data::Batch batch = next(place_);
    random_.position = draws + static_cast<uint64_t>(m) * kDrawsOfBatch;
    const bool last = m + 1 == sum_->mine().end && overlap_;  // it hides what is sent of it already
    losses[static_cast<size_t>(m)] =
        backward(batch, static_cast<double>(batch.target_tokens) / all, last ? sum_.get() : nullptr);
    sum_->computed(m);
  }
  random_.position = draws + static_cast<uint64_t>(options_.accumulate) * kDrawsOfBatch;
  sum_->finish();
  if (share_losses(losses, cancel && cancel->requested())) throw Cancelled();
  for (const double loss : losses) report.loss += loss;
  report.loss /= all;
  return report;
}

StepReport Trainer::step(const Cancel* cancel) {
  Command command{1, options_.steps, options_.warmup};
  communicator_.broadcast(0, std::span(&command, 1));
  return one_step(cancel);
}

void Trainer::finish() {
  Command over;
  communicator_.broadcast(0, std::span(&over, 1));
}

void Trainer::follow(const Cancel* cancel) {
  for (;;) {
    Command command;
    communicator_.broadcast(0, std::span(&command, 1));
    if (command.go_on == 0) return;
    reschedule(command.steps, command.warmup);
    try {
      one_step(cancel);
    } catch (const Cancelled&) {
      continue;  // the first rank was, too, and says how to go on
    }
  }
}

StepReport Trainer::one_step(const Cancel* cancel) {
  const ParameterStore& parameters = model_.parameters();
  const Place begin = place_;
  const nn::RandomStream random = random_;
  StepReport report;
  try {
    report = sum_ ? summed(cancel) : accumulated(cancel);
    workspace_.reserve(kernels::gradient_norm_bytes(parameters.gradients().size()));
    report.norm = kernels::gradient_norm(parameters.gradients().view<const float, 1>(), workspace_, parallel_);
    check_finite(report);
  } catch (...) {
    place_ = begin, random_ = random;
    tape_.clear();
    if (sum_) sum_->clear();
    parameters.clear_gradients();
    throw;
  }
  step_ = report.step;
  report.rate = learning_rate({options_.rate, options_.warmup, options_.schedule}, step_, options_.steps);
  optimizer_.step({.rate = report.rate,
                   .gradient_scale = options_.clip > 0 ? kernels::clip_scale(report.norm, options_.clip) : 1,
                   .step = step_},
                  parallel_);
  return report;
}

void Trainer::save(const std::string& path, const Notes& notes) const {
  save_checkpoint(path, model_.parameters(), optimizer_, {step_, place_.epoch, place_.batch, random_.position}, notes);
}

Trainer::Notes Trainer::restore(const std::string& path) {
  TrainingPlace place;
  Notes notes = load_checkpoint(path, model_.parameters(), optimizer_, place);
  step_ = place.step, place_ = {place.epoch, place.batch};
  random_.position = place.random;
  return notes;
}

}  // namespace heed::train
