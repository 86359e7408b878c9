#include "heed/train/trainer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "heed/base/error.h"
#include "heed/decode/batch_tokens.h"
#include "heed/io/safetensors.h"
#include "heed/ops/softmax.h"

namespace heed::train {
namespace {

using decode::labels_of, decode::source_of, decode::target_of;

int64_t correct_tokens(const Tensor& logits, const Tensor& labels) {
  const int64_t V = logits.shape(-1);
  int64_t right = 0;
  for (int64_t i = 0; i < labels.size(); ++i) {
    if (labels.data<int32_t>()[i] == text::kPad) continue;
    const float* row = logits.data<float>() + i * V;
    right += std::max_element(row, row + V) - row == labels.data<int32_t>()[i];
  }
  return right;
}

// A tensor of the checkpoint, by its name.
void copy_out(const io::SafetensorsFile& file, const std::string& path, const char* name, const Tensor& to) {
  const io::TensorEntry& from = file.at(name);
  if (from.type != io::ElementType::f32 || from.bytes.size() != to.bytes()) {
    throw Error(path + ": '" + name + "' has " + std::to_string(from.bytes.size()) + " bytes, expected " +
                std::to_string(to.bytes()) + " as this model has");
  }
  std::memcpy(to.raw(), from.bytes.data(), to.bytes());
}

int64_t number_in(const io::SafetensorsFile& file, const std::string& path, const char* name) {
  const auto found = file.metadata().find(name);
  int64_t value = 0;
  const char* end = found == file.metadata().end() ? nullptr : found->second.data() + found->second.size();
  if (!end || std::from_chars(found->second.data(), end, value).ptr != end || value < 0) {
    throw Error(path + ": metadata '" + name +
                "' is missing or no number, expected a checkpoint that heed train wrote");
  }
  return value;
}

}  // namespace

Trainer::Trainer(models::Model& model, const text::Batches& data, const TrainOptions& options, Parallel& parallel)
    : model_(model), data_(data), options_(options), parallel_(parallel), random_{options.seed, 0} {
  const ParameterStore& parameters = model_.parameters();
  if (!parameters.gradients())
    throw Error("trainer: the model's parameters have no gradients, expected a store with them");
  m_ = Tensor::zeros_like(parameters.values());
  v_ = Tensor::zeros_like(parameters.values());
  for (const auto& entry : parameters.entries()) {
    if (entry.decay) decayed_.push_back({entry.offset, entry.offset + entry.value.size()});
  }
}

// Adds a batch's gradients, whose loss counts as `share` of the step's.
Trainer::Loss Trainer::backward(const text::Batch& batch, double share) {
  nn::Pass pass{{parallel_, workspace_, &tape_}};
  pass.training = true;
  pass.random = random_;
  const models::Tokens source = source_of(batch), target = target_of(batch, model_.task());
  const Var logits = model_.logits(pass, source, target);
  const auto loss =
      ops::cross_entropy(pass, logits, labels_of(batch), {.smoothing = options_.smoothing, .ignored = text::kPad});
  random_ = pass.random;
  tape_.backward(loss.loss, pass, Tensor::full({}, share));
  tape_.clear();
  return {loss.sum, loss.count};
}

StepReport Trainer::step() {
  std::vector<text::Batch> batches;
  int64_t tokens = 0;
  for (int64_t i = 0; i < options_.accumulate; ++i) {
    if (batch_ >= data_.size()) batch_ = 0, ++epoch_;
    batches.push_back(data_.at(epoch_, batch_++));
    tokens += batches.back().target_tokens;
  }
  double sum = 0;
  for (const text::Batch& batch : batches) {
    sum += backward(batch, static_cast<double>(batch.target_tokens) / static_cast<double>(tokens)).sum;
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
                " and the gradient's norm " + std::to_string(norm) + ", expected finite numbers; try a lower --rate");
  }
  update(report.rate, norm);
  return report;
}

void Trainer::update(double rate, double norm) {
  const ParameterStore& parameters = model_.parameters();
  kernels::StepBuffers<float> buffers{.values = parameters.values().view<float, 1>(),
                                      .gradients = parameters.gradients().view<float, 1>(),
                                      .decayed = decayed_,
                                      .clear_gradients = true};
  if (options_.clip > 0) buffers.gradient_scale = kernels::clip_scale(norm, options_.clip);
  kernels::adam_step({.rate = rate, .beta2 = options_.beta2, .eps = 1e-9, .weight_decay = options_.weight_decay},
                     buffers, {m_.view<float, 1>(), v_.view<float, 1>(), step_}, parallel_);
}

Evaluation Trainer::evaluate(const std::vector<text::Batch>& batches) {
  nn::Pass pass{{parallel_, workspace_}};
  double sum = 0;
  int64_t tokens = 0, right = 0;
  for (const text::Batch& batch : batches) {
    const Var logits = model_.logits(pass, source_of(batch), target_of(batch, model_.task()));
    const Tensor labels = labels_of(batch);
    const auto loss = ops::cross_entropy(pass, logits, labels, {.ignored = text::kPad});
    sum += loss.sum;
    tokens += loss.count;
    right += correct_tokens(logits.value(), labels);
  }
  const double count = static_cast<double>(std::max<int64_t>(1, tokens));
  return {.loss = sum / count, .accuracy = static_cast<double>(right) / count, .tokens = tokens};
}

void Trainer::save(const std::string& path, const Notes& notes) const {
  Notes metadata = notes;
  metadata["step"] = std::to_string(step_);
  metadata["epoch"] = std::to_string(epoch_);
  metadata["batch"] = std::to_string(batch_);
  metadata["random"] = std::to_string(random_.position);
  const auto bytes = [](const Tensor& t) { return std::span<const std::byte>(t.raw(), t.bytes()); };
  const io::Shape shape{m_.size()};
  const Tensor& values = model_.parameters().values();
  io::write_safetensors(path,
                        {{"values", io::ElementType::f32, shape, bytes(values)},
                         {"m", io::ElementType::f32, shape, bytes(m_)},
                         {"v", io::ElementType::f32, shape, bytes(v_)}},
                        metadata);
}

Trainer::Notes Trainer::restore(const std::string& path) {
  const io::SafetensorsFile file(path);
  const int64_t step = number_in(file, path, "step"), epoch = number_in(file, path, "epoch"),
                batch = number_in(file, path, "batch"), random = number_in(file, path, "random");
  copy_out(file, path, "values", model_.parameters().values());
  copy_out(file, path, "m", m_);
  copy_out(file, path, "v", v_);
  step_ = step, epoch_ = epoch, batch_ = batch;
  random_.position = static_cast<uint64_t>(random);
  return file.metadata();
}

}  // namespace heed::train
