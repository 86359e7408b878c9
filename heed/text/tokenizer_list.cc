// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer_list.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "heed/base/file.h"
#include "heed/text/tokenizer_pieces.h"
#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

constexpr std::array<std::string_view, 4> kSpecial = {"<pad>", "<s>", "</s>", "<unk>"};

std::vector<std::string> split(TokenizerKind kind, std::string_view text) {
  return kind == TokenizerKind::words ? split_words(text) : split_characters(text);
}

std::string_view name_of(TokenizerKind kind) { return kind == TokenizerKind::words ? "words" : "characters"; }

class ListTokenizer final : public Tokenizer {
 public:
  // Pieces without the special ones, no two the same.
  ListTokenizer(TokenizerKind kind, bool lowercase, std::span<const std::string> pieces)
      : kind_(kind), lowercase_(lowercase), pieces_(kSpecial.begin(), kSpecial.end()) {
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    for (size_t id = kSpecial.size(); id < pieces_.size(); ++id) ids_.emplace(pieces_[id], static_cast<int32_t>(id));
  }

  TokenizerKind kind() const override { return kind_; }
  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (const std::string& piece : split(kind_, prepared(text, lowercase_))) {
      const auto found = ids_.find(piece);
      ids.push_back(found == ids_.end() ? kUnknown : found->second);
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::vector<std::string_view> pieces;
    for (const int32_t id : ids) {
      check_id(id, size());
      // An unknown word is taken to stand apart.
      if (id == kUnknown && kind_ == TokenizerKind::words) {
        pieces.push_back("\u2581<unk>");
      } else if (id >= kUnknown) {
        pieces.push_back(pieces_[static_cast<size_t>(id)]);
      }
    }
    return kind_ == TokenizerKind::words ? join_words(pieces) : join_characters(pieces);
  }

  std::vector<std::string> surface(std::string_view text) const override {
    std::vector<std::string> result;
    for (const std::string_view piece : split(kind_, prepared(text, false))) {  // small letters change no boundary
      result.push_back(kind_ == TokenizerKind::words ? join_words({&piece, 1}) : join_characters({&piece, 1}));
    }
    return result;
  }

  std::string piece(int32_t id) const override {
    check_id(id, size());
    return pieces_[static_cast<size_t>(id)];
  }

  void save(const std::string& path) const override {
    std::string file(kListTokenizer);
    file += std::string(name_of(kind_)) + " 1\nlowercase " + (lowercase_ ? "yes" : "no") + "\npieces " +
            std::to_string(pieces_.size()) + "\n";
    for (const std::string& piece : pieces_) file += piece + "\n";
    write_file_atomically(path, std::as_bytes(std::span(file)));
  }

 private:
  TokenizerKind kind_;
  bool lowercase_;
  std::vector<std::string> pieces_;                         // all, by id
  std::unordered_map<std::string_view, int32_t> ids_ = {};  // of what text may hold
};

// Lines of a file one after the other, for messages with their number.
class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  bool done() const { return rest_.empty(); }
  int64_t number() const { return number_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(name_ + ":" + std::to_string(number_) + ": " + what);
  }
  std::string_view next(const std::string& expected) {
    ++number_;
    const size_t end = rest_.find('\n');
    if (end == rest_.npos) fail("the file ends here, expected " + expected);
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

 private:
  std::string_view rest_;
  const std::string& name_;
  int64_t number_ = 0;
};

int64_t parse_count(Lines& lines) {
  constexpr std::string_view kKey = "pieces ";
  const std::string_view line = lines.next("'pieces N'");
  int64_t count = 0;
  const char* const end = line.data() + line.size();
  if (!line.starts_with(kKey) || std::from_chars(line.data() + kKey.size(), end, count).ptr != end ||
      count <= static_cast<int64_t>(kSpecial.size())) {
    lines.fail("expected 'pieces N' with N above 4");
  }
  return count;
}

void check_piece(const Lines& lines, std::string_view piece) {
  if (piece.empty()) lines.fail("is empty, expected a piece");
  if (find_invalid_utf8(piece) != piece.npos) lines.fail("is no UTF-8");
  for (size_t position = 0; position < piece.size();) {
    if (is_space(next_character(piece, position))) lines.fail("has a space, expected a piece without");
  }
}

}  // namespace

std::unique_ptr<Tokenizer> train_list_tokenizer(std::span<const std::string> lines, const TokenizerOptions& options) {
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& line : lines) {
    for (std::string& piece : split(options.kind, prepared(line, options.lowercase))) ++counts[std::move(piece)];
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const size_t size = std::min(sorted.size(), static_cast<size_t>(options.vocabulary) - kSpecial.size());
  std::vector<std::string> pieces(size);
  for (size_t i = 0; i < size; ++i) pieces[i] = std::move(sorted[i].first);
  return std::make_unique<ListTokenizer>(options.kind, options.lowercase, pieces);
}

std::unique_ptr<Tokenizer> parse_list_tokenizer(std::string_view file, const std::string& name) {
  Lines lines(file, name);
  const std::string_view first = lines.next("'heed tokenizer words 1'");
  const bool words = first == "heed tokenizer words 1";
  if (!words && first != "heed tokenizer characters 1") {
    lines.fail("expected 'heed tokenizer words 1' or 'heed tokenizer characters 1'");
  }
  const std::string_view lowercase = lines.next("'lowercase yes' or 'lowercase no'");
  if (lowercase != "lowercase yes" && lowercase != "lowercase no") {
    lines.fail("expected 'lowercase yes' or 'lowercase no'");
  }
  const int64_t count = parse_count(lines);
  const int64_t before = lines.number();
  std::vector<std::string> pieces;
  std::unordered_map<std::string_view, int64_t> seen;
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view piece = lines.next(std::to_string(count) + " pieces, found " + std::to_string(i));
    check_piece(lines, piece);
    const auto [found, is_new] = seen.emplace(piece, lines.number());
    if (!is_new) lines.fail("has the same piece as line " + std::to_string(found->second));
    const auto id = static_cast<size_t>(lines.number() - before - 1);
    if (id >= kSpecial.size()) {
      pieces.emplace_back(piece);
    } else if (piece != kSpecial[id]) {
      lines.fail("expected '" + std::string(kSpecial[id]) + "'");
    }
  }
  if (!lines.done()) lines.fail("more follows the last of " + std::to_string(count) + " pieces");
  return std::make_unique<ListTokenizer>(words ? TokenizerKind::words : TokenizerKind::characters,
                                         lowercase == "lowercase yes", pieces);
}

}  // namespace heed::text
