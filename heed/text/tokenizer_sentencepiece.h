// SPDX-License-Identifier: Apache-2.0
#pragma once
// Subwords that SentencePiece learns: unigram and BPE. Not for users of tokenizer.h.
//
// The file is that of sentencepiece_file.h. Text is not normalised (no NFKC), so that it comes back as it was; a block
// in it becomes a space. Models of others may normalise, and number their pieces in another way: here ids 0 to 3 are
// what they are in all tokenizers, and the other pieces follow in their order.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "heed/text/tokenizer.h"

namespace heed::text {

std::unique_ptr<Tokenizer> train_sentencepiece(std::span<const std::string> lines, const TokenizerOptions&);
// `name` is what messages call the file.
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string file, const std::string& name);
// The same, and also a model that heed has not written.
std::unique_ptr<Tokenizer> import_sentencepiece(std::string file, const std::string& name, bool lowercase);

}  // namespace heed::text
