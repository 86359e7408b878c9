// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text to token ids and back. One interface, several ways: whole words, characters, and subwords that SentencePiece
// learns (unigram or BPE). Ids 0 to 3 mean the same in all of them.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"

namespace heed::text {

inline constexpr int32_t kPad = 0, kBegin = 1, kEnd = 2, kUnknown = 3;

// The ids that are no text, by their use. heed's own tokenizers all have these.
struct SpecialTokens {
  int32_t pad{kPad}, begin{kBegin}, end{kEnd}, unknown{kUnknown};
};

// Automatic is for options alone: what suits the task, unigram unless something else is said.
enum class TokenizerKind : uint8_t { words, characters, unigram, bpe, automatic };

constexpr auto enum_names(TokenizerKind) {
  return std::to_array<EnumName<TokenizerKind>>({{"auto", TokenizerKind::automatic},
                                                 {"words", TokenizerKind::words},
                                                 {"characters", TokenizerKind::characters},
                                                 {"unigram", TokenizerKind::unigram},
                                                 {"bpe", TokenizerKind::bpe}});
}

class HEED_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind kind() const = 0;
  virtual int64_t size() const = 0;  // ids are below it
  virtual SpecialTokens special() const { return {}; }
  // Without kBegin and kEnd. What is not known becomes kUnknown.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // Ids 0 to 2 are left out; text that encode() knew comes back, up to how much space stood between words.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  // The text that each token of encode(text) stands for, as it was written, without spaces: unknown words, too.
  virtual std::vector<std::string> surface(std::string_view text) const;
  // What one id stands for, to be shown: "▁cat", "<unk>".
  virtual std::string piece(int32_t id) const = 0;
  // One file, whole or not at all.
  virtual void save(const std::string& path) const = 0;
};

struct TokenizerOptions {
  TokenizerKind kind{TokenizerKind::words};
  int64_t vocabulary{8000};  // at most, ids 0 to 3 included
  bool lowercase{false};

  static void describe(TokenizerOptions& o, auto&& field) {
    field("kind", o.kind, "how text is cut into tokens; auto: unigram, and words for a tagger");
    field("vocabulary", o.vocabulary, "tokens at most", Range::at_least(5));
    field("lowercase", o.lowercase, "capital letters are made small");
  }
};

// Learnt from lines of UTF-8; the same lines give the same tokenizer. The vocabulary is as large as the text allows,
// and no larger than the options do. Unigram and BPE have a token for each character of the lines; throws Error where
// the vocabulary is too small for that.
HEED_API std::unique_ptr<Tokenizer> train_tokenizer(std::span<const std::string> lines, const TokenizerOptions&);
HEED_API std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);
// The same, and also a SentencePiece model that somebody else has trained (unigram or BPE). Its pieces keep their
// order, but ids 0 to 3 are what they are here; the model's own normalisation stays. What is cut short or damaged in
// such a file is not always noticed: it has no hash.
HEED_API std::unique_ptr<Tokenizer> import_tokenizer(const std::string& path, bool lowercase = false);

}  // namespace heed::text
