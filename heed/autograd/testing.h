// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests of the tape share: a context, and small ops of their own in double.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

#include "heed/autograd/tape.h"

namespace heed::autograd_testing {

// A context to compute with, and its tape.
struct Bench {
  explicit Bench(int threads = 1) : parallel(threads) {}
  Parallel parallel;
  Workspace workspace;
  Tape tape;
  Context context{parallel, workspace, &tape};
  Context without_tape{parallel, workspace};
};

inline Tensor vector(std::initializer_list<double> numbers) {
  return Tensor::of({static_cast<int64_t>(numbers.size())}, std::vector<double>(numbers));
}

// to += factor * x, element by element.
inline void add_scaled(const Tensor& to, const Tensor& x, double factor) {
  if (!to) return;
  for (int64_t i = 0; i < to.size(); ++i) to.data<double>()[i] += factor * x.data<double>()[i];
}

// to += a b, element by element.
inline void add_product(const Tensor& to, const Tensor& a, const Tensor& b) {
  if (!to) return;
  for (int64_t i = 0; i < to.size(); ++i) to.data<double>()[i] += a.data<double>()[i] * b.data<double>()[i];
}

// y = a b
inline Var multiply(const Context& context, const Var& a, const Var& b) {
  const Tensor y = Tensor::zeros_like(a.value());
  add_product(y, a.value(), b.value());
  return record(context, {a, b}, y, [x = a.value(), z = b.value()](const Backward& backward) {
    add_product(backward.to(0), backward.of(0), z);
    add_product(backward.to(1), backward.of(0), x);
  });
}

// y = a + b
inline Var plus(const Context& context, const Var& a, const Var& b) {
  const Tensor y = a.value().clone();
  add_scaled(y, b.value(), 1);
  return record(context, {a, b}, y, [](const Backward& backward) {
    backward.pass_on(0, backward.of(0));
    backward.pass_on(1, backward.of(0));
  });
}

// The sum of all elements: [].
inline Var total(const Context& context, const Var& x) {
  double sum = 0;
  for (double element : x.value().to_doubles()) sum += element;
  return record(context, {x}, Tensor::full({}, sum, DType::f64), [](const Backward& backward) {
    const Tensor to = backward.to(0);
    for (double& element : to.span<double>()) element += backward.of(0).item();
  });
}

inline ::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    return ::testing::AssertionFailure() << to_string(a.shape()) << " and " << to_string(b.shape());
  }
  if (!a || !b)
    return static_cast<bool>(a) == static_cast<bool>(b) ? ::testing::AssertionSuccess()
                                                        : ::testing::AssertionFailure() << "one is empty";
  if (std::memcmp(a.raw(), b.raw(), a.bytes()) == 0) return ::testing::AssertionSuccess();
  const auto x = a.to_doubles(), y = b.to_doubles();
  size_t i = 0;
  while (i + 1 < x.size() && std::memcmp(&x[i], &y[i], sizeof(double)) == 0) ++i;
  return ::testing::AssertionFailure() << "element " << i << ": " << x[i] << " and " << y[i];
}

}  // namespace heed::autograd_testing
