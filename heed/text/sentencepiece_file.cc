// SPDX-License-Identifier: Apache-2.0
#include "heed/text/sentencepiece_file.h"

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
enum class PieceType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Piece {
  std::string_view text;
  PieceType type;
};

bool is_byte_piece(std::string_view text) {  // "<0xE2>"
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') &&
         text.substr(3, 2).find_first_not_of(kDigits) == text.npos;
}

// Piece `id`: field 1 text, 2 score, 3 type.
Piece check_piece(std::string_view bytes, size_t id, const std::string& name) {
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
  if (type < static_cast<uint64_t>(PieceType::normal) || type > static_cast<uint64_t>(PieceType::byte)) {
    message.fail("has type " + std::to_string(type) + ", expected 1 to 6");
  }
  const auto known = static_cast<PieceType>(type);
  if (known == PieceType::byte && !is_byte_piece(text)) message.fail("is a byte, expected one such as <0xE2>");
  return {text, known};
}

constexpr uint64_t kUnigram = 1, kBpe = 2;  // as SentencePiece counts kinds of models

// Field 3 of how a model was trained, which decides how it is read.
uint64_t model_type(std::string_view bytes, const std::string& name) {
  const std::string place = name + ": training options";
  Message message(bytes, place);
  uint64_t type = kUnigram;  // protobuf leaves out what is the default
  for (Field field; message.next(field);) {
    if (field.number != 3) continue;
    message.expect(field, Field::Form::varint);
    type = field.value;
  }
  return type;
}

void check_training(std::string_view bytes, TokenizerKind kind, const std::string& name) {
  const uint64_t type = model_type(bytes, name), expected = kind == TokenizerKind::bpe ? kBpe : kUnigram;
  if (type == expected) return;
  throw Error(name + ": training options: model type is " + std::to_string(type) + ", expected " +
              std::to_string(expected));
}

// A table of what characters become: the number of bytes of a double array (Darts-clone), the array, and the strings
// that its values point into. SentencePiece follows both without looking, so all that can be reached is checked: from
// unit p, on a byte, a search goes to unit (p ^ offset) ^ byte, and takes the value of unit p ^ offset.
void check_table(std::string_view table, const Message& message) {
  constexpr size_t kCount = 4, kUnit = 4;
  const auto number_at = [&](size_t place) {
    uint32_t number = 0;
    for (size_t i = 0; i < kUnit; ++i) {
      number |= uint32_t{static_cast<unsigned char>(table[place + i])} << 8 * i;
    }
    return number;
  };
  const auto broken = [&] { message.fail("has a table that leads outside of itself"); };
  if (table.size() < kCount || number_at(0) % kUnit != 0 || number_at(0) >= table.size() - kCount) broken();
  const size_t units = number_at(0) / kUnit;
  const std::string_view strings = table.substr(kCount + units * kUnit);
  if (units == 0 || strings.back() != '\0') broken();
  for (size_t p = 0; p < units; ++p) {
    const uint32_t unit = number_at(kCount + p * kUnit);
    constexpr uint32_t kIsValue = uint32_t{1} << 31, kHasLeaf = 1 << 8, kWide = 1 << 9;
    if (unit & kIsValue) continue;  // no byte leads on from it
    const size_t next = p ^ static_cast<size_t>(unit >> 10) << ((unit & kWide) >> 6);
    if ((next | 0xFF) >= units) broken();
    if (unit & kHasLeaf && (number_at(kCount + next * kUnit) & ~kIsValue) >= strings.size()) broken();
  }
}

// Field 2 is the table; heed's own models have none.
void check_normalizer(std::string_view bytes, const std::string& name) {
  const std::string place = name + ": normalizer";
  Message message(bytes, place);
  for (Field field; message.next(field);) {
    if (field.number != 2) continue;
    message.expect(field, Field::Form::bytes);
    if (!field.bytes.empty()) check_table(field.bytes, message);
  }
}

enum ModelField : uint64_t { kPieces = 1, kTraining = 2, kNormalizer = 3, kSelfTest = 4, kDenormalizer = 5 };

void check_model(std::string_view model, TokenizerKind kind, const std::string& name) {
  Message message(model, name);
  std::unordered_set<std::string_view> seen;
  int64_t unknown = 0, special = 0;
  for (Field field; message.next(field);) {
    message.expect(field, Field::Form::bytes);
    if (field.number == kPieces) {
      const size_t id = seen.size();
      const Piece piece = check_piece(field.bytes, id, name);
      if (!seen.insert(piece.text).second) {
        message.fail("piece " + std::to_string(id) + " is the same as one before it");
      }
      unknown += piece.type == PieceType::unknown ? 1 : 0;
      special += piece.type == PieceType::unknown || piece.type == PieceType::control ? 1 : 0;
    } else if (field.number == kTraining) {
      check_training(field.bytes, kind, name);
    } else if (field.number == kNormalizer || field.number == kDenormalizer) {
      check_normalizer(field.bytes, name);
    } else if (field.number != kSelfTest) {
      message.fail("has field " + std::to_string(field.number) + ", which models of SentencePiece have not");
    }
  }
  if (unknown != 1) message.fail("has " + std::to_string(unknown) + " pieces for the unknown, expected 1");
  if (std::ssize(seen) == special) message.fail("has no pieces for text");
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

bool has_tail(std::string_view file) {
  return file.size() >= kTailBytes && file == with_hash(std::string(file.substr(0, file.size() - kHashBytes)));
}

TokenizerKind kind_of_sentencepiece(std::string_view model, const std::string& name) {
  bool has_pieces = false;
  uint64_t type = kUnigram;
  try {
    Message message(model, name);
    for (Field field; message.next(field);) {
      has_pieces |= field.number == kPieces;
      if (field.number == kTraining) type = model_type(field.bytes, name);
    }
  } catch (const Error&) {  // no message at all
    has_pieces = false;
  }
  if (has_pieces && type == kUnigram) return TokenizerKind::unigram;
  if (has_pieces && type == kBpe) return TokenizerKind::bpe;
  throw Error(name + ": is no tokenizer, expected one of heed's or a unigram or BPE model of SentencePiece");
}

SentencePieceTail check_sentencepiece_file(std::string_view file, const std::string& name) {
  if (!has_tail(file)) {
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
