// SPDX-License-Identifier: Apache-2.0
#include "heed/text/utf8.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cwctype>
#include <string>

#include "heed/base/testing.h"

namespace heed::text {
namespace {

using heed::testing::error_of;
constexpr size_t kValid = std::string_view::npos;

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(find_invalid_utf8(text), kValid) << uint32_t{c};
    ASSERT_EQ(characters_of(text), std::u32string(1, c));
    ASSERT_EQ(find_invalid_utf8(text.substr(0, text.size() - 1)), text.size() > 1 ? 0u : kValid) << uint32_t{c};
  }
}

TEST(Utf8, FindsTheFirstByteThatIsWrong) {
  EXPECT_EQ(find_invalid_utf8(""), kValid);
  EXPECT_EQ(find_invalid_utf8("señor"), kValid);
  EXPECT_EQ(find_invalid_utf8("se\xF1or"), 2u);              // Latin-1
  EXPECT_EQ(find_invalid_utf8("a\x80"), 1u);                 // goes on with nothing begun
  EXPECT_EQ(find_invalid_utf8("ab\xC3"), 2u);                // cut short
  EXPECT_EQ(find_invalid_utf8("a\xC0\xAF"), 1u);             // overlong
  EXPECT_EQ(find_invalid_utf8("\xE0\x9F\xBF"), 0u);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xF0\x8F\xBF\xBF"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0u);          // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);      // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("abc\xFF"), 3u);               // never
  EXPECT_EQ(find_invalid_utf8("\xE2\x82\xAC\xE2\x82"), 3u);  // the second one is cut short
}

TEST(Utf8, ErrorsNameTheByte) {
  EXPECT_EQ(error_of([] { check_utf8("se\xF1or", "source"); }), "source: byte 3 is 0xf1, which is no UTF-8");
  EXPECT_EQ(error_of([] { characters_of("\x80"); }), "text: byte 1 is 0x80, which is no UTF-8");
}

TEST(Utf8, SqueezesSpaces) {
  EXPECT_EQ(squeeze_spaces(""), "");
  EXPECT_EQ(squeeze_spaces(" \t\u00A0"), "");
  EXPECT_EQ(squeeze_spaces("  a \t b\u3000\u2028c\n"), "a b c");
  EXPECT_EQ(squeeze_spaces("zero\u200Bwidth"), "zero\u200Bwidth");  // which Unicode does not count as space
}

TEST(Utf8, LowersText) {
  EXPECT_EQ(to_lower(std::string_view("ÉL COMIÓ 3 ÑANDÚES × ÷ ß")), "él comió 3 ñandúes × ÷ ß");
  EXPECT_EQ(to_lower(std::string_view("ŁÓDŹ ŸĲ ΆΈΏΣ ЁЖ ҐӀ 漢")), "łódź ÿĳ άέώσ ёж ґӏ 漢");
}

// The C library's table, which knows more scripts, is the judge within those that are promised.
TEST(Utf8, LowersAsTheSystemDoes) {
  const std::string before = std::setlocale(LC_CTYPE, nullptr);
  if (!std::setlocale(LC_CTYPE, "C.UTF-8")) GTEST_SKIP() << "this system has no C.UTF-8";
  constexpr std::pair<char32_t, char32_t> kRanges[] = {{0, 0x17F}, {0x386, 0x3CE}, {0x400, 0x52F}};
  for (const auto& [first, last] : kRanges) {
    for (char32_t c = first; c <= last; ++c) {
      EXPECT_EQ(to_lower(c), static_cast<char32_t>(std::towlower(static_cast<wint_t>(c)))) << std::hex << uint32_t{c};
    }
  }
  std::setlocale(LC_CTYPE, before.c_str());
}

}  // namespace
}  // namespace heed::text
