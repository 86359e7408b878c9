// SPDX-License-Identifier: Apache-2.0
#include "heed/train/trainer.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"
#include "heed/train/checkpoint.h"

namespace heed::train {
namespace {

void check_finite(const StepReport& report) {
  if (std::isfinite(report.loss) && std::isfinite(report.norm)) return;
  throw Error("step " + std::to_string(report.step) + ": the loss is " + std::to_string(report.loss) +
              " and the gradient's norm " + std::to_string(report.norm) +
              ", expected finite numbers; try a lower rate");
}

}  // namespace

Trainer::Trainer(models::Model& model, Optimizer& optimizer, const data::BatchSource& data, const TrainOptions& options,
                 Parallel& parallel)
    : model_(model),
      optimizer_(optimizer),
      data_(data),
      options_(options),
      parallel_(parallel),
      random_{options.seed, 0} {
  check_fields("train", options);
  if (data.size() < 1) throw Error("train: the source has 0 batches, expected at least 1");
}

// Adds a batch's gradients, whose loss counts as `share` of the step's, and gives the sum of its losses.
double Trainer::backward(const data::Batch& batch, double share) {
  nn::Pass pass{{parallel_, workspace_, &tape_}};
  pass.training = true;
  pass.random = random_;
  const models::Tokens source = data::source_tokens(batch), target = data::target_tokens(batch, model_.task());
  const Var logits = model_.logits(pass, source, target);
  const auto loss =
      ops::cross_entropy(pass, logits, data::labels(batch), {.smoothing = options_.smoothing, .ignored = batch.pad});
  random_ = pass.random;
  tape_.backward(loss.loss, pass, Tensor::full({}, share));
  tape_.clear();
  return loss.sum;
}

data::Batch Trainer::next(Place& place) const {
  if (place.batch >= data_.size()) place.batch = 0, ++place.epoch;
  return data_.at(place.epoch, place.batch++);
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

StepReport Trainer::step(const Cancel* cancel) {
  const ParameterStore& parameters = model_.parameters();
  const Place begin = place_;
  const nn::RandomStream random = random_;
  StepReport report;
  try {
    report = accumulated(cancel);
    workspace_.reserve(kernels::gradient_norm_bytes(parameters.gradients().size()));
    report.norm = kernels::gradient_norm(parameters.gradients().view<const float, 1>(), workspace_, parallel_);
    check_finite(report);
  } catch (...) {
    place_ = begin, random_ = random;
    tape_.clear();
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
