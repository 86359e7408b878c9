// SPDX-License-Identifier: Apache-2.0
#include "heed/tensor/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/tensor/tensor.h"

namespace heed {
namespace {

using heed::testing::seeded;

constexpr DType kFloating[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

// Signs, ties, subnormals of all four, the largest of each and what is beyond them; an odd number of numbers, so that
// SIMD loops have a remainder.
std::vector<double> hard_numbers() {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> numbers{0,         -0.0,      1,          -1.5,      65504,       65519.999, 65520,
                              1e5,       3e38,      0x1.FFp127, 1e300,     0x1p-14,     0x1p-24,   0x1p-25,
                              0x1.8p-25, 0x1p-133,  1e-40,      1e-45,     1e-310,      0x1.01p0,  0x1.03p0,
                              0x1.002p0, 0x1.006p0, infinity,   -infinity, std::nan("")};
  // Beside the ties between two of 16 bits, by less than f32 can tell.
  for (const double tie : {0x1.01p0, 0x1.03p5, 0x1.002p0, 0x1.006p-3, 0x1.8p-24}) {
    numbers.push_back(tie * (1 + 0x1p-40));
    numbers.push_back(-tie * (1 - 0x1p-40));
  }
  Rng rng(seeded(1));
  while (numbers.size() % 16 != 13)
    numbers.push_back(rng.normal() * std::ldexp(1.0, static_cast<int>(rng.below(60)) - 30));
  return numbers;
}

// One number, by the definition.
double rounded(double x, DType dtype) {
  if (dtype == DType::f64) return x;
  if (dtype == DType::f32) return static_cast<float>(x);
  return dtype == DType::bf16 ? static_cast<float>(BFloat16::from(x)) : static_cast<float>(Float16::from(x));
}

TEST(Convert, RoundsOnceBetweenAnyTwo) {
  const std::vector<double> numbers = hard_numbers();
  const Tensor exact = Tensor::of({std::ssize(numbers)}, numbers);
  for (const DType from : kFloating) {
    const Tensor source = exact.converted(from);
    const std::vector<double> known = source.to_doubles();
    for (const DType to : kFloating) {
      const Tensor target = source.converted(to);
      EXPECT_EQ(target.dtype(), to);
      const std::vector<double> got = target.to_doubles();
      for (size_t i = 0; i < got.size(); ++i) {
        const double want = rounded(known[i], to);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got[i])) << i;
        } else {
          EXPECT_EQ(got[i], want) << name_of(from) << " to " << name_of(to) << " of " << known[i];
          EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << i;
        }
      }
    }
  }
}

// By hand: 1 + 2^-8 is half-way between 1 and the next bf16, 1 + 2^-11 between 1 and the next f16.
TEST(Convert, BreaksTiesToEvenAndNothingElse) {
  const auto one = [](double x, DType dtype) { return Tensor::full({}, x, DType::f64).converted(dtype).item(); };
  EXPECT_EQ(one(1 + 0x1p-8, DType::bf16), 1);
  EXPECT_EQ(one(1 + 0x1p-8 + 0x1p-50, DType::bf16), 1 + 0x1p-7);
  EXPECT_EQ(one(1 + 3 * 0x1p-8, DType::bf16), 1 + 0x1p-6);
  EXPECT_EQ(one(1 + 3 * 0x1p-8 - 0x1p-50, DType::bf16), 1 + 0x1p-7);
  EXPECT_EQ(one(1 + 0x1p-11, DType::f16), 1);
  EXPECT_EQ(one(1 + 0x1p-11 + 0x1p-50, DType::f16), 1 + 0x1p-10);
  EXPECT_EQ(one(0x1p-25, DType::f16), 0);
  EXPECT_EQ(one(0x1p-25 + 0x1p-70, DType::f16), 0x1p-24);
}

}  // namespace
}  // namespace heed
