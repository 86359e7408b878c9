// SPDX-License-Identifier: Apache-2.0
// How observers intervene, and that one beside another keeps nothing from it.
#include "heed/nn/observer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/nn/attention.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using testing::Machine;

// Notes what it is told and asked.
struct Noting final : Observer {
  std::vector<std::string> told;
  void attention(const AttentionEvent& e) override { told.push_back("attention " + e.path); }
  bool wants_recurrent() const override { return true; }
  void recurrent(const RecurrentEvent& e) override { told.push_back("recurrent " + e.path); }
  void hidden(const HiddenEvent& e) override { told.push_back("hidden " + e.path); }
  Tensor head_gate(const std::string& path, int64_t heads) override {
    told.push_back("gate " + path);
    return Tensor::full({heads}, 0.5);
  }
  Tensor head_gate_gradient(const std::string& path, int64_t heads, DType dtype) override {
    told.push_back("gradient " + path);
    return Tensor::zeros({heads}, dtype);
  }
  Var head_outputs(const Context&, const std::string& path, int64_t, const Var&) override {
    told.push_back("outputs " + path);
    return Tensor::full({1}, 7);
  }
  Var embeddings(const Context&, TextSide side, const Var&) override {
    told.emplace_back(side == TextSide::source ? "source" : "target");
    return Tensor::full({1}, 8);
  }
};

TEST(Observer, OneBesideAnotherPassesAllOn) {
  Machine machine;
  const Context context{machine.parallel, machine.workspace};
  Noting noting;
  ObserverBeside beside(&noting);
  const kernels::AttentionInputs inputs;
  const kernels::reference::Inputs inputs_f64;
  const kernels::AttentionOptions options;
  const Tensor none;
  const std::string path = "p";
  beside.attention({.path = path,
                    .role = AttentionRole::self,
                    .position = 0,
                    .rows = {},
                    .inputs = inputs,
                    .inputs_f64 = inputs_f64,
                    .stats = none,
                    .options = options});
  beside.recurrent({.path = path,
                    .cell = kernels::Cell::rnn,
                    .reverse = false,
                    .position = 0,
                    .rows = {},
                    .lengths = {},
                    .h = none,
                    .c = none,
                    .gates = none,
                    .h0 = none,
                    .c0 = none});
  beside.hidden({path, TextSide::source, 0, none});
  EXPECT_TRUE(beside.wants_recurrent());
  EXPECT_EQ(beside.head_gate(path, 1).item(), 0.5);
  EXPECT_EQ(beside.head_gate_gradient(path, 1, DType::f64).dtype(), DType::f64);
  EXPECT_EQ(beside.head_outputs(context, path, 1, Tensor::full({1}, 1)).value().item(), 7);
  EXPECT_EQ(beside.embeddings(context, TextSide::target, Tensor::full({1}, 1)).value().item(), 8);
  EXPECT_EQ(noting.told, (std::vector<std::string>{"attention p", "recurrent p", "hidden p", "gate p", "gradient p",
                                                   "outputs p", "target"}));
  ObserverBeside alone(nullptr);
  EXPECT_FALSE(alone.wants_recurrent());
  EXPECT_FALSE(alone.head_gate(path, 1));
  EXPECT_EQ(alone.head_outputs(context, path, 1, Tensor::full({1}, 1)).value().item(), 1);
}

// The replaced outputs of the heads go through the projection.
TEST(Observer, ReplacesWhatHeadsGive) {
  struct Zeros final : Observer {
    Var head_outputs(const Context&, const std::string&, int64_t heads, const Var& outputs) override {
      EXPECT_EQ(heads, 2);
      EXPECT_EQ(outputs.shape(), (Shape{1, 3, 8}));
      return Tensor::zeros(outputs.shape());
    }
  } zeros;
  Machine machine;
  Rng rng(heed::testing::seeded(1));
  Attention layer({.width = 6, .heads = 2, .key_width = 4, .value_width = 4}, "layer", rng);
  for (float& x : layer.out.bias.value.span<float>()) x = rng.normal();
  Pass pass{{machine.parallel, machine.workspace}};
  pass.observer = &zeros;
  const Tensor x = normal({1, 3, 6}, 1, rng);
  const Tensor out = layer(pass, x, x, {}).value();
  for (int64_t i = 0; i < out.size(); ++i) EXPECT_EQ(out.data<float>()[i], layer.out.bias.value.data<float>()[i % 6]);
}

}  // namespace
}  // namespace heed::nn
