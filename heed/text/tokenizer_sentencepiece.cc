// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer_sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "heed/base/file.h"
#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

namespace sp = sentencepiece;

// What stands behind the model: field 200 (kind), 201 (lowercase), both of one byte, and 202 (hash), of eight.
constexpr size_t kFieldBytes = 3, kHashBytes = 8, kTailBytes = 2 * kFieldBytes + 2 + kHashBytes;
constexpr const char* kSpecialPieces[] = {"<pad>", "<s>", "</s>", "<unk>"};  // where a model has none of its own
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

std::string with_tail(std::string model, TokenizerKind kind, bool lowercase) {
  model += std::string(kKindField) + static_cast<char>(kind);
  model += std::string(kLowercaseField) + static_cast<char>(lowercase);
  model += kHashField;
  return model + bytes_of(hash_of(model));
}

void replace_all(std::string& text, std::string_view from, char to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; ++at) text.replace(at, from.size(), 1, to);
}

// A block is what SentencePiece writes for a space.
std::string without_blocks(std::string_view text, bool lowercase) {
  std::string result = prepared(text, lowercase);
  replace_all(result, kBlock, ' ');
  return squeeze_spaces(result);
}

// SentencePiece's messages begin with the place in its source: "./src/x.cc(660) [condition] Vocabulary size ...". Where
// nothing follows, the condition has to do.
std::string message_of(const sp::util::Status& status) {
  std::string text = status.error_message();
  const size_t begin = text.find('['), end = text.rfind("] ");
  if (begin == text.npos || end == text.npos) return text;
  return end + 2 < text.size() ? text.substr(end + 2) : text.substr(begin + 1, end - begin - 1);
}

// A byte that stands for itself, as models with byte fallback have them: "<0xE2>".
char byte_of(const std::string& piece) { return static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)); }

// Bytes that a model has put together need not be text: U+FFFD stands for those that are none.
std::string valid_utf8(std::string text) {
  for (size_t bad; (bad = find_invalid_utf8(text)) != text.npos;) text.replace(bad, 1, "\uFFFD");
  return text;
}

class SentencePiece final : public Tokenizer {
 public:
  // A file as with_tail() makes it.
  SentencePiece(std::string file, const std::string& name) : file_(std::move(file)) {
    const std::string_view tail = std::string_view(file_).substr(file_.size() - kTailBytes);
    kind_ = static_cast<TokenizerKind>(tail[kKindField.size()]);
    lowercase_ = tail[kFieldBytes + kLowercaseField.size()] != 0;
    const sp::util::Status status = processor_.LoadFromSerializedProto(file_);
    if (!status.ok()) throw Error(name + ": SentencePiece cannot read it: " + message_of(status));
    number_pieces(name);
  }

  TokenizerKind kind() const override { return kind_; }
  int64_t size() const override { return std::ssize(theirs_); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const sp::util::Status status = processor_.Encode(without_blocks(text, lowercase_), &ids);
    if (!status.ok()) throw Error("tokenizer: SentencePiece cannot encode the text: " + message_of(status));
    for (int32_t& id : ids) id = ours_[static_cast<size_t>(id)];
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      check_id(id, size());
      if (id < kUnknown) continue;
      const int32_t theirs = theirs_[static_cast<size_t>(id)];
      text += theirs >= 0 && processor_.IsByte(theirs) ? std::string(1, byte_of(piece(id))) : piece(id);
    }
    replace_all(text, kBlock, ' ');
    return squeeze_spaces(valid_utf8(std::move(text)));
  }

  std::vector<std::string> surface(std::string_view text) const override {
    std::vector<std::string> pieces;
    const std::string written = without_blocks(text, false);
    const sp::util::Status status =
        processor_.Encode(lowercase_ ? to_lower(std::string_view(written)) : written, &pieces);
    if (!status.ok()) throw Error("tokenizer: SentencePiece cannot encode the text: " + message_of(status));
    // A piece has as many characters as the text has there: its spelling is taken from the text.
    size_t at = 0;
    for (std::string& piece : pieces) {
      std::string spelling;
      for (const char32_t c : characters_of(piece)) {
        if (c == kBlockCharacter) continue;
        while (at < written.size() && written[at] == ' ') ++at;
        if (at < written.size()) append_utf8(spelling, next_character(written, at));
      }
      piece = std::move(spelling);
    }
    return pieces;
  }

  std::string piece(int32_t id) const override {
    check_id(id, size());
    const int32_t theirs = theirs_[static_cast<size_t>(id)];
    return theirs < 0 ? kSpecialPieces[static_cast<size_t>(id)] : processor_.IdToPiece(theirs);
  }

  void save(const std::string& path) const override { write_file_atomically(path, std::as_bytes(std::span(file_))); }

 private:
  // Ids 0 to 3 first, then the others in their order.
  void number_pieces(const std::string& name) {
    theirs_ = {processor_.pad_id(), processor_.bos_id(), processor_.eos_id(), processor_.unk_id()};
    if (theirs_[kUnknown] < 0) throw Error(name + ": has no piece for the unknown, expected one");
    ours_.assign(static_cast<size_t>(processor_.GetPieceSize()), -1);
    for (size_t id = 0; id < theirs_.size(); ++id) {
      if (theirs_[id] >= 0) ours_[static_cast<size_t>(theirs_[id])] = static_cast<int32_t>(id);
    }
    for (size_t id = 0; id < ours_.size(); ++id) {
      if (ours_[id] >= 0) continue;
      ours_[id] = static_cast<int32_t>(theirs_.size());
      theirs_.push_back(static_cast<int32_t>(id));
    }
  }

  std::string file_;
  TokenizerKind kind_ = TokenizerKind::unigram;
  bool lowercase_ = false;
  sp::SentencePieceProcessor processor_;
  std::vector<int32_t> ours_, theirs_;  // ids: heed's by SentencePiece's, and back; -1: it has none
};

class LineIterator final : public sp::SentenceIterator {
 public:
  explicit LineIterator(std::span<const std::string> lines) : lines_(lines) {}
  bool done() const override { return lines_.empty(); }
  void Next() override { lines_ = lines_.subspan(1); }
  const std::string& value() const override { return lines_.front(); }
  sp::util::Status status() const override { return {}; }

 private:
  std::span<const std::string> lines_;
};

// SentencePiece has a token for each of them, and one for the space.
int64_t characters_in(std::span<const std::string> lines) {
  std::unordered_set<char32_t> seen = {kBlockCharacter};
  for (const std::string& line : lines) {
    for (const char32_t c : characters_of(line)) {
      if (c != ' ') seen.insert(c);
    }
  }
  return std::ssize(seen);
}

// What SentencePiece can learn from. It leaves out lines with a zero byte or its own mark for the unknown, U+2585, and
// ends the program if no words are left: here both are spaces, and a line is words or is not there.
std::vector<std::string> lines_to_learn(std::span<const std::string> lines, bool lowercase) {
  constexpr std::string_view kZero("\0", 1), kUnknownMark = "\u2585";
  std::vector<std::string> result;
  for (const std::string& line : lines) {
    std::string words = without_blocks(line, lowercase);
    replace_all(words, kZero, ' ');
    replace_all(words, kUnknownMark, ' ');
    words = squeeze_spaces(words);
    if (!words.empty()) result.push_back(std::move(words));
  }
  if (result.empty()) throw Error("tokenizer: the text has only characters that SentencePiece keeps for itself");
  return result;
}

// A protobuf message, field by field.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}
  // Goes to the next field; false at the end, and where it is no message.
  bool next() {
    uint64_t key = 0, size = 0;
    if (left_.empty() || !number(key)) return false;
    field = key >> 3, value = 0, bytes = {};
    switch (key & 7) {
      case 0:
        return number(value);
      case 1:
        return take(8);
      case 2:
        return number(size) && take(size);
      case 5:
        return take(4);
      default:
        return false;
    }
  }
  bool whole() const { return left_.empty(); }
  uint64_t field = 0, value = 0;  // a number's value
  std::string_view bytes;         // what any other field holds

 private:
  bool number(uint64_t& result) {
    result = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      result |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(uint64_t size) {
    if (size > left_.size()) return false;
    bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  std::string_view left_;
};

// By field 3 (model_type) of field 2 (trainer_spec); nothing where the file is no such model, or one of another kind.
std::optional<TokenizerKind> kind_of_model(std::string_view file) {
  constexpr uint64_t kPieces = 1, kTrainer = 2, kModelType = 3, kUnigram = 1, kBpe = 2;
  uint64_t type = kUnigram;  // protobuf leaves out what is the default
  bool has_pieces = false;
  Fields model(file);
  while (model.next()) {
    has_pieces |= model.field == kPieces;
    if (model.field != kTrainer) continue;
    for (Fields trainer(model.bytes); trainer.next();) {
      if (trainer.field == kModelType) type = trainer.value;
    }
  }
  if (!model.whole() || !has_pieces || (type != kUnigram && type != kBpe)) return std::nullopt;
  return type == kBpe ? TokenizerKind::bpe : TokenizerKind::unigram;
}

}  // namespace

std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string> lines, const TokenizerOptions& options) {
  const std::vector<std::string> learnt = lines_to_learn(lines, options.lowercase);
  const int64_t least = characters_in(learnt) + kUnknown + 1;
  if (options.vocabulary < least) {
    throw Error("tokenizer: vocabulary is " + std::to_string(options.vocabulary) + ", expected at least " +
                std::to_string(least) + " for this text: one for each of its characters, and " +
                std::to_string(kUnknown + 1));
  }
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.kind == TokenizerKind::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocabulary)},
      {"hard_vocab_limit", "false"},  // fewer, where the text is too short for so many
      {"pad_id", std::to_string(kPad)},
      {"bos_id", std::to_string(kBegin)},
      {"eos_id", std::to_string(kEnd)},
      {"unk_id", std::to_string(kUnknown)},
      {"normalization_rule_name", "identity"},
      {"character_coverage", "1"},
      {"max_sentence_length", std::to_string(1 << 30)},  // the most it takes
      {"num_threads", "1"},                              // the sums of unigram training depend on it
      {"minloglevel", "3"}};                             // fatal errors only
  LineIterator iterator(learnt);
  std::string model;
  const sp::util::Status status = sp::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) {
    throw Error("tokenizer: vocabulary is " + std::to_string(options.vocabulary) +
                ", and SentencePiece says: " + message_of(status));
  }
  const TokenizerKind kind = options.kind == TokenizerKind::bpe ? TokenizerKind::bpe : TokenizerKind::unigram;
  return std::make_unique<SentencePiece>(with_tail(std::move(model), kind, options.lowercase), "tokenizer");
}

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string file, const std::string& name) {
  const size_t hashed = file.size() - kHashBytes;
  if (file.size() < kTailBytes || file.substr(hashed) != bytes_of(hash_of(std::string_view(file).substr(0, hashed)))) {
    throw Error(name + ": is no tokenizer that heed has written, or it is cut short or damaged");
  }
  return std::make_unique<SentencePiece>(std::move(file), name);
}

std::unique_ptr<Tokenizer> import_sentencepiece(std::string file, const std::string& name, bool lowercase) {
  const size_t hashed = file.size() < kTailBytes ? 0 : file.size() - kHashBytes;
  if (hashed > 0 && file.substr(hashed) == bytes_of(hash_of(std::string_view(file).substr(0, hashed)))) {
    return parse_sentencepiece(std::move(file), name);
  }
  const std::optional<TokenizerKind> kind = kind_of_model(file);
  if (!kind) throw Error(name + ": is no tokenizer, expected one of heed's or a unigram or BPE model of SentencePiece");
  return std::make_unique<SentencePiece>(with_tail(std::move(file), *kind, lowercase), name);
}

}  // namespace heed::text
