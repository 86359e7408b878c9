// SPDX-License-Identifier: Apache-2.0
// Parameters from files of other programs: other names, element types and layouts, and the errors where they do not
// fit.
#include "heed/models/parameter_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/half.h"
#include "heed/base/testing.h"
#include "heed/io/safetensors.h"
#include "heed/nn/layers.h"

namespace heed::models {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder, heed::testing::seeded;

struct Net {
  nn::Linear first{2, 3, nn::Init::none()}, second{3, 2, nn::Init::none(), false};
  void visit(auto&& each) { each("first", first), each("second", second); }
};

template <class T>
T rounded(float x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T::from(x);
  }
}

// A file of tensors that are given as numbers.
struct TensorFile {
  template <class T = float>
  void add(const std::string& name, const io::Shape& shape, const std::vector<float>& numbers) {
    std::vector<std::byte>& bytes = storage.emplace_back();
    for (const float x : numbers) {
      const T value = rounded<T>(x);
      const auto* raw = reinterpret_cast<const std::byte*>(&value);
      bytes.insert(bytes.end(), raw, raw + sizeof(T));
    }
    entries.push_back({name, io::kElementType<T>, shape, bytes});
  }
  std::string write() const {
    io::write_safetensors(path, entries);
    return path;
  }
  TemporaryFolder folder;
  std::string path = folder.file("weights.safetensors");
  std::deque<std::vector<std::byte>> storage;
  std::vector<io::TensorEntry> entries;
};

TEST(ParameterFile, IsComparedWithShapesBeforeMemoryIsTaken) {
  TensorFile weights;
  weights.add("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  const ParameterFile file(weights.write());
  const LoadOptions by{.expected_by = "config.json"};
  const auto error = [&](const std::vector<ParameterShape>& shapes) {
    return error_of([&] { file.check(shapes, by); });
  };
  EXPECT_EQ(error({{"a", {2, 3}}}), "no error");
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_EQ(error({{"a", {kHuge, 3}}}),
            weights.path + ": tensor 'a' is F32 [2, 3], expected [1099511627776, 3] by config.json");
  EXPECT_EQ(error({{"a", {2, 3}}, {"b", {kHuge}}}),
            weights.path + ": has no tensor for 1 parameter that config.json asks for ('b')");
}

TEST(ParameterFile, ErrorsAreOneLineWhateverTensorsAreCalled) {
  TensorFile weights;
  weights.add("a\n\x7f", {1}, {1});
  const ParameterFile file(weights.write());
  EXPECT_EQ(error_of([&] { file.check({}, {}); }),
            weights.path + ": has 1 tensor that no parameter of this model has the name of ('a\\x0a\\x7f')");
}

class Loading : public ::testing::Test {
 protected:
  // The parameters of a new model after loading.
  std::vector<double> loaded(const LoadOptions& options = {}, DType dtype = DType::f32) {
    Net net;
    const ParameterStore store(net, {.dtype = dtype, .gradients = false});
    load_parameters(file.write(), store, options);
    std::vector<double> all;
    for (const auto& entry : store.entries()) {
      for (const double x : entry.value.to_doubles()) all.push_back(x);
    }
    return all;
  }
  std::string error(const LoadOptions& options = {}) {
    const std::string text = error_of([&] { loaded(options); });
    return text.starts_with(file.path + ": ") ? text.substr(file.path.size() + 2) : text;
  }
  void add_second() { file.add("second.weight", {2, 3}, {10, 11, 12, 13, 14, 15}); }

  const std::vector<double> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  TensorFile file;
};

TEST_F(Loading, ConvertsEveryElementTypeToThatOfTheParameters) {
  file.add<Float16>("first.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  file.add<BFloat16>("first.bias", {3}, {7, 8, 9});
  file.add<double>("second.weight", {2, 3}, {10, 11, 12, 13, 14, 15});
  EXPECT_EQ(loaded(), numbers);
  EXPECT_EQ(loaded({}, DType::f64), numbers);
}

TEST_F(Loading, RenamesTransposesAndLeavesOut) {
  file.add("net.0.w", {2, 3}, {1, 3, 5, 2, 4, 6});  // [in,out]
  file.add("net.0.b", {1, 3}, {7, 8, 9});           // an extent of 1 in front does not count
  add_second();
  file.add("position_ids", {2}, {0, 1});
  const auto rename = replace_parts({{"net.0.", "first."}, {".w", ".weight"}, {".b", ".bias"}});
  EXPECT_EQ(rename("net.0.w"), "first.weight");
  LoadOptions options{.rename =
                          [&](const std::string& name) {
                            return name == "second.weight" ? name : name == "position_ids" ? "" : rename(name);
                          },
                      .transpose = [](const std::string& tensor) { return tensor == "net.0.w"; }};
  EXPECT_EQ(loaded(options), numbers);
  EXPECT_EQ(loaded(options, DType::f64), numbers);
  options.rename = [&](const std::string& name) { return name == "second.weight" ? name : rename(name); };
  EXPECT_EQ(error(options), "has 1 tensor that no parameter of this model has the name of ('position_ids')");
  options.ignore_extra = true;
  EXPECT_EQ(loaded(options), numbers);
}

TEST_F(Loading, SaysWhichNamesAreMissingAndLeftOver) {
  for (int i = 0; i < 7; ++i) file.add("extra." + std::to_string(i), {1}, {0});
  file.add("first.bias", {3}, {7, 8, 9});
  EXPECT_EQ(error(),
            "has no tensor for 2 parameters ('first.weight', 'second.weight'); has 7 tensors that no parameter of this "
            "model has the name of ('extra.0', 'extra.1', 'extra.2', 'extra.3', 'extra.4' and 2 more)");
  EXPECT_EQ(error({.ignore_extra = true}), "has no tensor for 2 parameters ('first.weight', 'second.weight')");
  EXPECT_EQ(error({.rename = [](const std::string&) { return "first.bias"; }}),
            "tensors 'extra.0' and 'extra.1' are both for 'first.bias', expected one");
}

TEST_F(Loading, SaysWhatCameAndWhatWasExpected) {
  file.add("first.bias", {3}, {7, 8, 9});
  add_second();
  file.add("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto rename = [](const std::string& name) { return name == "w" ? "first.weight" : name; };
  EXPECT_EQ(error({.rename = rename}), "tensor 'w' for 'first.weight' is F32 [2, 3], expected [3, 2]");
  const auto all = [](const std::string& name) { return name != "second.weight"; };
  EXPECT_EQ(error({.rename = rename, .transpose = all}),
            "tensor 'first.bias' is F32 [3], expected [3] and no transposition, which is for matrices");
  file.entries.back().shape = {3, 2};
  const auto transpose = [](const std::string& name) { return name == "w"; };
  EXPECT_EQ(error({.rename = rename, .transpose = transpose}),
            "tensor 'w' for 'first.weight' is F32 [3, 2], expected [2, 3] to be transposed");
  file.entries.back().type = io::ElementType::i32;
  EXPECT_EQ(error({.rename = rename}),
            "tensor 'w' for 'first.weight' is I32 [3, 2], expected F16, BF16, F32 or F64 [3, 2]");
}

// The tensor that does not fit is the last one.
TEST_F(Loading, OverwritesNothingWhereSomethingDoesNotFit) {
  file.add("first.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  file.add("first.bias", {3}, {7, 8, 9});
  file.add("second.weight", {3, 2}, {10, 11, 12, 13, 14, 15});
  Net net;
  const ParameterStore store(net, {.gradients = false});
  EXPECT_EQ(error_of([&] { load_parameters(file.write(), store); }),
            file.path + ": tensor 'second.weight' is F32 [3, 2], expected [2, 3]");
  for (const double x : store.values().to_doubles()) EXPECT_EQ(x, 0);
}

// As for a checkpoint that has one matrix where heed has several.
TEST(LoadingByHand, TakesEachParameterFromAFunction) {
  const Tensor fused = Tensor::of({4, 3}, std::vector<float>{1, 2, 0, 3, 4, 0, 10, 11, 12, 13, 14, 15});
  Net net;
  const ParameterStore store(net, {.dtype = DType::f64, .gradients = false});
  const auto source = [&](const std::string& name) -> Tensor {
    if (name == "second.weight") return fused.slice(2, 2);
    if (name == "first.bias") return Tensor::full({3}, 7, DType::f64);
    return Tensor::full({3, 2}, 1);
  };
  load_parameters(source, store);
  EXPECT_EQ(net.second.weight.value.to_doubles(), (std::vector<double>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(net.first.bias.value.to_doubles(), (std::vector<double>{7, 7, 7}));

  EXPECT_EQ(error_of([&] {
              load_parameters([&](const std::string& name) { return name == "first.bias" ? Tensor() : source(name); },
                              store);
            }),
            "load_parameters: no tensor came for 1 parameter ('first.bias')");
  EXPECT_EQ(error_of([&] { load_parameters([&](const std::string&) { return fused; }, store); }),
            "load_parameters: the tensor for 'first.weight' has shape [4, 3] in f32, expected [3, 2] in f32 or f64");
}

TEST(Saving, ComesBackToTheBit) {
  TemporaryFolder folder;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Rng rng(seeded(3));
    Net net, again;
    net.first = nn::Linear(2, 3, rng), net.second = nn::Linear(3, 2, rng, false);
    const ParameterStore saved(net, dtype), loaded(again, dtype);
    save_parameters(saved, folder.file("a"));
    load_parameters(folder.file("a"), loaded);
    EXPECT_EQ(saved.values().to_doubles(), loaded.values().to_doubles());
  }
}

// Of every length around a block, at every kind of place; also what is converted, and what is transposed.
TEST_F(Loading, FindsNumbersThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  file.add("first.weight", {3, 2}, {1, 2, 3, 4, 5, 6}), file.add("first.bias", {3}, {7, 8, kNan});
  add_second();
  EXPECT_EQ(error(), "tensor 'first.bias' holds nan at [2], expected finite numbers");
  file.entries.clear();
  file.add<Float16>("first.weight", {3, 2}, {1, 2, 3, -kInfinity, 5, 6}), file.add("first.bias", {3}, {7, 8, 9});
  add_second();
  EXPECT_EQ(error(), "tensor 'first.weight' holds -inf at [1, 1], expected finite numbers");
  file.entries.clear();
  file.add("first.weight", {2, 3}, {1, 2, 3, 4, kInfinity, 6}), file.add("first.bias", {3}, {7, 8, 9});
  add_second();
  EXPECT_EQ(error({.transpose = [](const std::string& name) { return name == "first.weight"; }}),
            "tensor 'first.weight' holds inf at [1, 1], expected finite numbers");
  file.entries.clear();
  file.add<double>("first.weight", {3, 2}, {1, 2, 3, 4, 5, 6}), file.add("first.bias", {3}, {7, 8, 9});
  const double too_large = 1e300;
  std::memcpy(file.storage[file.storage.size() - 2].data(), &too_large, sizeof too_large);
  add_second();
  EXPECT_EQ(error(), "tensor 'first.weight' holds inf at [0, 0], expected finite numbers") << "f32 has no 1e300";
}

struct Long {
  explicit Long(int64_t size) : bias(nn::Init::none().constant({size}, 0)) {}
  Parameter bias;
  void visit(auto&& each) { each("bias", bias); }
};

TEST(ParameterFile, FindsANumberThatIsNotFiniteAnywhere) {
  for (const int64_t size : {1, 1023, 1024, 1025, 2048, 3000}) {
    std::vector<float> numbers(static_cast<size_t>(size), std::numeric_limits<float>::max());
    for (const int64_t at : {int64_t{0}, size / 2, size - 1}) {
      TensorFile weights;
      numbers[static_cast<size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
      weights.add("bias", {size}, numbers);
      numbers[static_cast<size_t>(at)] = std::numeric_limits<float>::max();
      Long net(size);
      const ParameterStore store(net, ParameterStoreOptions{.gradients = false});
      EXPECT_EQ(error_of([&] { load_parameters(weights.write(), store); }),
                weights.path + ": tensor 'bias' holds nan at [" + std::to_string(at) + "], expected finite numbers");
    }
    TensorFile weights;
    weights.add("bias", {size}, numbers);
    Long net(size);
    const ParameterStore store(net, ParameterStoreOptions{.gradients = false});
    EXPECT_EQ(error_of([&] { load_parameters(weights.write(), store); }), "no error") << "the largest number is finite";
  }
}

}  // namespace
}  // namespace heed::models
