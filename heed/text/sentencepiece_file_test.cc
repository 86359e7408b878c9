// SPDX-License-Identifier: Apache-2.0
#include "heed/text/sentencepiece_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "heed/base/testing.h"
#include "heed/text/tokenizer_sentencepiece.h"

namespace heed::text {
namespace {

using heed::testing::error_of;

// Protobuf, as far as a small model needs it: lengths and numbers below 128.
std::string bytes_field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string number_field(int number, int value) {
  return std::string(1, static_cast<char>(number << 3)) + static_cast<char>(value);
}
std::string float_field(int number, float value) {
  std::string bytes(1, static_cast<char>(number << 3 | 5));
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(std::bit_cast<uint32_t>(value) >> shift & 0xFF);
  }
  return bytes;
}
std::string piece(const std::string& text, float score = -1, int type = 1) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) + number_field(3, type));
}

const std::string kSpecial = piece("<pad>", 0, 3) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("<unk>", 0, 2),
                  kPieces = piece("\u2581") + piece("a") + piece("b"), kTraining = bytes_field(2, number_field(3, 1)),
                  kNormalizer = bytes_field(3, bytes_field(1, "identity") + bytes_field(2, ""));

std::string error_of_model(const std::string& model, TokenizerKind kind = TokenizerKind::unigram) {
  return error_of([&] { parse_sentencepiece(with_tail(model, {.kind = kind}), "t"); });
}

TEST(SentencePieceFile, AModelOfOurHandsIsRead) {
  const std::string file = with_tail(kSpecial + kPieces + kTraining + kNormalizer, {.lowercase = true});
  const auto tokenizer = parse_sentencepiece(file, "t");
  EXPECT_EQ(tokenizer->kind(), TokenizerKind::unigram);
  EXPECT_EQ(tokenizer->size(), 7);
  EXPECT_EQ(tokenizer->encode("AB a"), (std::vector<int32_t>{4, 5, 6, 4, 5}));
  EXPECT_TRUE(check_sentencepiece_file(file, "t").lowercase);
}

TEST(SentencePieceFile, PiecesAreChecked) {
  const auto error = [](const std::string& bad) {
    return error_of_model(kSpecial + kPieces + bad + kTraining + kNormalizer);
  };
  EXPECT_EQ(error(piece("c")), "no error");
  // SentencePiece gives out what is no UTF-8, which no reader of text gets past; a zero byte makes it throw.
  EXPECT_EQ(error(piece("\xE0\x96\x81")), "t: piece 7: byte 1 is 0xe0, which is no UTF-8");
  EXPECT_EQ(error(piece(std::string("\0c", 2))), "t: piece 7: has a zero byte");
  EXPECT_EQ(error(piece("")), "t: piece 7: is empty");
  EXPECT_EQ(error(piece("a")), "t: piece 7 is the same as one before it");
  EXPECT_EQ(error(piece("<s>")), "t: piece 7 is the same as one before it");
  EXPECT_EQ(error(piece("c", 0, 4)), "no error") << "defined by its user";
  EXPECT_EQ(error(piece("c", 0, 7)), "t: piece 7: has type 7, expected 1 to 6");
  EXPECT_EQ(error(piece("<0xE2>", 0, 6)),
            "t: SentencePiece cannot read it: byte piece <0xE2> is found although `byte_fallback` is false.");
  for (const char* bad : {"c", "<0xE>", "<0xE2", "<0xe2>", "<0x+2>"}) {
    EXPECT_EQ(error(piece(bad, 0, 6)), "t: piece 7: is a byte, expected one such as <0xE2>");
  }
  EXPECT_EQ(error(piece("c", std::numeric_limits<float>::quiet_NaN())), "t: piece 7: has a score that is not finite");
  EXPECT_EQ(error(bytes_field(1, number_field(1, 3))), "t: piece 7: field 1 is of another type");
  EXPECT_EQ(error(bytes_field(1, bytes_field(1, "c") + number_field(9, 0))),
            "t: piece 7: has field 9, expected 1 (text), 2 (score) and 3 (type) alone");
}

TEST(SentencePieceFile, SpecialPiecesAreNumberedFirst) {
  const auto tokenizer =
      parse_sentencepiece(with_tail(kPieces + piece("</s>", 0, 3) + piece("<unk>", 0, 2) + kTraining, {}), "t");
  EXPECT_EQ(tokenizer->size(), 7) << "with padding and a begin, which it lacks";
  EXPECT_EQ(tokenizer->piece(2), "</s>");
  EXPECT_EQ(tokenizer->piece(4), "\u2581");
  EXPECT_EQ(error_of_model(kPieces), "t: has 0 pieces for the unknown, expected 1");
  EXPECT_EQ(error_of_model(kSpecial + kPieces + piece("<?>", 0, 2)), "t: has 2 pieces for the unknown, expected 1");
  EXPECT_EQ(error_of_model(kSpecial + kTraining + kNormalizer), "t: has no pieces for text");
  EXPECT_EQ(error_of_model(""), "t: has 0 pieces for the unknown, expected 1");
}

// 256 units of four bytes, of which the first has this content, and strings of which the last one is empty.
std::string table(uint32_t first, const std::string& strings = std::string(1, '\0')) {
  std::string bytes("\0\4\0\0", 4);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(first >> shift & 0xFF);
  return bytes + std::string(255 * 4, '\0') + strings;
}

TEST(SentencePieceFile, TablesLeadNowhereOutside) {
  const auto error = [](const std::string& bytes) {
    // Longer than 127 bytes: lengths of two.
    const auto field = [](int number, const std::string& what) {
      const auto size = static_cast<unsigned>(what.size());
      return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(size % 128 | 128) +
             static_cast<char>(size / 128) + what;
    };
    return error_of([&] {
      check_sentencepiece_file(with_tail(kSpecial + kPieces + kTraining + field(3, field(2, bytes)), {}), "t");
    });
  };
  const std::string outside = "t: normalizer: has a table that leads outside of itself";
  EXPECT_EQ(error(table(0)), "no error");
  EXPECT_EQ(error(table(1 << 10)), "no error") << "to the units 1 ^ byte";
  EXPECT_EQ(error(table(256 << 10)), outside) << "to units after the last";
  EXPECT_EQ(error(table(1 << 10 | 1 << 9)), outside) << "256 times as far";
  EXPECT_EQ(error(table(1 << 10 | 1 << 8)), "no error") << "a value of 0";
  std::string far = table(1 << 10 | 1 << 8);
  far[4 + 4] = 5;
  EXPECT_EQ(error(far), outside) << "a value past the strings";
  EXPECT_EQ(error(table(0, "a")), outside) << "a string without an end";
  EXPECT_EQ(error(table(0, "")), outside);
  EXPECT_EQ(error(std::string("\3\0\0\0", 4) + std::string(200, '\0')), outside) << "a part of a unit";
  EXPECT_EQ(error(std::string("\xFF\xFF\xFF\xFC", 4) + std::string(200, '\0')), outside);
}

TEST(SentencePieceFile, OptionsAreChecked) {
  const std::string model = kSpecial + kPieces;
  EXPECT_EQ(error_of_model(model + kTraining + kNormalizer, TokenizerKind::bpe),
            "t: training options: model type is 1, expected 2");
  EXPECT_EQ(error_of_model(model + kTraining + bytes_field(3, bytes_field(2, "table"))),
            "t: normalizer: has a table that leads outside of itself");
  EXPECT_EQ(error_of_model(model + bytes_field(6, "")), "t: has field 6, which models of SentencePiece have not");
  EXPECT_EQ(error_of_model(model + number_field(2, 1)), "t: field 2 is of another type");
}

TEST(SentencePieceFile, WhatIsNoProtobufIsNamed) {
  EXPECT_EQ(error_of_model(kSpecial + "\x0A\x7F"), "t: is cut short");
  EXPECT_EQ(error_of_model(kSpecial + std::string(11, '\xFF')), "t: has a number of more than 64 bits");
  EXPECT_EQ(error_of_model("\x0B"), "t: field 1 is of type 3, expected 0, 1, 2 or 5");
}

TEST(SentencePieceFile, TheTailIsChecked) {
  const std::string model = kSpecial + kPieces + kTraining + kNormalizer;
  EXPECT_EQ(error_of_model(model, TokenizerKind::words),
            "t: does not end as heed's tokenizers do, with their kind and how they treat letters");
  EXPECT_EQ(error_of([&] { check_sentencepiece_file(with_hash(model), "t"); }),
            "t: does not end as heed's tokenizers do, with their kind and how they treat letters");
  EXPECT_EQ(error_of([&] { check_sentencepiece_file(model, "t"); }),
            "t: is no tokenizer that heed has written, or it is cut short or damaged");
}

}  // namespace
}  // namespace heed::text
