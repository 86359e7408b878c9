// SPDX-License-Identifier: Apache-2.0
// The same numbers as PyTorch's: outputs, gradients and updated weights. tools/make_parity.py made the files.
// fixed seed: what a layer begins with is replaced by the file's numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/io/safetensors.h"
#include "heed/kernels/optimizer.h"
#include "heed/kernels/reference/optimizer.h"
#include "heed/models/transformer.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/testing.h"
#include "heed/ops/softmax.h"

namespace heed {
namespace {

using nn::testing::deviation, nn::testing::Machine;

// Largest error over largest value. PyTorch computed in f64 from numbers of f32, and its results were rounded to f32:
// in f64 that one rounding is all, but for f64's own; in f32 it is as for any layer (nn/testing.h), a hundred additions
// that follow each other on the way to a gradient.
double most(DType dtype) {
  constexpr double kUnit = 0x1p-24, kOfDouble = 0x1p-44;
  return dtype == DType::f64 ? kUnit + kOfDouble : 100 * kUnit;
}
// As in the script.
constexpr int64_t kWidth = 8, kHeads = 2, kInner = 12, kSourceWidth = 6;

class Golden {
 public:
  Golden(const std::string& name, DType dtype)
      : file_(std::string(HEED_PARITY_DATA) + "/" + name + ".safetensors"), dtype_(dtype) {}

  Tensor operator()(const std::string& name) const {
    const io::TensorEntry& entry = file_.at(name);
    return Tensor::of(Shape(entry.shape), io::convert<float>(entry.type, entry.bytes)).converted(dtype_);
  }
  double most() const { return heed::most(dtype_); }
  bool has(const std::string& name) const {
    return std::ranges::any_of(file_.tensors(), [&](const io::TensorEntry& entry) { return entry.name == name; });
  }
  template <class T>
  std::vector<T> integers(const std::string& name) const {
    const std::vector<double> numbers = io::convert<double>(file_.at(name).type, file_.at(name).bytes);
    return {numbers.begin(), numbers.end()};
  }
  void load(const ParameterStore& store) const {
    for (const auto& entry : store.entries()) entry.value.copy_from((*this)("value." + entry.name));
  }

 private:
  io::SafetensorsFile file_;
  DType dtype_;
};

class Parity : public ::testing::TestWithParam<DType> {};

// A gradient that is zero but for rounding, as that of a bias which a softmax takes away, is measured by the largest of
// all: PyTorch's are of f64, so what rounding left there is 1e-16 of it or so, far below 1e-12.
void expect_gradients(const ParameterStore& store, const Golden& golden) {
  double largest = 0;
  for (const auto& entry : store.entries()) {
    for (const double x : golden("gradient." + entry.name).to_doubles()) largest = std::max(largest, std::abs(x));
  }
  for (const auto& entry : store.entries()) {
    const Tensor want = golden("gradient." + entry.name);
    const std::vector<double> numbers = want.to_doubles();
    if (std::ranges::any_of(numbers, [&](double x) { return std::abs(x) > 1e-12 * largest; })) {
      EXPECT_LE(deviation(entry.gradient, want), golden.most()) << entry.name;
    } else {
      for (const double x : entry.gradient.to_doubles()) EXPECT_LE(std::abs(x), golden.most() * largest) << entry.name;
    }
  }
}

// forward(pass, x, source, lengths) there and back, with the file's parameters.
template <class Layer, class Forward>
void expect_parity(const std::string& name, DType dtype, Layer layer, const Forward& forward) {
  const Golden golden(name, dtype);
  const ParameterStore store(layer, dtype);
  golden.load(store);
  Machine machine;
  Tape tape;
  nn::Pass pass = machine.pass(&tape);
  const std::vector<int64_t> lengths = golden.integers<int64_t>("lengths");
  const Var x = tape.leaf(golden("input.x"));
  const Var source = golden.has("input.source") ? tape.leaf(golden("input.source")) : Var();
  const Var out = forward(layer, pass, x, source, kernels::Lengths{lengths});
  EXPECT_LE(deviation(out.value(), golden("out")), golden.most());
  tape.backward(out, pass, golden("d_out"));
  EXPECT_LE(deviation(tape.gradient(x), golden("gradient.input.x")), golden.most());
  if (source) {
    EXPECT_LE(deviation(tape.gradient(source), golden("gradient.input.source")), golden.most());
  }
  expect_gradients(store, golden);
}

nn::AttentionCall masked() { return {nn::AttentionRole::masked, kernels::Causal::top_left()}; }

TEST_P(Parity, MultiHeadAttentionMasked) {
  Rng rng(1);
  expect_parity("attention_masked", GetParam(), nn::Attention({.width = kWidth, .heads = kHeads}, "self", rng),
                [](const auto& layer, nn::Pass& pass, const Var& x, const Var&, const kernels::Lengths&) {
                  return layer(pass, x, x, masked());
                });
}

TEST_P(Parity, MultiHeadAttentionCross) {
  Rng rng(1);
  const nn::AttentionOptions options{.width = kWidth, .heads = kHeads, .source_width = kSourceWidth};
  expect_parity(
      "attention_cross", GetParam(), nn::Attention(options, "cross", rng),
      [](const auto& layer, nn::Pass& pass, const Var& x, const Var& source, const kernels::Lengths& lengths) {
        return layer(pass, x, source, {nn::AttentionRole::cross, lengths});
      });
}

models::TransformerLayer make_layer(models::NormPlace norm, bool decoder) {
  models::TransformerOptions options;
  options.width = kWidth, options.heads = kHeads, options.inner = kInner, options.dropout = 0;
  options.norm = norm;
  options.activation = decoder ? nn::Activation::gelu : nn::Activation::relu;
  Rng rng(1);
  return {options, "layer", decoder, rng};
}

TEST_P(Parity, EncoderLayer) {
  for (const auto& norm : enum_names(models::NormPlace{})) {
    SCOPED_TRACE(norm.name);
    expect_parity("encoder_layer_" + std::string(norm.name), GetParam(), make_layer(norm.value, false),
                  [](const auto& layer, nn::Pass& pass, const Var& x, const Var&, const kernels::Lengths& lengths) {
                    return layer(pass, x, {nn::AttentionRole::self, lengths});
                  });
  }
}

TEST_P(Parity, DecoderLayer) {
  for (const auto& norm : enum_names(models::NormPlace{})) {
    SCOPED_TRACE(norm.name);
    expect_parity(
        "decoder_layer_" + std::string(norm.name), GetParam(), make_layer(norm.value, true),
        [](const auto& layer, nn::Pass& pass, const Var& x, const Var& memory, const kernels::Lengths& lengths) {
          return layer(pass, x, masked(), {memory, {nn::AttentionRole::cross, lengths}});
        });
  }
}

TEST_P(Parity, RecurrentLayers) {
  for (const nn::Cell cell : {nn::Cell::lstm, nn::Cell::gru}) {
    SCOPED_TRACE(name_of(cell));
    Rng rng(1);
    const nn::RecurrentOptions options{.cell = cell, .width = kWidth, .layers = 2, .bidirectional = true};
    expect_parity(name_of(cell), GetParam(), nn::Recurrent(kSourceWidth, options, "layer", rng),
                  [](const auto& layer, nn::Pass& pass, const Var& x, const Var&, const kernels::Lengths& lengths) {
                    const nn::RecurrentOutput out = layer(pass, x, {.lengths = lengths.keys});
                    std::vector<Var> parts{ops::reshape(pass, out.h, {x.shape(0), x.shape(1) * kWidth})};
                    for (const nn::RecurrentStates& states : out.last) {
                      parts.push_back(states.h);
                      if (states.c) parts.push_back(states.c);
                    }
                    return ops::concat(pass, parts);
                  });
  }
}

TEST_P(Parity, CrossEntropy) {
  const Golden golden("cross_entropy", GetParam());
  const std::vector<int32_t> ids = golden.integers<int32_t>("targets");
  for (const auto& [name, smoothing] : {std::pair<std::string, double>{"plain", 0}, {"smoothed", 0.1}}) {
    SCOPED_TRACE(name);
    Machine machine;
    Tape tape;
    nn::Pass pass = machine.pass(&tape);
    const Var logits = tape.leaf(golden("logits"));
    const auto result = ops::cross_entropy(pass, logits, Tensor::of({std::ssize(ids)}, ids), {.smoothing = smoothing});
    EXPECT_EQ(result.count, std::ranges::count_if(ids, [](int32_t id) { return id >= 0; }));
    EXPECT_LE(deviation(result.loss.value(), golden("loss." + name)), golden.most());
    tape.backward(result.loss, pass);
    EXPECT_LE(deviation(tape.gradient(logits), golden("gradient." + name)), golden.most());
  }
}

TEST_P(Parity, AdamOverTenSteps) {
  const Golden golden("adamw", GetParam());
  const Tensor gradients = golden("gradients");
  const int64_t n = gradients.shape(1);
  const kernels::ElementRange all[] = {{0, n}};
  for (const auto& [name, decoupled] : {std::pair<std::string, bool>{"adamw", true}, {"adam", false}}) {
    SCOPED_TRACE(name);
    const kernels::AdamOptions options{.rate = 0.01, .beta2 = 0.98, .weight_decay = 0.1, .decoupled = decoupled};
    const Tensor values = golden("begin"), m = Tensor::zeros_like(values), v = Tensor::zeros_like(values);
    Parallel parallel(1);
    for (int64_t step = 0; step < gradients.shape(0); ++step) {
      const Tensor gradient = gradients.slice(step, 1).reshaped({n});
      with_float("adam", GetParam(), [&](auto tag) {
        using T = decltype(tag);
        const kernels::StepBuffers<T> buffers{values.view<T, 1>(), gradient.view<T, 1>(), all};
        const kernels::AdamMoments<T> moments{m.view<T, 1>(), v.view<T, 1>(), step + 1};
        if constexpr (std::is_same_v<T, float>) {
          kernels::adam_step(options, buffers, moments, parallel);
        } else {
          kernels::reference::adam_step(options, buffers, moments);
        }
      });
      EXPECT_LE(deviation(values, golden("after." + name).slice(step, 1).reshaped({n})), golden.most())
          << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Parity, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace heed
