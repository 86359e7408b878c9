// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/tape.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "heed/autograd/watch.h"
#include "heed/base/error.h"
#include "heed/base/unique.h"

namespace heed {
namespace {

// Who watches which tape on this thread.
struct Watching {
  const Tape* tape = nullptr;
  BackwardWatcher* watcher = nullptr;
};
thread_local Watching watching;

// Gradients of leaves, in the order in which backward leaves the last op behind that may add to them.
class WholeGradients {
 public:
  explicit WholeGradients(const Tape& tape) : watcher_(watching.tape == &tape ? watching.watcher : nullptr) {}

  bool wanted() const { return watcher_ != nullptr; }
  // Leaves come in the order of their slots: the first one of a gradient is the last that backward comes to.
  void add(int32_t slot, const Tensor& gradient) {
    const auto same = [&](const auto& one) { return one.second.raw() == gradient.raw(); };
    if (std::ranges::none_of(left_, same)) left_.emplace_back(slot, gradient);
  }
  // The ops that are left have outputs from this slot on, at most: leaves behind it are not theirs.
  void passed(int32_t slot) {
    if (!wanted()) return;
    for (; !left_.empty() && left_.back().first > slot; left_.pop_back()) watcher_->whole(left_.back().second);
    watcher_->op_done();
  }

 private:
  BackwardWatcher* watcher_;
  std::vector<std::pair<int32_t, Tensor>> left_;
};

void add_into(const Tensor& to, const Tensor& from) {
  with_float("tape", to.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* sum = to.data<T>();
    const T* term = from.data<T>();
    for (int64_t i = 0; i < to.size(); ++i) sum[i] += term[i];
  });
}

void check_gradient(const char* what, const Tensor& gradient, const Tensor& value) {
  if (gradient.shape() != value.shape() || gradient.dtype() != value.dtype()) {
    throw Error(std::string("tape: ") + what + " has shape " + to_string(gradient.shape()) + " in " +
                name_of(gradient.dtype()) + ", expected " + to_string(value.shape()) + " in " + name_of(value.dtype()));
  }
}

}  // namespace

const Tensor& Backward::of(size_t i) const {
  const Tape::Record& record = tape_.records_[record_];
  return tape_.slots_[static_cast<size_t>(record.first_output) + i].gradient;
}

int32_t Backward::slot(size_t i) const { return tape_.input_slots_[tape_.records_[record_].first_input + i]; }

bool Backward::wants(size_t i) const { return slot(i) >= 0; }

bool Backward::same(size_t i, size_t j) const { return wants(i) && slot(i) == slot(j); }

Tensor Backward::so_far(size_t i) const {
  return wants(i) ? tape_.slots_[static_cast<size_t>(slot(i))].gradient : Tensor();
}

Tensor Backward::to(size_t i) const {
  if (!wants(i)) return {};
  size_t first = 0;
  while (first < i && !same(first, i)) ++first;
  if (first < i) {
    for (const auto& [input, gradient] : apart_) {
      if (input == i) return gradient;
    }
    const Tape::Slot& like = tape_.slots_[static_cast<size_t>(slot(i))];
    return apart_.emplace_back(i, Tensor::zeros(like.shape, like.dtype)).second;
  }
  Tape::Slot& to = tape_.slots_[static_cast<size_t>(slot(i))];
  if (!to.gradient) to.gradient = Tensor::zeros(to.shape, to.dtype);
  return to.gradient;
}

bool Backward::owns(const Tensor& gradient) const {
  const int32_t outputs = tape_.records_[record_].outputs;
  for (int32_t n = 0; n < outputs; ++n) {
    if (&gradient == &of(static_cast<size_t>(n))) return gradient.sole();
  }
  return false;
}

void Backward::pass_on(size_t i, const Tensor& gradient) const {
  if (!wants(i)) return;
  Tape::Slot& to = tape_.slots_[static_cast<size_t>(slot(i))];
  if (gradient.size() != to.shape.size() || gradient.dtype() != to.dtype) {
    throw Error("tape: a gradient of shape " + to_string(gradient.shape()) + " in " + name_of(gradient.dtype()) +
                " was passed on to input " + std::to_string(i) + ", expected " + to_string(to.shape) + " in " +
                name_of(to.dtype));
  }
  if (to.gradient) {
    add_into(to.gradient, gradient);
  } else {
    // The gradient of an output is freed after this record, and its memory can become this gradient. Unless another
    // value holds it by now, as a sum's two inputs would: gradients accumulate, so each needs memory of its own.
    to.gradient = (owns(gradient) ? gradient : gradient.clone()).reshaped(to.shape);
  }
}

void Backward::finish() const {
  for (const auto& [input, gradient] : apart_) pass_on(input, gradient);
}

void Tape::Free::operator()(Callable* back) const noexcept {
  const size_t bytes = back->bytes();
  back->~Callable();
  cached_free(back, bytes);
}

uint32_t Tape::next_epoch() noexcept { return unique_number(); }

int32_t Tape::add_slot(const Tensor& value, bool leaf, Tensor gradient) {
  slots_.push_back({std::move(gradient), value.shape(), value.dtype(), leaf});
  return static_cast<int32_t>(slots_.size()) - 1;
}

Var Tape::leaf(Tensor value, Tensor gradient) {
  if (!value) throw Error("tape: an empty tensor came as a leaf, expected a value");
  if (gradient) check_gradient("the gradient of a leaf", gradient, value);
  const int32_t slot = add_slot(value, true, std::move(gradient));
  return Var(std::move(value), slot, epoch_);
}

void Tape::check_mine(const char* what, const Var& var) const {
  if (var.epoch_ != epoch_) {
    throw Error(std::string("tape: ") + what + ", of shape " + to_string(var.shape()) +
                ", belongs to another tape, or to this one before it was cleared");
  }
  const auto slot = static_cast<size_t>(var.slot_);
  if (slot < used_up_ && !slots_[slot].leaf) {
    throw Error(std::string("tape: ") + what + ", of shape " + to_string(var.shape()) +
                ", was computed before the last backward pass, expected a leaf or something new");
  }
}

int32_t Tape::push(std::span<const Var> inputs, std::span<const Tensor> outputs, CallablePointer back) {
  for (const Var& input : inputs) {
    if (input.tracked()) check_mine("an input", input);
  }
  Record record{std::move(back), input_slots_.size(), static_cast<int32_t>(slots_.size()),
                static_cast<int32_t>(outputs.size())};
  const int32_t first = record.first_output;
  for (const Var& input : inputs) input_slots_.push_back(input.slot_);
  for (const Tensor& output : outputs) add_slot(output, false);
  records_.push_back(std::move(record));
  return first;
}

bool Tape::reached(const Record& record) const {
  for (int32_t slot = record.first_output; slot < record.first_output + record.outputs; ++slot) {
    if (slots_[static_cast<size_t>(slot)].gradient) return true;
  }
  return false;
}

void Tape::backward(const Var& output, const Context& context, const Tensor& seed) {
  if (!output.tracked()) throw Error("tape: backward from a constant, expected a value that depends on a leaf");
  check_mine("what backward begins from", output);
  if (!seed && output.value().size() != 1) {
    throw Error("tape: backward from shape " + to_string(output.shape()) +
                " without a gradient of its own, expected a single number");
  }
  if (seed) check_gradient("the gradient to begin with", seed, output.value());
  Slot& from = slots_[static_cast<size_t>(output.slot_)];
  const Tensor first = seed ? seed : Tensor::full(output.shape(), 1, output.dtype());
  if (from.gradient) {
    add_into(from.gradient, first);
  } else {
    from.gradient = first.clone();
  }
  WholeGradients whole(*this);
  for (size_t slot = used_up_; whole.wanted() && slot < slots_.size(); ++slot) {
    if (slots_[slot].leaf && slots_[slot].gradient) whole.add(static_cast<int32_t>(slot), slots_[slot].gradient);
  }
  while (!records_.empty()) {
    const Record& record = records_.back();
    if (reached(record)) {
      const Backward backward(*this, context, records_.size() - 1);
      (*record.back)(backward);
      backward.finish();
    }
    for (int32_t slot = record.first_output; slot < record.first_output + record.outputs; ++slot) {
      slots_[static_cast<size_t>(slot)].gradient = {};
    }
    input_slots_.resize(record.first_input);
    records_.pop_back();
    whole.passed(records_.empty() ? -1 : records_.back().first_output);
  }
  used_up_ = slots_.size();
}

Tensor Tape::gradient(const Var& var) const {
  if (!var.tracked()) return {};
  if (var.epoch_ != epoch_) {
    throw Error("tape: the gradient of a value of another tape was asked for, or of this one before it was cleared");
  }
  return slots_[static_cast<size_t>(var.slot_)].gradient;
}

BackwardWatcher::~BackwardWatcher() = default;

WatchBackward::WatchBackward(const Tape& tape, BackwardWatcher& watcher) { watching = {&tape, &watcher}; }
WatchBackward::~WatchBackward() { watching = {}; }

void Tape::clear() noexcept {
  records_.clear();
  input_slots_.clear();
  slots_.clear();
  used_up_ = 0;
  epoch_ = next_epoch();
}

}  // namespace heed
