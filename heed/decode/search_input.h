// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a search is given, read and checked: rows, prefixes, phrases and lengths. Not here: the search itself
// (search.cc). Not for users of search.h.
#include <cstdint>

#include "heed/decode/search.h"
#include "heed/tensor/tensor.h"

namespace heed::decode {

// All checks throw Error, with what came and what was expected.
void check_options(const SearchOptions&);
void check_phrases(const SearchInput&, const SearchOptions&);
void check_prefix(const SearchInput&, int64_t max_length);

int64_t sentences_of(const SearchInput&);
int64_t forced_by(const SearchInput&);  // tokens of the prefix
// The begin and the prefix of each row.
Tensor first_tokens(const SearchInput&);
// How many tokens may follow the prefix of a row: by its own source alone. Throws Error where required phrases are
// longer.
int64_t limit_of(const SearchInput&, int64_t row, const SearchOptions&, int64_t max_length);

}  // namespace heed::decode
