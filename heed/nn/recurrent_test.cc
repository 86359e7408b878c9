// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "heed/base/testing.h"
#include "heed/nn/pooling.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::check_layer, testing::deviation, testing::for_draws, testing::Machine;

constexpr Cell kCells[] = {Cell::rnn, Cell::gru, Cell::lstm};

// All outputs of a layer, side by side: [B, ...].
Var everything(Pass& pass, const RecurrentOutput& out) {
  const int64_t B = out.h.shape(0);
  std::vector<Var> parts{ops::reshape(pass, out.h, {B, out.h.shape(1) * out.h.shape(2)})};
  for (const RecurrentStates& states : out.last) {
    parts.push_back(states.h);
    if (states.c) parts.push_back(states.c);
  }
  return ops::concat(pass, parts);
}

TEST(RecurrentGradient, IsExactForEveryOption) {
  for_draws(40, [](Rng& rng) {
    const bool both = rng.below(2);
    RecurrentOptions options{.cell = kCells[rng.below(3)], .width = both ? 4 : 3, .bidirectional = both};
    options.layers = 1 + static_cast<int64_t>(rng.below(2));
    options.dropout = rng.below(2) ? 0.3f : 0;
    const int64_t B = 2, T = 3, I = 2;
    const std::vector<int64_t> lengths{3, static_cast<int64_t>(rng.below(4))};
    const bool begins = rng.below(2);
    std::vector<Tensor> inputs{normal({B, T, I}, 1, rng)};
    for (int64_t i = 0; begins && i < options.layers; ++i) {
      inputs.push_back(normal({B, options.width}, 1, rng));
      if (options.cell == Cell::lstm) inputs.push_back(normal({B, options.width}, 1, rng));
    }
    const uint64_t seed = rng.next_u64();
    const auto make = [&] {
      Rng weights(seed);
      return Recurrent(I, options, "layer", weights);
    };
    const auto use = [&](const Recurrent& layer, Pass& pass, std::span<const Var> in) {
      std::vector<RecurrentStates> begin;
      for (size_t next = 1; next < in.size();) {
        begin.push_back({in[next++], {}});
        if (options.cell == Cell::lstm) begin.back().c = in[next++];
      }
      return everything(pass, layer(pass, in[0], {.lengths = lengths, .begin = begin}));
    };
    // Of each step and layer, forward and backward: sums over inputs, states and gates.
    const double additions = static_cast<double>(options.layers * (T + 1) * (2 * (I + 4) + 16 + 20));
    check_layer(make, inputs, use, {.training = true, .additions = additions, .seed = seed});
  });
}

TEST(Conv1dGradient, IsExact) {
  for_draws(6, [](Rng& rng) {
    const int64_t taps = 1 + 2 * static_cast<int64_t>(rng.below(3));
    const std::vector<int64_t> lengths{4, 2};
    const auto make = [&] {
      Rng weights(seeded(3));
      return Conv1d(3, 2, taps, weights);
    };
    const auto use = [&](const Conv1d& layer, Pass& pass, std::span<const Var> in) {
      return layer(pass, in[0], lengths);
    };
    check_layer(make, {normal({2, 4, 3}, 1, rng)}, use);
  });
}

Tensor turned(const Tensor& x) {
  const int64_t B = x.shape(0), T = x.shape(1), E = x.shape(2);
  Tensor y = Tensor::like(x);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      std::copy_n(x.data<float>() + (b * T + t) * E, E, y.data<float>() + (b * T + T - 1 - t) * E);
    }
  }
  return y;
}

// A bidirectional layer is one layer over the sequence, and another over the reversed sequence.
TEST(Recurrent, BothDirectionsAreTwoLayers) {
  for (const Cell cell : kCells) {
    Machine machine;
    Pass pass = machine.pass();
    Rng rng(seeded(1));
    const Recurrent both(5, {.cell = cell, .width = 8, .bidirectional = true}, "both", rng);
    Recurrent one(5, {.cell = cell, .width = 4}, "one", rng);
    const Tensor x = normal({3, 6, 5}, 1, rng);
    const RecurrentOutput out = both(pass, x);
    one.layers[0].forward = both.layers[0].forward;
    EXPECT_EQ(deviation(ops::columns(pass, out.h, 0, 4).value(), one(pass, x).h.value()), 0);
    one.layers[0].forward = both.layers[0].backward;
    const RecurrentOutput backward = one(pass, turned(x));
    EXPECT_EQ(deviation(ops::columns(pass, out.h, 4, 4).value(), turned(backward.h.value())), 0);
    EXPECT_EQ(deviation(ops::columns(pass, out.last[0].h, 4, 4).value(), backward.last[0].h.value()), 0);
  }
}

TEST(Recurrent, GoesOnFromItsLastStates) {
  for (const Cell cell : kCells) {
    Machine machine;
    Pass pass = machine.pass();
    Rng rng(seeded(2));
    const Recurrent layer(5, {.cell = cell, .width = 7, .layers = 2}, "layer", rng);
    const Tensor x = normal({1, 9, 5}, 1, rng);
    const RecurrentOutput whole = layer(pass, x);
    const RecurrentOutput first = layer(pass, x.reshaped({9, 5}).slice(0, 8).reshaped({1, 8, 5}));
    const RecurrentOutput second =
        layer(pass, x.reshaped({9, 5}).slice(8, 1).reshaped({1, 1, 5}), {.begin = first.last});
    // The last step's product is another kernel than the whole's: sums of 7 in another order.
    EXPECT_LE(deviation(second.last[1].h.value(), whole.last[1].h.value()), 2 * (5 + 7 + 7 + 20) * testing::kUnit);
  }
}

TEST(Recurrent, WhatStandsInPaddingDoesNotMatter) {
  const std::vector<int64_t> lengths{2, 5, 4};
  for (const Cell cell : kCells) {
    Machine machine;
    Pass pass = machine.pass();
    Rng rng(seeded(3));
    const Recurrent layer(3, {.cell = cell, .width = 6, .layers = 2, .bidirectional = true}, "layer", rng);
    const Conv1d conv(3, 4, 3, rng);
    const Tensor x = normal({3, 5, 3}, 1, rng), padded = x.clone();
    std::fill_n(padded.data<float>() + 2 * 3, 3 * 3, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(testing::same_bits(everything(pass, layer(pass, x, {.lengths = lengths})).value(),
                                   everything(pass, layer(pass, padded, {.lengths = lengths})).value()));
    EXPECT_TRUE(testing::same_bits(conv(pass, x, lengths).value(), conv(pass, padded, lengths).value()));
  }
}

TEST(Tokens, TheLastOfEachRowIsItselfToTheBit) {
  Machine machine;
  Pass pass = machine.pass();
  Rng rng(seeded(6));
  const Tensor x = normal({4, 5, 3}, 1, rng);
  const std::vector<int64_t> lengths{2, 5, 0, 1};
  const Tensor last = last_pool(pass, x, lengths).value(), end = last_pool(pass, x, {}).value();
  for (int64_t b = 0; b < 4; ++b) {
    const Tensor row = x.slice(b, 1).reshaped({5, 3});
    const int64_t n = lengths[static_cast<size_t>(b)];
    EXPECT_TRUE(testing::same_bits(last.slice(b, 1), n ? row.slice(n - 1, 1) : Tensor::zeros({1, 3}))) << b;
    EXPECT_TRUE(testing::same_bits(end.slice(b, 1), row.slice(4, 1))) << b;
  }
}

TEST(Recurrent, SaysWhatDoesNotFit) {
  Rng rng(seeded(4));
  const auto made = [&](const RecurrentOptions& o) { return error_of([&] { Recurrent(3, o, "layer", rng); }); };
  EXPECT_EQ(made({.width = 0}), "recurrent: width is 0, expected an integer >= 1");
  EXPECT_EQ(made({.width = 3, .bidirectional = true}),
            "recurrent: width is 3, expected an even one for two directions");
  EXPECT_EQ(error_of([&] { Conv1d(3, 3, 2, rng); }), "conv1d: taps is 2, expected an odd number");
  Machine machine;
  Pass pass = machine.pass();
  const Recurrent layer(3, {.width = 4, .layers = 2}, "layer", rng);
  const std::vector<RecurrentStates> one(1);
  EXPECT_EQ(error_of([&] {
              layer(pass, Tensor::zeros({1, 2, 3}), {.begin = one});
            }),
            "recurrent: states for 1 layers came, expected 2");
}

}  // namespace
}  // namespace heed::nn
