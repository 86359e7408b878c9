// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inputs of an op that has many, each named once. Dtypes are checked, the record is made and gradients are found by
// this list, so that nobody counts positions. Internal to ops.
//
//   constexpr InputList kInputs(std::to_array<NamedInput<Arguments>>({{"x", &Arguments::x}, {"w", &Arguments::w}}));
//   kInputs.check_dtypes("op", a, a.x.dtype());
//   record(context, kInputs.of(a), y, [](const Backward& backward) { ... backward.to(kInputs[&Arguments::w]) ... });
#include <array>
#include <cstddef>

#include "heed/ops/check.h"

namespace heed::ops {

// A member of an op's arguments, and its name in messages.
template <class Arguments>
struct NamedInput {
  const char* name;
  Var Arguments::*var;
};

// Inputs in the order in which a record has them.
template <class Arguments, size_t N>
class InputList {
 public:
  // `first` is the position of the first of them, where inputs of another list come before.
  consteval explicit InputList(const std::array<NamedInput<Arguments>, N>& inputs, size_t first = 0)
      : inputs_(inputs), first_(first) {}

  // The position of an input in the record. One that is not in the list does not compile.
  consteval size_t operator[](Var Arguments::*var) const {
    for (size_t i = 0; i < N; ++i) {
      if (inputs_[i].var == var) return first_ + i;
    }
    throw "this input is not in the list";
  }
  // Of the first input after the list.
  consteval size_t end() const { return first_ + N; }

  std::array<Var, N> of(const Arguments& arguments) const {
    std::array<Var, N> vars;
    for (size_t i = 0; i < N; ++i) vars[i] = arguments.*inputs_[i].var;
    return vars;
  }

  // Throws Error for an input of another dtype than expected; one that is not there has none.
  void check_dtypes(const char* op, const Arguments& arguments, DType expected) const {
    for (const NamedInput<Arguments>& input : inputs_) check_dtype(op, input.name, arguments.*input.var, expected);
  }

 private:
  std::array<NamedInput<Arguments>, N> inputs_;
  size_t first_;
};

template <size_t N, size_t M>
std::array<Var, N + M> joined(const std::array<Var, N>& a, const std::array<Var, M>& b) {
  std::array<Var, N + M> all;
  for (size_t i = 0; i < N + M; ++i) all[i] = i < N ? a[i] : b[i - N];
  return all;
}

}  // namespace heed::ops
