// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/training.h"

#include <algorithm>
#include <numeric>

#include "heed/base/workspace.h"
#include "heed/data/batch.h"
#include "heed/kernels/optimizer.h"
#include "heed/ops/softmax.h"
#include "heed/train/optimizer.h"
#include "heed/train/schedule.h"
#include "heed/train/trainer.h"

namespace heed::lab {
namespace {

constexpr uint64_t kHeldOutStream = uint64_t{1} << 63;  // batches are streams from 0 on

std::vector<data::TokenPair> drawn(const Draw& draw, int64_t pairs, Rng rng) {
  std::vector<data::TokenPair> all;
  for (int64_t i = 0; i < pairs; ++i) all.push_back(draw(rng));
  return all;
}

data::Batch batch_of(const std::vector<data::TokenPair>& pairs, size_t begin, size_t count) {
  std::vector<size_t> items(count);
  std::iota(items.begin(), items.end(), begin);
  return data::pair_batch(pairs, items);
}

train::RateOptions rates(const TrainingOptions& o) {
  return {.rate = o.rate, .warmup = o.steps / 10, .schedule = train::Schedule::cosine};
}

}  // namespace

data::Batch DrawnBatches::at(int64_t /*epoch*/, int64_t n) const {
  const auto pairs = drawn(draw_, rows_, Rng(seed_, static_cast<uint64_t>(n)));
  return batch_of(pairs, 0, pairs.size());
}

std::vector<data::TokenPair> held_out(const Draw& draw, int64_t pairs, uint64_t seed) {
  return drawn(draw, pairs, Rng(seed, kHeldOutStream));
}

std::shared_ptr<models::Model> trained(Context& context, const models::ModelOptions& options,
                                       const data::BatchSource& batches, const TrainingOptions& o) {
  std::shared_ptr<models::Model> model = models::make_model(options, o.seed);
  train::AdamW optimizer(model->parameters());
  train::Trainer trainer(*model, optimizer, batches,
                         {.steps = o.steps,
                          .rate = rates(o).rate,
                          .warmup = rates(o).warmup,
                          .schedule = rates(o).schedule,
                          .smoothing = 0,
                          .clip = o.clip,
                          .seed = o.seed},
                         context.parallel());
  if (o.every > 0) o.look(0, *model);
  while (trainer.steps_done() < o.steps) {
    const int64_t step = trainer.step(context.cancel()).step;
    context.step();
    if (o.every > 0 && step % o.every == 0) o.look(step, *model);
  }
  return model;
}

void fit(Context& context, const ParameterStore& parameters, const TrainingOptions& o,
         const std::function<Var(nn::Pass&, int64_t step)>& loss) {
  train::AdamW optimizer(parameters);
  Workspace workspace;
  Tape tape;
  nn::RandomStream random{o.seed, 0};
  for (int64_t step = 0; step < o.steps; ++step) {
    nn::Pass pass{{context.parallel(), workspace, &tape}};
    pass.training = true;
    pass.random = random;
    const Var value = loss(pass, step);
    random = pass.random;
    tape.backward(value, pass);
    tape.clear();
    workspace.reserve(kernels::gradient_norm_bytes(parameters.gradients().size()));
    const double norm =
        kernels::gradient_norm(parameters.gradients().view<const float, 1>(), workspace, context.parallel());
    optimizer.step({.rate = train::learning_rate(rates(o), step + 1, o.steps),
                    .gradient_scale = o.clip > 0 ? kernels::clip_scale(norm, o.clip) : 1,
                    .step = step + 1},
                   context.parallel());
    context.step();
  }
}

void add_accuracy(Accuracy& all, const data::Batch& batch, const Tensor& logits) {
  const int64_t V = logits.shape(-1);
  for (int64_t row = 0; row < batch.rows; ++row) {
    bool whole = true;
    for (int64_t t = 0; t < batch.target_length; ++t) {
      const int32_t label = batch.target_out[static_cast<size_t>(row * batch.target_length + t)];
      if (label == batch.pad) continue;
      const float* scores = logits.data<float>() + (row * batch.target_length + t) * V;
      const bool right = std::max_element(scores, scores + V) - scores == label;
      whole = whole && right;
      if (label == text::kEnd) continue;
      ++all.labels;
      all.right += right;
    }
    ++all.rows;
    all.whole += whole;
  }
}

Accuracy accuracy(Context& context, const models::Model& model, const std::vector<data::TokenPair>& pairs) {
  constexpr size_t kRows = 64;  // at a time
  Accuracy all;
  double loss = 0;
  int64_t tokens = 0;
  Workspace workspace;
  for (size_t begin = 0; begin < pairs.size(); begin += kRows) {
    check_cancel(context.cancel());
    const data::Batch batch = batch_of(pairs, begin, std::min(kRows, pairs.size() - begin));
    nn::Pass pass{{context.parallel(), workspace}};
    const Var logits = model.logits(pass, data::source_tokens(batch), data::target_tokens(batch, model.task()));
    const auto found = ops::cross_entropy(pass, logits, data::labels(batch), {.ignored = batch.pad});
    loss += found.sum;
    tokens += found.count;
    add_accuracy(all, batch, logits.value());
  }
  all.loss = tokens == 0 ? 0 : loss / static_cast<double>(tokens);
  return all;
}

}  // namespace heed::lab
