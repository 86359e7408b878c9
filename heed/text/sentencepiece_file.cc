// SPDX-License-Identifier: Apache-2.0
#include "heed/text/sentencepiece_file.h"

#include <array>
#include <bit>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

// What stands behind the model: field 200 (kind), 201 (lowercase), both of one byte, and 202 (hash), of eight.
constexpr size_t kFieldBytes = 3, kHashBytes = 8, kTailBytes = 2 * kFieldBytes + 2 + kHashBytes;
constexpr std::string_view kKindField = "\xC0\x0C", kLowercaseField = "\xC8\x0C", kHashField = "\xD1\x0C";

// FNV-1a.
uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

std::string bytes_of(uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

// One field of a protobuf message: a number, or bytes.
struct Field {
  uint64_t number = 0, value = 0;
  enum class Form : uint8_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 } form{};
  std::string_view bytes = {};
};

// The fields of a message, one after the other.
class Message {
 public:
  Message(std::string_view bytes, const std::string& place) : rest_(bytes), place_(place) {}

  [[noreturn]] void fail(const std::string& what) const { throw Error(place_ + ": " + what); }
  void expect(const Field& field, Field::Form form) const {
    if (field.form != form) fail("field " + std::to_string(field.number) + " is of another type");
  }
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3, .form = static_cast<Field::Form>(tag & 7)};
    switch (field.form) {
      case Field::Form::varint:
        field.value = varint();
        return true;
      case Field::Form::eight_bytes:
        field.value = little_endian(take(8));
        return true;
      case Field::Form::bytes:
        field.bytes = take(varint());
        return true;
      case Field::Form::four_bytes:
        field.value = little_endian(take(4));
        return true;
    }
    fail("field " + std::to_string(field.number) + " is of type " + std::to_string(tag & 7) +
         ", expected 0, 1, 2 or 5");
  }

 private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) fail("is cut short");
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("has a number of more than 64 bits");
  }
  static uint64_t little_endian(std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
    return value;
  }

  std::string_view rest_;
  const std::string& place_;
};

// The types of pieces, as SentencePiece counts them.
enum class PieceType : uint8_t { normal = 1, unknown = 2, control = 3 };

struct SpecialPiece {
  std::string_view text;
  PieceType type;
};
constexpr std::array<SpecialPiece, 4> kSpecialPieces = {{{"<pad>", PieceType::control},
                                                         {"<s>", PieceType::control},
                                                         {"</s>", PieceType::control},
                                                         {"<unk>", PieceType::unknown}}};

// Piece `id`, its text: field 1 text, 2 score, 3 type.
std::string_view check_piece(std::string_view bytes, size_t id, const std::string& name) {
  const std::string place = name + ": piece " + std::to_string(id);
  Message message(bytes, place);
  std::string_view text;
  float score = 0;
  auto type = static_cast<uint64_t>(PieceType::normal);
  for (Field field; message.next(field);) {
    if (field.number == 1) {
      message.expect(field, Field::Form::bytes);
      text = field.bytes;
    } else if (field.number == 2) {
      message.expect(field, Field::Form::four_bytes);
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    } else if (field.number == 3) {
      message.expect(field, Field::Form::varint);
      type = field.value;
    } else {
      message.fail("has field " + std::to_string(field.number) + ", expected 1 (text), 2 (score) and 3 (type) alone");
    }
  }
  if (text.empty()) message.fail("is empty");
  check_utf8(text, place);
  if (text.find('\0') != text.npos) message.fail("has a zero byte");
  if (!std::isfinite(score)) message.fail("has a score that is not finite");
  const bool special = id < kSpecialPieces.size();
  if (special && text != kSpecialPieces[id].text) message.fail("is not " + std::string(kSpecialPieces[id].text));
  const auto expected = static_cast<uint64_t>(special ? kSpecialPieces[id].type : PieceType::normal);
  if (type != expected) message.fail("has type " + std::to_string(type) + ", expected " + std::to_string(expected));
  return text;
}

// How the model was trained: field 3 is its type, which decides how it is read.
void check_training(std::string_view bytes, TokenizerKind kind, const std::string& name) {
  const std::string place = name + ": training options";
  constexpr uint64_t kUnigram = 1, kBpe = 2;
  Message message(bytes, place);
  uint64_t type = kUnigram;
  for (Field field; message.next(field);) {
    if (field.number != 3) continue;
    message.expect(field, Field::Form::varint);
    type = field.value;
  }
  const uint64_t expected = kind == TokenizerKind::bpe ? kBpe : kUnigram;
  if (type != expected)
    message.fail("model type is " + std::to_string(type) + ", expected " + std::to_string(expected));
}

// heed's models leave text as it is. Field 2 would be a table that SentencePiece follows without looking.
void check_normalizer(std::string_view bytes, const std::string& name) {
  const std::string place = name + ": normalizer";
  Message message(bytes, place);
  for (Field field; message.next(field);) {
    if (field.number == 2 && !field.bytes.empty()) message.fail("has a table, expected none");
  }
}

void check_model(std::string_view model, TokenizerKind kind, const std::string& name) {
  enum Number : uint64_t { pieces = 1, training = 2, normalizer = 3, denormalizer = 5 };
  Message message(model, name);
  std::unordered_set<std::string_view> seen;
  for (Field field; message.next(field);) {
    message.expect(field, Field::Form::bytes);
    if (field.number == pieces) {
      const size_t id = seen.size();
      if (!seen.insert(check_piece(field.bytes, id, name)).second) {
        message.fail("piece " + std::to_string(id) + " is the same as one before it");
      }
    } else if (field.number == training) {
      check_training(field.bytes, kind, name);
    } else if (field.number == normalizer || field.number == denormalizer) {
      check_normalizer(field.bytes, name);
    } else {
      message.fail("has field " + std::to_string(field.number) + ", which heed's models have not");
    }
  }
  if (seen.size() > kSpecialPieces.size()) return;
  message.fail("has " + std::to_string(seen.size()) + " pieces, expected more than " +
               std::to_string(kSpecialPieces.size()));
}

}  // namespace

std::string with_tail(std::string model, const SentencePieceTail& tail) {
  model += std::string(kKindField) + static_cast<char>(tail.kind);
  model += std::string(kLowercaseField) + static_cast<char>(tail.lowercase);
  model += kHashField;
  return with_hash(std::move(model));
}

std::string with_hash(std::string bytes) {
  const uint64_t hash = hash_of(bytes);
  return std::move(bytes) + bytes_of(hash);
}

SentencePieceTail check_sentencepiece_file(std::string_view file, const std::string& name) {
  const size_t hashed = file.size() - kHashBytes;
  if (file.size() < kTailBytes || file != with_hash(std::string(file.substr(0, hashed)))) {
    throw Error(name + ": is no tokenizer that heed has written, or it is cut short or damaged");
  }
  const std::string_view model = file.substr(0, file.size() - kTailBytes), bytes = file.substr(model.size());
  const SentencePieceTail tail{.kind = static_cast<TokenizerKind>(bytes[kKindField.size()]),
                               .lowercase = bytes[kFieldBytes + kLowercaseField.size()] != 0};
  // What it would have been written as is the one spelling of a tail.
  if ((tail.kind != TokenizerKind::unigram && tail.kind != TokenizerKind::bpe) ||
      !with_tail("", tail).starts_with(bytes.substr(0, kTailBytes - kHashBytes))) {
    throw Error(name + ": does not end as heed's tokenizers do, with their kind and how they treat letters");
  }
  check_model(model, tail.kind, name);
  return tail;
}

}  // namespace heed::text
