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
  EXPECT_EQ(error(piece("c", 0, 4)), "t: piece 7: has type 4, expected 1");
  EXPECT_EQ(error(piece("c", std::numeric_limits<float>::quiet_NaN())), "t: piece 7: has a score that is not finite");
  EXPECT_EQ(error(bytes_field(1, number_field(1, 3))), "t: piece 7: field 1 is of another type");
  EXPECT_EQ(error(bytes_field(1, bytes_field(1, "c") + number_field(9, 0))),
            "t: piece 7: has field 9, expected 1 (text), 2 (score) and 3 (type) alone");
}

TEST(SentencePieceFile, SpecialPiecesComeFirst) {
  EXPECT_EQ(error_of_model(kPieces + kSpecial + kTraining + kNormalizer), "t: piece 0: is not <pad>");
  EXPECT_EQ(error_of_model(piece("<pad>", 0, 1) + kPieces), "t: piece 0: has type 1, expected 3");
  EXPECT_EQ(error_of_model(kSpecial + kTraining + kNormalizer), "t: has 4 pieces, expected more than 4");
  EXPECT_EQ(error_of_model(""), "t: has 0 pieces, expected more than 4");
}

TEST(SentencePieceFile, OptionsAreChecked) {
  const std::string model = kSpecial + kPieces;
  EXPECT_EQ(error_of_model(model + kTraining + kNormalizer, TokenizerKind::bpe),
            "t: training options: model type is 1, expected 2");
  EXPECT_EQ(error_of_model(model + kTraining + bytes_field(3, bytes_field(2, "table"))),
            "t: normalizer: has a table, expected none");
  EXPECT_EQ(error_of_model(model + bytes_field(4, "")), "t: has field 4, which heed's models have not");
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
