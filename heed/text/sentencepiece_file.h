// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of a tokenizer file that SentencePiece reads, checked before it does: it ends the program, throws or goes
// on with any bytes where a model is not as it should be. Not for users of tokenizer.h; SentencePiece itself is not
// known here.
//
// The file is SentencePiece's own model, and its tools can read it; what it does not know stands behind it in three
// fields of the numbers that protobuf leaves to others: kind, lowercase, and a hash of all bytes before it. The hash is
// for damage, not for malice: anybody can compute it.
#include <string>
#include <string_view>

#include "heed/text/tokenizer.h"

namespace heed::text {

struct SentencePieceTail {
  TokenizerKind kind{TokenizerKind::unigram};  // or bpe
  bool lowercase{false};
};

// A model as SentencePiece has written it, with the tail behind it.
std::string with_tail(std::string model, const SentencePieceTail&);
// The last step of it: all that the hash is of, with the hash.
std::string with_hash(std::string bytes);

// The tail of a file, after all of it has been found sound: pieces that are distinct UTF-8 with finite scores, the
// special ones first, no tables that normalise text. Throws Error; `name` is what messages call the file.
SentencePieceTail check_sentencepiece_file(std::string_view file, const std::string& name);

}  // namespace heed::text
