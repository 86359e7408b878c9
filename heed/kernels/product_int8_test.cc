// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product_int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "heed/base/testing.h"
#include "heed/base/workspace.h"
#include "heed/kernels/reference/product_int8.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

std::vector<float> linear(const Rows& x, const Weight& w, const Rows* b, Int8Form form, Parallel& parallel) {
  const Workspace memory(quantised_rows_bytes(x.rows(), x.width()));
  const QuantisedRows rows = quantise_rows(x.view(), form, memory.data(), parallel);
  Rows y(x.rows(), w.outputs(), 3);
  y.for_each([](float& v) { v = kNaN; });
  linear_int8({rows, w, b ? View<const float, 1>(b->view().data(), {w.outputs()}) : View<const float, 1>()}, y.view(),
              Activation::none, parallel);
  EXPECT_TRUE(y.guards_are_whole());
  return y.floats();
}

// body(form) for every instruction set of this machine, and every form that it can read.
void for_forms(const std::function<void(Int8Form)>& body) {
  for_targets([&] {
    body(Int8Form::words);
    if (best_int8_form() == Int8Form::bytes) body(Int8Form::bytes);
  });
}

int64_t draw_inputs(Rng& rng) {
  static constexpr int64_t kEdges[] = {0, 1, 2, 3, 4, 5, 8, 17, 64, 100, 511, 512, 513};
  return kEdges[rng.below(std::size(kEdges))];
}

// Sums are exact; what is rounded is the sum, the product of the scales, that of both, and what b makes of it.
TEST(ProductInt8, IsNearTheTwinAndTheSameBitsOnEveryInstructionSet) {
  for_draws(60, [](Rng& rng) {
    const int64_t M = static_cast<int64_t>(rng.below(40)), O = draw_width(rng), I = draw_inputs(rng);
    const Rows x = Rows::normal(M, I, rng), w = Rows::normal(O, I, rng, 0.1f), b = Rows::normal(1, O, rng);
    const bool biased = rng.below(2);
    SCOPED_TRACE(std::to_string(M) + " rows, " + std::to_string(I) + " to " + std::to_string(O));
    std::vector<double> expected(static_cast<size_t>(M * O)), bounds;
    const View<const float, 1> bias(b.view().data(), {O});
    reference::linear_int8(x.view(), w.view(), biased ? bias : View<const float, 1>(), matrix(expected, M, O));
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t o = 0; o < O; ++o) {
        const double size = std::abs(expected[bounds.size()]) + (biased ? 2 * std::abs(double{b.view()(0, o)}) : 0);
        bounds.push_back(std::expm1(4 * kUnit) * size);
      }
    }
    std::optional<std::vector<float>> first;
    for_forms([&](Int8Form form) {
      Parallel parallel(2);
      const PackedWeight packed(w.view(), DType::i8, parallel);
      const std::vector<float> y = linear(x, packed, biased ? &b : nullptr, form, parallel);
      EXPECT_TRUE(within(y, expected, bounds));
      if (!first) first = y;
      EXPECT_TRUE(same_bits(y, *first));
    });
  });
}

// The largest sums that there can be: of 8-bit products some instructions would saturate.
TEST(ProductInt8, IsExactForTheLargestNumbers) {
  for (const int64_t I : {4, 512, 4096, 70000}) {
    Rows x(3, I), w(20, I);
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t m = 0; m < 3; ++m) x(m, i) = m == 0 ? 127 : m == 1 ? -127 : i % 2 ? 127 : -127;
      for (int64_t o = 0; o < 20; ++o) w(o, i) = o % 2 ? 127 : -127;
    }
    for_forms([&](Int8Form form) {
      Parallel parallel(1);
      const std::vector<float> y = linear(x, PackedWeight(w.view(), DType::i8, parallel), nullptr, form, parallel);
      for (size_t o = 0; o < 20; ++o) {
        const double whole = (o % 2 ? 127.0 : -127.0) * 127.0 * static_cast<double>(I);
        EXPECT_EQ(y[o], static_cast<float>(whole)) << I;
        EXPECT_EQ(y[20 + o], static_cast<float>(-whole)) << I;
        EXPECT_EQ(y[40 + o], 0) << I;
      }
    });
  }
}

TEST(ProductInt8, MakesARowWithoutTheOthers) {
  for_draws(10, [](Rng& rng) {
    const int64_t O = draw_width(rng, false), I = draw_inputs(rng), M = 150;
    const Rows x = Rows::normal(M, I, rng), w = Rows::normal(O, I, rng);
    for_forms([&](Int8Form form) {
      Parallel parallel(2);
      const PackedWeight packed(w.view(), DType::i8, parallel);
      const std::vector<float> all = linear(x, packed, nullptr, form, parallel);
      for (const int64_t rows : {1, 2, 3, 5, 7, 8, 9, 64}) {
        const int64_t first = static_cast<int64_t>(rng.below(static_cast<uint64_t>(M - rows)));
        Rows part(rows, I);
        for (int64_t r = 0; r < rows; ++r) std::copy_n(x.view().at(first + r), I, part.view().at(r));
        const std::vector<float> some = linear(part, packed, nullptr, form, parallel);
        const auto begin = all.begin() + first * O;
        EXPECT_TRUE(same_bits(some, std::vector<float>(begin, begin + rows * O))) << rows << " rows";
      }
    });
  });
}

TEST(ProductInt8, HasTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(11));
  Parallel one(1);
  const Rows w = Rows::normal(1000, 300, rng);
  const PackedWeight packed(w.view(), DType::i8, one);
  for (const int64_t M : {1, 40, 200}) {
    const Rows x = Rows::normal(M, 300, rng);
    expect_same_on_threads([&](Parallel& parallel) { return linear(x, packed, nullptr, best_int8_form(), parallel); });
  }
}

TEST(ProductInt8, ShowsNumbersThatAreNotFiniteAndTakesTinyOnesForZero) {
  Rng rng(seeded(12));
  for (const int64_t column : {0, 7, 19}) {
    Rows x = Rows::normal(6, 20, rng);
    const Rows w = Rows::normal(33, 20, rng);
    x(1, column) = kNaN, x(2, column) = kInfinity, x(3, column) = -kInfinity;
    for (int64_t i = 0; i < 20; ++i) x(4, i) = i % 2 ? 1e-38f : 1e-40f;
    for_forms([&](Int8Form form) {
      Parallel parallel(1);
      const std::vector<float> y = linear(x, PackedWeight(w.view(), DType::i8, parallel), nullptr, form, parallel);
      for (size_t i = 0; i < y.size(); ++i) {
        const size_t row = i / 33;
        EXPECT_EQ(std::isnan(y[i]), row >= 1 && row <= 3) << i;
        if (row == 4) {
          EXPECT_EQ(y[i], 0) << i;
        }
      }
    });
  }
}

TEST(PackedWeight, InInt8IsWhatTheTwinRoundsTo) {
  for_draws(30, [](Rng& rng) {
    const int64_t O = draw_width(rng, false), I = draw_inputs(rng);
    Rows w = Rows::normal(O, I, rng, std::exp(10 * rng.normal()));
    for (int64_t i = 0; i < I; ++i) w(O / 2, i) = 0;
    Parallel parallel(2);
    const PackedWeight packed(w.view(), DType::i8, parallel);
    std::vector<int32_t> outputs;
    for (int32_t o = 0; o < O; ++o) outputs.push_back(o);
    Rows rounded(O, I);
    unpack_outputs(packed, outputs, rounded.view(), parallel);
    for (int64_t o = 0; o < O; ++o) {
      const reference::Quantised expected = reference::quantise_output({w.view().at(o), static_cast<size_t>(I)});
      EXPECT_EQ(packed.weight().scales()[o], expected.scale);
      for (int64_t i = 0; i < I; ++i) {
        const double exact = expected.values[static_cast<size_t>(i)] * double{expected.scale};
        EXPECT_EQ(double{rounded(o, i)}, exact);  // no rounding here: weight.h
      }
    }
    const PackedWeight again(rounded.view(), DType::i8, parallel);
    EXPECT_TRUE(std::equal(packed.panels().begin(), packed.panels().end(), again.panels().begin()));
  });
}

}  // namespace
}  // namespace heed::kernels
