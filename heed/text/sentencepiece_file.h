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

// Whether the file ends with a tail whose hash is right.
bool has_tail(std::string_view file);
// Of a model as SentencePiece has written it, anybody's. Throws Error where it is no model, or one of another kind;
// `name` is what messages call the file.
TokenizerKind kind_of_sentencepiece(std::string_view model, const std::string& name);

// The tail of a file, after all of it has been found sound: pieces that are distinct UTF-8 with finite scores, one of
// them for the unknown, and a table that normalises text, where there is one, that leads nowhere outside of itself.
// Throws Error.
SentencePieceTail check_sentencepiece_file(std::string_view file, const std::string& name);

}  // namespace heed::text
