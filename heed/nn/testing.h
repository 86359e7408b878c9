// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the tests of layers and models: what a Pass borrows, numbers for all parameters, and the one check that
// every layer has to pass: gradients in f64 against central differences, then f32 against f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "heed/autograd/gradcheck.h"
#include "heed/base/testing.h"
#include "heed/kernels/attention/testing.h"
#include "heed/nn/layers.h"
#include "heed/nn/pass.h"

namespace heed::nn::testing {

using heed::testing::seeded;
using kernels::attention_testing::for_draws;

// Largest error over largest gradient, of central differences with a step of 1e-5 in double: the differences' own error
// is about step^2, and rounding over the step.
inline constexpr double kGradientError = 1e-7;
// Half an ulp of 1 in f32: what one rounding changes, relatively.
inline constexpr double kUnit = 0x1p-24;

struct Machine {
  explicit Machine(int threads = 1) : parallel(threads) {}
  Pass pass(Tape* tape = nullptr) { return {{parallel, workspace, tape}}; }

  Parallel parallel;
  Workspace workspace;
};

inline Tensor draw_tokens(const Shape& shape, int64_t vocabulary, Rng& rng) {
  Tensor ids = Tensor::uninitialised(shape, DType::i32);
  for (int32_t& id : ids.span<int32_t>()) id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocabulary)));
  return ids;
}

// Moves every parameter, so that none stays at the 0 or 1 it began with. The numbers are those of f32, whatever the
// store's dtype.
inline void scatter(const ParameterStore& store, uint64_t seed) {
  Rng rng(seeded(seed), 5);
  for (const auto& entry : store.entries()) {
    with_float("scatter", entry.value.dtype(), [&](auto tag) {
      using T = decltype(tag);
      for (T& x : entry.value.template span<T>()) x = static_cast<T>(static_cast<float>(x) + 0.2f * rng.normal());
    });
  }
}

// The largest error over the largest value that is expected; infinite where something is not a number.
inline double deviation(const Tensor& got, const Tensor& want) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  double error = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    error = std::max(error, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return largest > 0 ? error / largest : error;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(a.raw(), a.raw() + a.bytes(), b.raw(), b.raw() + b.bytes());
}

// What a layer computes of its inputs. It begins with the same random stream each time.
using Forward = std::function<Var(Pass&, std::span<const Var>)>;

struct CheckOptions {
  bool training{false};
  double additions{100};  // that follow each other on the way to a gradient: each rounds once in f32
  uint64_t seed{seeded(1)};
  void (*prepare)(const ParameterStore&){nullptr};  // gives parameters other numbers
};

struct PassResult {
  Tensor out, parameter_gradients;
  std::vector<Tensor> input_gradients;
};

inline PassResult run_both_ways(const ParameterStore& store, const std::vector<Tensor>& inputs, const Forward& forward,
                                const CheckOptions& options) {
  Machine machine;
  Tape tape;
  Pass pass = machine.pass(&tape);
  pass.training = options.training;
  pass.random = {options.seed};
  store.clear_gradients();
  std::vector<Var> leaves;
  leaves.reserve(inputs.size());
  for (const Tensor& input : inputs) leaves.push_back(tape.leaf(input));
  const Var out = forward(pass, leaves);
  Rng rng(options.seed, 6);
  tape.backward(out, pass, normal(out.shape(), 1, rng).converted(out.dtype()));
  PassResult result{out.value(), store.gradients(), {}};
  for (const Var& leaf : leaves) result.input_gradients.push_back(tape.gradient(leaf));
  return result;
}

inline void expect_exact_gradients(const ParameterStore& store, const std::vector<Tensor>& inputs,
                                   const Forward& forward, const CheckOptions& options) {
  const auto run = [&](const Context& context, std::span<const Var> vars) {
    Pass pass{context, options.training, RandomStream{options.seed}};
    return forward(pass, vars);
  };
  if (!inputs.empty()) {
    const GradcheckResult result =
        gradcheck([&](Context& c, std::span<const Var> vars) { return run(c, vars); }, inputs, {.seed = options.seed});
    EXPECT_LE(result.error, kGradientError) << result.where;
    EXPECT_GT(result.largest, 0);
  }
  if (!store.entries().empty()) {
    const std::vector<Var> constants(inputs.begin(), inputs.end());
    const GradcheckResult result =
        gradcheck([&](Context& c) { return run(c, constants); }, store, {.seed = options.seed});
    EXPECT_LE(result.error, kGradientError) << result.where;
    EXPECT_GT(result.largest, 0);
  }
}

// make() gives the layer, always the same; forward(layer, pass, inputs) uses it. Inputs are in f32.
template <class Make, class Use>
void check_layer(const Make& make, const std::vector<Tensor>& inputs, const Use& use,
                 const CheckOptions& options = {}) {
  auto exact = make();
  const ParameterStore exact_store(exact, DType::f64);
  scatter(exact_store, options.seed);
  if (options.prepare) options.prepare(exact_store);
  std::vector<Tensor> exact_inputs;
  exact_inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) exact_inputs.push_back(input.converted(DType::f64));
  const Forward in_double = [&](Pass& pass, std::span<const Var> vars) { return use(exact, pass, vars); };
  expect_exact_gradients(exact_store, exact_inputs, in_double, options);

  auto layer = make();
  const ParameterStore store(layer);
  scatter(store, options.seed);
  if (options.prepare) options.prepare(store);
  const Forward in_float = [&](Pass& pass, std::span<const Var> vars) { return use(layer, pass, vars); };
  const PassResult got = run_both_ways(store, inputs, in_float, options);
  const PassResult want = run_both_ways(exact_store, exact_inputs, in_double, options);
  const double most = options.additions * kUnit;
  EXPECT_LE(deviation(got.out, want.out), most);
  EXPECT_LE(deviation(got.parameter_gradients, want.parameter_gradients), most);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_LE(deviation(got.input_gradients[i], want.input_gradients[i]), most) << "input " << i;
  }
}

}  // namespace heed::nn::testing
