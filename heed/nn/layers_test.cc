// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heed/base/testing.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::check_layer, testing::draw_tokens, testing::for_draws, testing::Machine;

// 1 to n.
int64_t draw_size(Rng& rng, uint64_t n) { return 1 + static_cast<int64_t>(rng.below(n)); }

TEST(Linear, HasExactGradients) {
  // Not relu: differences fail at its kink. FeedForward has it, away from there.
  constexpr Activation kSmooth[] = {Activation::none, Activation::gelu, Activation::gelu_tanh,
                                    Activation::silu, Activation::tanh, Activation::sigmoid};
  for_draws(30, [&](Rng& rng) {
    const int64_t B = draw_size(rng, 3), T = draw_size(rng, 5), in = draw_size(rng, 9), out = draw_size(rng, 9);
    const Activation activation = kSmooth[rng.below(std::size(kSmooth))];
    const bool bias = rng.below(2) != 0;
    const uint64_t seed = rng.next_u64();
    const auto make = [&] {
      Rng weights(seed);
      return Linear(in, out, weights, bias);
    };
    const auto use = [&](const Linear& layer, Pass& pass, std::span<const Var> x) {
      return layer(pass, x[0], activation);
    };
    // Sums over inputs, outputs or rows; an activation is good to about ten roundings.
    const double additions = static_cast<double>(in + out + B * T) + 20;
    check_layer(make, {normal({B, T, in}, 1, rng)}, use, {.additions = additions, .seed = seed});
  });
}

TEST(Embedding, HasExactGradients) {
  for_draws(10, [&](Rng& rng) {
    const int64_t V = draw_size(rng, 7), E = draw_size(rng, 6);
    const Tensor ids = draw_tokens({draw_size(rng, 3), draw_size(rng, 5)}, V, rng);  // most rows more than once
    const uint64_t seed = rng.next_u64();
    const auto make = [&] {
      Rng weights(seed);
      Embedding layer(V, E, weights);
      layer.factor = 1.75;
      return layer;
    };
    const auto use = [&](const Embedding& layer, Pass& pass, std::span<const Var>) { return layer(pass, ids); };
    check_layer(make, {}, use, {.additions = static_cast<double>(ids.size()) + 2, .seed = seed});
  });
}

TEST(Norm, HasExactGradients) {
  for_draws(20, [&](Rng& rng) {
    const int64_t B = draw_size(rng, 3), T = draw_size(rng, 4), E = 2 + draw_size(rng, 9);
    const NormKind kind = rng.below(2) ? NormKind::layer : NormKind::rms;
    // A large eps keeps rows that happen to be nearly constant from making the difference quotient rough.
    const auto make = [&] { return Norm(E, kind, 0.1); };
    const auto use = [&](const Norm& layer, Pass& pass, std::span<const Var> x) { return layer(pass, x[0]); };
    check_layer(make, {normal({B, T, E}, 1, rng)}, use,
                {.additions = static_cast<double>(4 * E + B * T) + 20, .seed = rng.next_u64()});
  });
}

TEST(FeedForward, HasExactGradientsWithDropout) {
  for_draws(20, [&](Rng& rng) {
    const int64_t T = draw_size(rng, 5), E = draw_size(rng, 6), inner = draw_size(rng, 9);
    const FeedForwardOptions options{.width = E,
                                     .inner = inner,
                                     .activation = rng.below(2) ? Activation::gelu : Activation::silu,
                                     .gated = rng.below(2) == 0,
                                     .bias = rng.below(3) > 0,
                                     .dropout = rng.below(2) ? 0.3f : 0.0f};
    const uint64_t seed = rng.next_u64();
    const auto make = [&] {
      Rng weights(seed);
      return FeedForward(options, weights);
    };
    const auto use = [&](const FeedForward& layer, Pass& pass, std::span<const Var> x) {
      return ops::add(pass, layer(pass, x[0]), x[0]);  // something is left where everything was dropped
    };
    check_layer(make, {normal({2, T, E}, 1, rng)}, use,
                {.training = true, .additions = static_cast<double>(4 * (E + inner) + 2 * T) + 20, .seed = seed});
  });
}

// A relu away from its kink: |x w + b| > 0.5 with w = 1 and b = 0 but for what scatter() adds, x at +-4.
TEST(FeedForward, HasExactGradientsThroughRelu) {
  const auto make = [] {
    Rng rng(seeded(3));
    FeedForward layer({.width = 4, .inner = 4}, rng);
    for (int i = 0; i < 16; ++i) layer.first.weight.value.data<float>()[i] = i % 5 == 0 ? 1.0f : 0.0f;
    return layer;
  };
  const float x[] = {4, -4, 4, -4, -4, 4, 4, -4};
  const auto use = [](const FeedForward& layer, Pass& pass, std::span<const Var> in) { return layer(pass, in[0]); };
  check_layer(make, {Tensor::of({2, 4}, x)}, use, {.additions = 50});
}

TEST(FeedForward, DropsTheSameForTheSameStreamAndNothingOutsideTraining) {
  Machine machine;
  Rng rng(seeded(1));
  const FeedForward layer({.width = 8, .inner = 32, .dropout = 0.5f}, rng);
  const Var x = normal({4, 8}, 1, rng);
  const auto run = [&](bool training, RandomStream random) {
    Pass pass = machine.pass();
    pass.training = training;
    pass.random = random;
    return layer(pass, x).value();
  };
  const Tensor kept = run(false, {1});
  EXPECT_TRUE(testing::same_bits(run(false, {2}), kept));
  EXPECT_TRUE(testing::same_bits(run(true, {1}), run(true, {1})));
  EXPECT_FALSE(testing::same_bits(run(true, {1}), run(true, {2})));
  EXPECT_FALSE(testing::same_bits(run(true, {1}), run(true, {1, 1})));
  EXPECT_FALSE(testing::same_bits(run(true, {1}), kept));
}

TEST(Pass, DrawsEachTimeAnother) {
  Machine machine;
  Pass pass = machine.pass();
  EXPECT_FALSE(pass.next_dropout(0.5f).on());
  EXPECT_FALSE(pass.next_attention_dropout(0.5f).on());
  EXPECT_EQ(pass.random.position, 0u);
  pass.training = true;
  EXPECT_FALSE(pass.next_dropout(0).on());
  std::set<uint64_t> streams, seeds;
  for (int i = 0; i < 10; ++i) {
    streams.insert(pass.next_dropout(0.5f).stream);
    seeds.insert(pass.next_attention_dropout(0.5f).seed);
  }
  EXPECT_EQ(streams.size(), 10u);
  EXPECT_EQ(seeds.size(), 10u);
  EXPECT_EQ(pass.random.position, 20u);
}

TEST(Linear, BeginsWithGlorotsWeightsAndNoBias) {
  Rng rng(seeded(1));
  const Linear layer(30, 20, rng);
  const double bound = std::sqrt(6.0 / 50);
  double squares = 0;
  for (const float w : layer.weight.value.span<float>()) {
    EXPECT_LE(std::abs(w), bound);
    squares += double{w} * w;
  }
  // 600 draws, of variance bound^2 / 3: their mean square is that within 5 of its deviations, sqrt(4 / 5 / 600).
  EXPECT_NEAR(squares / 600 / (bound * bound / 3), 1, 5 * std::sqrt(0.8 / 600));
  for (const float b : layer.bias.value.span<float>()) EXPECT_EQ(b, 0);
  EXPECT_TRUE(layer.weight.decay);
  EXPECT_FALSE(layer.bias.decay);
  EXPECT_FALSE(Linear(3, 2, rng, false).bias.value);
}

TEST(Parameters, AreNamedByTheirLayers) {
  Rng rng(seeded(1));
  FeedForward layer({.width = 3, .inner = 5}, rng), gated({.width = 3, .inner = 5, .gated = true, .bias = false}, rng);
  const auto names_of = [](const ParameterStore& store) {
    std::vector<std::string> names;
    for (const auto& entry : store.entries()) names.push_back(entry.name);
    return names;
  };
  const ParameterStore store(layer);
  EXPECT_EQ(names_of(store), (std::vector<std::string>{"first.weight", "first.bias", "second.weight", "second.bias"}));
  EXPECT_EQ(store.count(), 3 * 5 + 5 + 5 * 3 + 3);
  EXPECT_EQ(names_of(ParameterStore(gated)),
            (std::vector<std::string>{"first.weight", "second.weight", "third.weight"}));
}

TEST(Sinusoids, AreThoseOfThePaper) {
  const Tensor table = sinusoids(50, 6, {.dtype = DType::f64});
  for (int64_t p = 0; p < 50; ++p) {
    for (int64_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, 2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(table.data<double>()[p * 6 + 2 * i], std::sin(angle), 1e-13);
      EXPECT_NEAR(table.data<double>()[p * 6 + 2 * i + 1], std::cos(angle), 1e-13);
    }
  }
  EXPECT_EQ(sinusoids(3, 5).shape(), (Shape{3, 5}));
}

// The same columns in another order; of an odd width, the sines have one more.
TEST(Sinusoids, MayHaveTheirSinesInTheFirstHalf) {
  for (const int64_t width : {6, 7}) {
    const Tensor table = sinusoids(9, width), halves = sinusoids(9, width, {.layout = SinusoidLayout::halves});
    const int64_t sines = (width + 1) / 2;
    for (int64_t p = 0; p < 9; ++p) {
      const float *a = table.data<float>() + p * width, *b = halves.data<float>() + p * width;
      for (int64_t i = 0; i < width; ++i) EXPECT_EQ(b[i % 2 == 0 ? i / 2 : sines + i / 2], a[i]) << p << ' ' << i;
    }
  }
}

TEST(Sinusoids, MayBeCountedFromAnotherPosition) {
  EXPECT_EQ(sinusoids(4, 6, {.first_position = 3}).to_doubles(), sinusoids(7, 6).slice(3, 4).to_doubles());
}

// What is left to a file has a shape, and no memory until a store gives it some.
TEST(Init, NoneAllocatesAndDrawsNothing) {
  FeedForward layer({.width = 3, .inner = 5}, Init::none());
  EXPECT_FALSE(layer.first.weight.value);
  EXPECT_TRUE(layer.first.weight.exists());
  EXPECT_EQ(layer.first.weight.shape(), (Shape{5, 3}));
  EXPECT_FALSE(layer.third.weight.exists());
  const ParameterStore store(layer, {.gradients = false});
  EXPECT_EQ(layer.first.weight.value.shape(), (Shape{5, 3}));
  for (const double x : store.values().to_doubles()) EXPECT_EQ(x, 0);
  EXPECT_FALSE(store.gradients());
  EXPECT_FALSE(layer.first.weight.gradient);
  EXPECT_FALSE(store.find("first.bias")->decay);
  store.clear_gradients();  // there are none
}

TEST(AlibiSlopes, AreThoseOfThePaper) {
  EXPECT_EQ(alibi_slopes(8), (std::vector<float>{0.5f, 0.25f, 0.125f, 0.0625f, 0x1p-5f, 0x1p-6f, 0x1p-7f, 0x1p-8f}));
  EXPECT_EQ(alibi_slopes(1), (std::vector<float>{0x1p-8f}));
  // Six heads: those of four, then the first and third of eight.
  EXPECT_EQ(alibi_slopes(6), (std::vector<float>{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
}

TEST(Layers, SayWhatDoesNotFit) {
  Machine machine;
  Pass pass = machine.pass();
  Rng rng(seeded(1));
  const Linear linear(3, 2, rng);
  EXPECT_EQ(error_of([&] { linear(pass, Tensor::zeros({1, 4})); }), "linear: w has shape [2, 3], expected [O, 4]");
  const Norm norm(3);
  EXPECT_EQ(error_of([&] { norm(pass, Tensor::zeros({2, 4})); }), "layer_norm: weight has shape [3], expected [4]");
}

}  // namespace
}  // namespace heed::nn
