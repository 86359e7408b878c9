// SPDX-License-Identifier: Apache-2.0
// Tokenizer files of every kind: lists of words and of characters, and SentencePiece's models.
#include "heed/text/tokenizer.h"

#include <algorithm>
#include <string>

#include "fuzz/check.h"
#include "heed/text/sentencepiece_file.h"
#include "heed/text/tokenizer_list.h"
#include "heed/text/tokenizer_sentencepiece.h"

namespace heed::fuzz {
namespace {

constexpr std::string_view kText = "The \u00e1nimal didn't\u2581 cross, 3.5 <unk>!";

// What a model needs of its tokenizer: ids below its size, a piece for each of them, a way back.
void use(const text::Tokenizer& tokenizer) {
  require(tokenizer.size() > text::kUnknown, "there are pieces beside the special ones, or at least these");
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    require(!tokenizer.piece(id).empty(), "every id has a piece");
    tokenizer.decode({&id, 1});
  }
  const std::vector<int32_t> ids = tokenizer.encode(kText);
  require(!ids.empty(), "text has tokens");
  for (const int32_t id : ids) require(id >= 0 && id < tokenizer.size(), "ids are below the size");
  require(!tokenizer.decode(ids).empty(), "tokens of text are text");
  require(tokenizer.surface(kText).size() == ids.size(), "every token stands for a part of the text");
}

// As load_tokenizer() does with the bytes of a file.
void read(std::span<const std::byte> file) {
  const std::string_view bytes = text_of(file);
  use(bytes.starts_with(text::kListTokenizer) ? *text::parse_list_tokenizer(bytes, "input")
                                              : *text::parse_sentencepiece(std::string(bytes), "input"));
}

// The same model with the hash that belongs to it, which no change leaves: the last eight bytes.
std::string hashed(std::string_view file) {
  constexpr size_t kHashBytes = 8;
  return text::with_hash(std::string(file.substr(0, file.size() - std::min(file.size(), kHashBytes))));
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  heed::fuzz::try_to_read(input, heed::fuzz::read);
  if (!input.starts_with(heed::text::kListTokenizer)) {
    heed::fuzz::try_to_read(heed::fuzz::hashed(input), heed::fuzz::read);
  }
  return 0;
}
