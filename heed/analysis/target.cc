// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/target.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/softmax.h"

namespace heed::analysis {
namespace {

using models::Task;

[[noreturn]] void fail(const std::string& what) { throw Error("target: " + what); }

void check_range(const std::string& name, int64_t came, int64_t count) {
  if (came >= 0 && came < count) return;
  fail(name + " is " + std::to_string(came) + ", expected 0 to " + std::to_string(count - 1));
}

bool says_one_each(Task task) { return task == Task::tag || task == Task::classify; }

// Minus the loss of `labels`, summed, of as many rows of logits [T,V] from `first` on.
Var log_probability(const Context& context, const Var& logits, int64_t first, std::span<const int32_t> labels) {
  const int64_t count = std::ssize(labels);
  const Var chosen = ops::rows(context, logits, first, count);
  const Var loss = ops::cross_entropy(context, chosen, Tensor::of({count}, labels)).loss;
  return ops::scale(context, loss, -static_cast<double>(count));
}

}  // namespace

Question::Question(const models::Model& model, data::TokenPair pair, const Target& target,
                   const text::SpecialTokens& special)
    : model_(&model), pair_(std::move(pair)), target_(target), special_(special), labels_(pair_.target) {
  if (!says_one_each(model.task())) labels_.push_back(special.end);
  check();
  batch_ = data::pair_batch(std::span(&pair_, 1), std::vector<size_t>{0}, special);
}

void Question::check() const {
  const Task task = model_->task();
  if (task == Task::encode) fail("the model has no output, expected one that translates, tags or goes on with a text");
  if (task == Task::language && !pair_.source.empty()) fail("a source came, expected none for a language model");
  if (task != Task::language && pair_.source.empty()) fail("the source has no token, expected at least 1");
  for (const int32_t id : pair_.source) check_range("an id of the source", id, model_->source_vocabulary());
  for (const int32_t id : pair_.target) check_range("an id of the output", id, model_->outputs());
  const size_t wanted = task == Task::tag ? pair_.source.size() : 1;
  if (says_one_each(task) && pair_.target.size() != wanted) {
    fail("the output has " + std::to_string(pair_.target.size()) + " labels, expected " + std::to_string(wanted));
  }
  const int64_t longest = std::max(std::ssize(pair_.source), std::ssize(pair_.target));
  if (longest >= model_->max_length()) {
    fail(std::to_string(longest) + " tokens came, expected at most " + std::to_string(model_->max_length() - 1));
  }
  if (!target_.position) {
    if (target_.token || target_.against) fail("a token came without a position, expected both");
    return;
  }
  check_range("position", *target_.position, std::ssize(labels_));
  if (target_.token) check_range("token", *target_.token, model_->outputs());
  if (target_.against) check_range("against", *target_.against, model_->outputs());
}

nn::TextSide Question::output_side() const {
  return says_one_each(model_->task()) ? nn::TextSide::source : nn::TextSide::target;
}

int64_t Question::tokens(nn::TextSide side) const {
  if (side == nn::TextSide::source) return batch_.source_length;
  return output_side() == side ? batch_.target_length : 0;
}

Var Question::value(nn::Pass& pass) const {
  return value_of(pass, model_->logits(pass, data::source_tokens(batch_), data::target_tokens(batch_, model_->task())));
}

Var Question::value_of(const Context& pass, const Var& logits) const {
  const Var rows = ops::reshape(pass, logits, {logits.shape(1), logits.shape(2)});
  if (!target_.position) return log_probability(pass, rows, 0, labels_);
  const int64_t at = *target_.position;
  const int32_t token = target_.token.value_or(labels_[static_cast<size_t>(at)]);
  Var value = log_probability(pass, rows, at, std::span(&token, 1));
  if (!target_.against) return value;
  const Var other = log_probability(pass, rows, at, std::span(&*target_.against, 1));
  return ops::add(pass, value, ops::scale(pass, other, -1));
}

double Question::measure(const nn::Pass& pass) const {
  nn::Pass own = pass;
  own.tape = nullptr;
  return value(own).value().item();
}

}  // namespace heed::analysis
