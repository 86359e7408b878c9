// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse-mode differentiation with a coarse tape: an op is a pair of kernels, forward and backward. It computes its
// outputs at once and records its backward function. The tape is a flat list of records in order of creation, so the
// backward pass is one loop from the end; each record is freed as it is used. Without a tape in the Context the same
// ops compute, and nothing is kept.
//
//   Tape tape;
//   Context context{.parallel = parallel, .workspace = workspace, .tape = &tape};
//   Var w = tape.leaf(weight, d_weight);
//   Var loss = ...;                 // ops on Vars
//   tape.backward(loss, context);   // adds to d_weight
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/base/allocator.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/tensor/tensor.h"

namespace heed {

class Tape;

// What an op computes with: threads, scratch memory, and the tape that it is recorded on.
struct Context {
  Parallel& parallel;
  Workspace& workspace;
  Tape* tape = nullptr;  // null: inference
};

// A value in a computation: a tensor, and the slot of the tape that its gradient is accumulated in, if it has one.
class Var {
 public:
  Var() = default;
  Var(Tensor value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): a constant

  explicit operator bool() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  int64_t shape(int i) const { return value_.shape(i); }
  DType dtype() const { return value_.dtype(); }
  bool tracked() const { return slot_ >= 0; }

 private:
  friend class Tape;
  Var(Tensor value, int32_t slot, uint32_t epoch) : value_(std::move(value)), slot_(slot), epoch_(epoch) {}
  Tensor value_;
  int32_t slot_ = -1;   // constant
  uint32_t epoch_ = 0;  // of the tape it belongs to
};

// What a record is given in the backward pass: gradients of its outputs, and those of its inputs to accumulate into.
class HEED_API Backward {
 public:
  Parallel& parallel() const { return context_.parallel; }
  Workspace& workspace() const { return context_.workspace; }
  // The gradient of output i; empty where nothing depends on that output.
  const Tensor& of(size_t i) const;
  // Where the gradient of input i is accumulated, zeros at first; empty where it is not wanted. No two inputs share
  // one, even if they are one value, as in self-attention without projections: kernels may write them at the same time.
  Tensor to(size_t i) const;
  bool wants(size_t i) const;
  // What has been accumulated in the gradient of input i already; empty where nothing has.
  Tensor so_far(size_t i) const;
  // Whether inputs i and j are one value.
  bool same(size_t i, size_t j) const;
  // Adds a gradient of as many numbers to that of input i, for ops that pass their output's on as it is (a sum, a
  // reshape). The first one of an input is not copied where it is the gradient of an output: do not read that after
  // this.
  void pass_on(size_t i, const Tensor& gradient) const;

 private:
  friend class Tape;
  Backward(Tape& tape, const Context& context, size_t record) : tape_(tape), context_(context), record_(record) {}
  int32_t slot(size_t i) const;
  bool owns(const Tensor& gradient) const;
  void finish() const;
  Tape& tape_;
  const Context& context_;
  size_t record_;
  // Gradients of inputs that are the same value as one before them, until the op is done.
  mutable CachedVector<std::pair<size_t, Tensor>> apart_;
};

class HEED_API Tape {
 public:
  Tape() : epoch_(next_epoch()) {}
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // A value whose gradient is wanted. It is added to `gradient` where given, as of a parameter; or see gradient().
  Var leaf(Tensor value, Tensor gradient = {});

  // Outputs of an op. `back` is a callable void(const Backward&) that holds what it needs by value.
  template <class Back>
  Var record(std::span<const Var> inputs, Tensor output, Back back) {
    const int32_t slot = push(inputs, std::span(&output, 1), make<Back>(std::move(back)));
    return Var(std::move(output), slot, epoch_);
  }
  template <size_t N, class Back>
  std::array<Var, N> record(std::span<const Var> inputs, const std::array<Tensor, N>& outputs, Back back) {
    const int32_t first = push(inputs, outputs, make<Back>(std::move(back)));
    std::array<Var, N> vars;
    for (size_t i = 0; i < N; ++i) vars[i] = Var(outputs[i], first + static_cast<int32_t>(i), epoch_);
    return vars;
  }

  // The backward pass: from `output`, whose own gradient is 1 (or `seed`), to all leaves. The records are used up:
  // leaves can be used again, what was computed from them cannot.
  void backward(const Var& output, const Context& context, const Tensor& seed = {});
  // The gradient of a leaf that was given none of its own; empty where nothing reached it. Until clear().
  Tensor gradient(const Var&) const;

  size_t records() const { return records_.size(); }
  // Forgets everything, leaves too; the room for it is kept.
  void clear() noexcept;

 private:
  friend class Backward;

  struct Callable {
    virtual void operator()(const Backward&) = 0;
    virtual size_t bytes() const = 0;
    virtual ~Callable() = default;
  };
  template <class Back>
  struct CallableOf final : Callable {
    explicit CallableOf(Back b) : back(std::move(b)) {}
    void operator()(const Backward& backward) override { back(backward); }
    size_t bytes() const override { return sizeof(CallableOf); }
    Back back;
  };
  struct Free {
    void operator()(Callable* back) const noexcept;
  };
  using CallablePointer = std::unique_ptr<Callable, Free>;
  struct Record {
    CallablePointer back;
    size_t first_input;  // in input_slots_
    int32_t first_output, outputs;
  };
  struct Slot {
    Tensor gradient;
    Shape shape;
    DType dtype;
    bool leaf;
  };

  template <class Back>
  static CallablePointer make(Back back) {
    static_assert(std::is_invocable_v<Back&, const Backward&>);
    static_assert(alignof(Back) <= kCachedAlignment);
    void* memory = cached_allocate(sizeof(CallableOf<Back>));
    try {
      return CallablePointer(new (memory) CallableOf<Back>(std::move(back)));
    } catch (...) {
      cached_free(memory, sizeof(CallableOf<Back>));
      throw;
    }
  }
  static uint32_t next_epoch() noexcept;

  void check_mine(const char* what, const Var&) const;
  int32_t push(std::span<const Var> inputs, std::span<const Tensor> outputs, CallablePointer back);
  int32_t add_slot(const Tensor& value, bool leaf, Tensor gradient = {});
  bool reached(const Record&) const;

  template <class T>
  using List = CachedVector<T>;
  List<Record> records_;
  List<int32_t> input_slots_;
  List<Slot> slots_;
  size_t used_up_ = 0;  // slots before this have no record any more
  uint32_t epoch_;      // no two tapes, and none before and after clear(), have the same
};

// How ops record: outputs are tracked if there is a tape and an input is tracked, and else constants.
inline bool wants_record(const Context& context, std::span<const Var> inputs) {
  return context.tape && std::any_of(inputs.begin(), inputs.end(), [](const Var& input) { return input.tracked(); });
}
template <class Back>
Var record(const Context& context, std::span<const Var> inputs, Tensor output, Back back) {
  if (!wants_record(context, inputs)) return Var(std::move(output));
  return context.tape->record(inputs, std::move(output), std::move(back));
}
template <class Back>
Var record(const Context& context, std::initializer_list<Var> inputs, Tensor output, Back back) {
  return record(context, std::span(inputs.begin(), inputs.size()), std::move(output), std::move(back));
}
template <size_t N, class Back>
std::array<Var, N> record(const Context& context, std::span<const Var> inputs, const std::array<Tensor, N>& outputs,
                          Back back) {
  if (wants_record(context, inputs)) return context.tape->record<N>(inputs, outputs, std::move(back));
  std::array<Var, N> constants;
  std::copy(outputs.begin(), outputs.end(), constants.begin());
  return constants;
}

}  // namespace heed
