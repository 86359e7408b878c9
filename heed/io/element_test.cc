// SPDX-License-Identifier: Apache-2.0
#include "heed/io/element.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "heed/base/testing.h"
#include "heed/io/quote.h"

namespace heed::io {
namespace {

using heed::testing::error_of;

TEST(Element, CountsBytesOrSaysThatNoFileHasThem) {
  EXPECT_EQ(byte_count({}, ElementType::f32), 4u);
  EXPECT_EQ(byte_count({2, 3}, ElementType::f16), 12u);
  EXPECT_EQ(byte_count({5, 0, 3}, ElementType::f64), 0u);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(byte_count({kMost}, ElementType::u8), static_cast<uint64_t>(kMost));
  EXPECT_EQ(byte_count({kMost}, ElementType::f16), std::nullopt);
  EXPECT_EQ(byte_count({kMost / 4 + 1, 4}, ElementType::u8), std::nullopt);
  EXPECT_EQ(byte_count({0, kMost, 2}, ElementType::u8), std::nullopt) << "its strides could not be computed";
}

TEST(Element, ConvertsWithRounding) {
  const auto floats = [](auto value) {
    return convert<float>(kElementType<decltype(value)>, std::as_bytes(std::span(&value, 1))).at(0);
  };
  EXPECT_EQ(floats(int64_t{1} << 24 | 1), 0x1p24f) << "a tie, to even";
  EXPECT_EQ(floats((int64_t{1} << 24) + 3), 0x1p24f + 4);
  EXPECT_EQ(floats(0.1), 0.1f);
  EXPECT_EQ(floats(std::numeric_limits<uint64_t>::max()), 0x1p64f);
  EXPECT_EQ(floats(BFloat16::from(-1.5f)), -1.5f);
  EXPECT_EQ(floats(true), 1.0f);
}

TEST(Element, ConvertsNothingOfEightBitsOrComplex) {
  const std::vector<std::byte> bytes(8);
  const std::string expected = ", expected integers, booleans, or real numbers of 16 bits or more";
  EXPECT_EQ(error_of([&] { convert<float>(ElementType::f8_e4m3, bytes); }), "convert: elements are F8_E4M3" + expected);
  EXPECT_EQ(error_of([&] { convert<double>(ElementType::c64, bytes); }), "convert: elements are C64" + expected);
}

TEST(Quote, ShowsAnyTextOnOneShortLine) {
  EXPECT_EQ(quote(""), "''");
  EXPECT_EQ(quote("plain"), "'plain'");
  EXPECT_EQ(quote({"a\n\0\xff", 4}), "'a\\x0a\\x00\\xff'");
  EXPECT_EQ(quote(std::string(80, 'a')), "'" + std::string(80, 'a') + "'");
  EXPECT_EQ(quote(std::string(81, 'a')), "'" + std::string(80, 'a') + "...'");
}

}  // namespace
}  // namespace heed::io
