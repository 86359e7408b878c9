#include "heed/train/trainer.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"
#include "heed/train/checkpoint.h"

namespace heed::train {

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

StepReport Trainer::step() {
  std::vector<data::Batch> batches;
  int64_t tokens = 0;
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    if (batch_ >= data_.size()) batch_ = 0, ++epoch_;
    batches.push_back(data_.at(epoch_, batch_++));
    tokens += batches.back().target_tokens;
  }
  double sum = 0;
  for (const data::Batch& batch : batches) {
    sum += backward(batch, static_cast<double>(batch.target_tokens) / static_cast<double>(tokens));
  }
  ++step_;
  const ParameterStore& parameters = model_.parameters();
  workspace_.reserve(kernels::gradient_norm_bytes(parameters.gradients().size()));
  const double norm = kernels::gradient_norm(parameters.gradients().view<const float, 1>(), workspace_, parallel_);
  StepReport report{.step = step_, .loss = sum / static_cast<double>(tokens), .norm = norm, .tokens = tokens};
  report.rate = learning_rate({options_.rate, options_.warmup, options_.schedule}, step_, options_.steps);
  if (!std::isfinite(report.loss) || !std::isfinite(norm)) {
    parameters.clear_gradients();
    throw Error("step " + std::to_string(step_) + ": the loss is " + std::to_string(report.loss) +
                " and the gradient's norm " + std::to_string(norm) + ", expected finite numbers; try a lower rate");
  }
  optimizer_.step({.rate = report.rate,
                   .gradient_scale = options_.clip > 0 ? kernels::clip_scale(norm, options_.clip) : 1,
                   .step = step_},
                  parallel_);
  return report;
}

void Trainer::save(const std::string& path, const Notes& notes) const {
  save_checkpoint(path, model_.parameters(), optimizer_, {step_, epoch_, batch_, random_.position}, notes);
}

Trainer::Notes Trainer::restore(const std::string& path) {
  TrainingPlace place;
  Notes notes = load_checkpoint(path, model_.parameters(), optimizer_, place);
  step_ = place.step, epoch_ = place.epoch, batch_ = place.batch;
  random_.position = place.random;
  return notes;
}

}  // namespace heed::train
