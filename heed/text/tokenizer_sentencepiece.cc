// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer_sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>
#include <unordered_set>

#include "heed/base/file.h"
#include "heed/text/sentencepiece_file.h"
#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

namespace sp = sentencepiece;

constexpr const char* kSpecialPieces[] = {"<pad>", "<s>", "</s>", "<unk>"};  // where a model has none of its own

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
  // A file that has been found sound.
  SentencePiece(std::string file, const SentencePieceTail& tail, const std::string& name)
      : file_(std::move(file)), tail_(tail) {
    const sp::util::Status status = processor_.LoadFromSerializedProto(file_);
    if (!status.ok()) throw Error(name + ": SentencePiece cannot read it: " + message_of(status));
    number_pieces();
  }

  TokenizerKind kind() const override { return tail_.kind; }
  int64_t size() const override { return std::ssize(theirs_); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    const sp::util::Status status = processor_.Encode(without_blocks(text, tail_.lowercase), &ids);
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
        processor_.Encode(tail_.lowercase ? to_lower(std::string_view(written)) : written, &pieces);
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
  void number_pieces() {
    theirs_ = {processor_.pad_id(), processor_.bos_id(), processor_.eos_id(), processor_.unk_id()};
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
  SentencePieceTail tail_;
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
  const SentencePieceTail tail{.kind = options.kind == TokenizerKind::bpe ? TokenizerKind::bpe : TokenizerKind::unigram,
                               .lowercase = options.lowercase};
  return std::make_unique<SentencePiece>(with_tail(std::move(model), tail), tail, "tokenizer");
}

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string file, const std::string& name) {
  const SentencePieceTail tail = check_sentencepiece_file(file, name);
  return std::make_unique<SentencePiece>(std::move(file), tail, name);
}

std::unique_ptr<Tokenizer> import_sentencepiece(std::string file, const std::string& name, bool lowercase) {
  if (has_tail(file)) return parse_sentencepiece(std::move(file), name);
  const SentencePieceTail tail{.kind = kind_of_sentencepiece(file, name), .lowercase = lowercase};
  return parse_sentencepiece(with_tail(std::move(file), tail), name);
}

}  // namespace heed::text
