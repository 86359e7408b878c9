// SPDX-License-Identifier: Apache-2.0
#include "heed/base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

// What the bits of a binary16 mean, by the definition.
double meaning_f16(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? (fraction ? NAN : INFINITY)
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16, WidensExactlyAndComesBackForAllBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<uint16_t>(bits)};
    const double meaning = meaning_f16(bits);
    if (std::isnan(meaning)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(half)));
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16::from(static_cast<float>(half)))));
    } else {
      ASSERT_EQ(static_cast<double>(static_cast<float>(half)), meaning) << bits;
      ASSERT_EQ(Float16::from(static_cast<float>(half)).bits, bits);
    }
  }
}

// Between two neighbours the nearer is taken, and half-way the even one.
TEST(Float16, RoundsToTheNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = meaning_f16(bits), high = meaning_f16(bits + 1), middle = (low + high) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    EXPECT_EQ(Float16::from(tie).bits, bits + (bits & 1)) << bits;
    EXPECT_EQ(Float16::from(std::nextafter(tie, 0.0f)).bits, bits);
    EXPECT_EQ(Float16::from(std::nextafter(tie, 1e9f)).bits, bits + 1);
    EXPECT_EQ(Float16::from(-tie).bits, 0x8000 + bits + (bits & 1));
  }
  EXPECT_EQ(Float16::from(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(Float16::from(65520.0f).bits, 0x7C00);
  EXPECT_EQ(Float16::from(INFINITY).bits, 0x7C00);
}

TEST(BFloat16, WidensExactlyAndComesBackForAllBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 half{static_cast<uint16_t>(bits)};
    const auto wide = static_cast<float>(half);
    ASSERT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16::from(wide))));
    } else {
      ASSERT_EQ(BFloat16::from(wide).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const uint32_t tie = bits << 16 | 0x8000u;
    EXPECT_EQ(BFloat16::from(std::bit_cast<float>(tie)).bits, bits + (bits & 1));
    EXPECT_EQ(BFloat16::from(std::bit_cast<float>(tie - 1)).bits, bits);
    EXPECT_EQ(BFloat16::from(std::bit_cast<float>(tie + 1)).bits, bits + 1);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16::from(std::bit_cast<float>(0x7F800001u)))));
}

// Once: through f32 to the nearest, a number just beside a tie would become the tie.
TEST(Halves, OfDoublesAreRoundedOnce) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double tie = (meaning_f16(bits) + meaning_f16(bits + 1)) / 2, beside = 0x1p-40 * tie;
    ASSERT_EQ(Float16::from(tie).bits, bits + (bits & 1)) << bits;
    ASSERT_EQ(Float16::from(tie - beside).bits, bits);
    ASSERT_EQ(Float16::from(tie + beside).bits, bits + 1);
    ASSERT_EQ(Float16::from(-tie - beside).bits, 0x8000 + bits + 1);
  }
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const double tie = std::bit_cast<float>(bits << 16 | 0x8000u), beside = 0x1p-40 * tie;
    ASSERT_EQ(BFloat16::from(tie).bits, bits + (bits & 1)) << bits;
    ASSERT_EQ(BFloat16::from(tie - beside).bits, bits);
    ASSERT_EQ(BFloat16::from(tie + beside).bits, bits + 1);
    ASSERT_EQ(BFloat16::from(-tie - beside).bits, 0x8000 + bits + 1);
  }
}

TEST(Halves, OfDoublesBeyondF32) {
  EXPECT_EQ(Float16::from(1e300).bits, 0x7C00);
  EXPECT_EQ(BFloat16::from(1e300).bits, 0x7F80);
  EXPECT_EQ(BFloat16::from(-1e300).bits, 0xFF80);
  // The largest finite one is 255/256 2^128; from half-way to 2^128 on it is infinity.
  EXPECT_EQ(BFloat16::from(0x1.FFp127).bits, 0x7F80);
  EXPECT_EQ(BFloat16::from(std::nextafter(0x1.FFp127, 0.0)).bits, 0x7F7F);
  EXPECT_EQ(Float16::from(-1e-300).bits, 0x8000);
  EXPECT_EQ(BFloat16::from(1e-300).bits, 0);
  EXPECT_EQ(BFloat16::from(0x1p-134).bits, 0);  // half of the smallest subnormal: a tie
  EXPECT_EQ(BFloat16::from(std::nextafter(0x1p-134, 1.0)).bits, 1);
  EXPECT_EQ(Float16::from(-0.0).bits, 0x8000);
  for (const double infinity : {static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    EXPECT_EQ(static_cast<float>(Float16::from(infinity)), infinity);
    EXPECT_EQ(static_cast<float>(BFloat16::from(infinity)), infinity);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16::from(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16::from(std::nan("")))));
}

}  // namespace
}  // namespace heed
