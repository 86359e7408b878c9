// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/parameter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heed/autograd/testing.h"
#include "heed/base/testing.h"

namespace heed {
namespace {

using testing::error_of;

struct Pair {
  Parameter weight, bias;
  void visit(auto&& each) {
    each("weight", weight);
    each("bias", bias);
  }
};

struct Layer {
  Pair inner;
  std::vector<Pair> heads;
  void visit(auto&& each) {
    each("inner", inner);
    each("heads", heads);
  }
};

struct Model {
  Parameter table;
  std::vector<Layer> layers;
  void visit(auto&& each) {
    each("table", table);
    each("layers", layers);
  }
};

Parameter counting(const Shape& shape, bool decay = true) {
  const Tensor t = Tensor::uninitialised(shape);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(i) + 0.1f;
  return {.value = t, .decay = decay};
}

Pair pair() { return {counting({3, 5}), counting({3}, false)}; }

Model model() {
  Model m;
  m.table = counting({7, 5});
  m.layers.push_back({pair(), {pair(), pair()}});
  m.layers.push_back({pair(), {}});
  return m;
}

TEST(ParameterStore, NamesEverythingByItsPath) {
  Model m = model();
  const ParameterStore store(m);
  std::vector<std::string> names;
  for (const auto& entry : store.entries()) names.push_back(entry.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"table", "layers.0.inner.weight", "layers.0.inner.bias",
                                      "layers.0.heads.0.weight", "layers.0.heads.0.bias", "layers.0.heads.1.weight",
                                      "layers.0.heads.1.bias", "layers.1.inner.weight", "layers.1.inner.bias"}));
  EXPECT_EQ(store.count(), 35 + 4 * (15 + 3));
  ASSERT_TRUE(store.find("layers.0.heads.1.bias"));
  EXPECT_EQ(store.find("layers.0.heads.1.bias")->value.shape(), (Shape{3}));
  EXPECT_FALSE(store.find("layers.0.heads.1.bias")->decay);
  EXPECT_TRUE(store.find("table")->decay);
  EXPECT_EQ(store.find("layers.2.inner.weight"), nullptr);
}

TEST(ParameterStore, KeepsTheNumbersInOneAlignedBuffer) {
  Model m = model();
  const std::vector<double> table = m.table.value.to_doubles();
  const ParameterStore store(m);
  int64_t end = 0;
  for (const auto& entry : store.entries()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entry.value.raw()) % 64, 0u) << entry.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entry.gradient.raw()) % 64, 0u) << entry.name;
    EXPECT_EQ(entry.value.raw(), store.values().slice(entry.offset, 1).raw());
    for (int64_t i = end; i < entry.offset; ++i) EXPECT_EQ(store.values().data<float>()[i], 0);
    EXPECT_GE(entry.offset, end);
    end = entry.offset + entry.value.size();
  }
  EXPECT_GE(store.values().size(), end);
  EXPECT_EQ(m.table.value.to_doubles(), table);
  EXPECT_EQ(m.layers[1].inner.bias.value.raw(), store.find("layers.1.inner.bias")->value.raw());
  EXPECT_EQ(m.table.gradient.shape(), (Shape{7, 5}));
}

TEST(ParameterStore, GradientsAreGatheredThereAndCleared) {
  Pair p{{.value = autograd_testing::vector({2, 3})}, {.value = autograd_testing::vector({5, 7})}};
  const ParameterStore store(p, DType::f64);
  autograd_testing::Bench bench;
  const Var w = bench.tape.leaf(p.weight.value, p.weight.gradient), b = bench.tape.leaf(p.bias.value, p.bias.gradient);
  bench.tape.backward(autograd_testing::total(bench.context, autograd_testing::multiply(bench.context, w, b)),
                      bench.context);
  EXPECT_EQ(store.find("weight")->gradient.to_doubles(), (std::vector<double>{5, 7}));
  EXPECT_EQ(store.gradients().slice(store.find("bias")->offset, 2).to_doubles(), (std::vector<double>{2, 3}));
  store.clear_gradients();
  for (double g : store.gradients().to_doubles()) EXPECT_EQ(g, 0);
}

TEST(ParameterStore, ConvertsToDouble) {
  Model m = model();
  const std::vector<double> table = m.table.value.to_doubles();
  const ParameterStore store(m, DType::f64);
  EXPECT_EQ(store.values().dtype(), DType::f64);
  EXPECT_EQ(m.table.value.dtype(), DType::f64);
  EXPECT_EQ(m.table.gradient.dtype(), DType::f64);
  EXPECT_EQ(m.table.value.to_doubles(), table);
}

TEST(ParameterStore, LeavesOutWhatIsNotThere) {
  Pair p{counting({2, 2}), {}};
  const ParameterStore store(p);
  EXPECT_EQ(store.entries().size(), 1u);
  EXPECT_FALSE(p.bias.value);
  Pair nothing;
  EXPECT_EQ(ParameterStore(nothing).count(), 0);
}

TEST(ParameterStore, WithoutGradientsHasValuesAlone) {
  Model m = model();
  const std::vector<double> table = m.table.value.to_doubles();
  const ParameterStore store(m, {.gradients = false});
  EXPECT_EQ(m.table.value.to_doubles(), table);
  EXPECT_FALSE(store.gradients());
  EXPECT_FALSE(m.table.gradient);
  for (const auto& entry : store.entries()) EXPECT_FALSE(entry.gradient) << entry.name;
}

TEST(ParameterStore, GivesMemoryToWhatIsUnfilled) {
  Pair p{Parameter::unfilled({2, 3}), counting({2})};
  EXPECT_EQ(p.weight.shape(), (Shape{2, 3}));
  const ParameterStore store(p, {.dtype = DType::f64});
  EXPECT_EQ(store.count(), 8);
  EXPECT_EQ(p.weight.value.to_doubles(), std::vector<double>(6, 0));
  EXPECT_EQ(p.weight.value.dtype(), DType::f64);
  EXPECT_EQ(p.weight.shape(), (Shape{2, 3}));
  EXPECT_TRUE(p.weight.gradient);
  EXPECT_FALSE(p.weight.unfilled_shape);
}

struct Twins {
  Parameter a, b;
  const char *first, *second;
  bool one;
  void visit(auto&& each) {
    each(first, a);
    each(second, one ? a : b);
  }
};

TEST(ParameterStore, RejectsWhatComesTwice) {
  Twins names{counting({2}), counting({3}), "same", "same", false};
  EXPECT_EQ(error_of([&] { ParameterStore store(names); }),
            "parameters: the name 'same' came twice, expected each once");
  EXPECT_FALSE(names.a.gradient);
  Twins tied{counting({2}), counting({3}), "in", "out", true};
  EXPECT_EQ(error_of([&] { ParameterStore store(tied); }), "parameters: 'out' is 'in' again, expected each once");
}

TEST(ParameterStore, IsInWhatOpsComputeIn) {
  Pair p{counting({2}), counting({3})};
  EXPECT_EQ(error_of([&] { ParameterStore store(p, DType::bf16); }),
            "parameters: a tensor in bf16 came, expected f32 or f64");
  EXPECT_FALSE(p.weight.gradient);
}

}  // namespace
}  // namespace heed
