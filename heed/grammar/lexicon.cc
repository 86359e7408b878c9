// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/lexicon.h"

#include <string>

#include "heed/base/error.h"

namespace heed::grammar {

namespace {

template <typename Entry>
const Entry& find(std::span<const Entry> table, std::string_view english, const std::string& what) {
  for (const Entry& entry : table) {
    if (entry.english == english) return entry;
  }
  throw Error("grammar: no " + what + " '" + std::string(english) + "', expected an English word of the lexicon");
}

}  // namespace

const Noun& noun(std::string_view english) { return find(nouns(), english, "noun"); }
const Adjective& adjective(std::string_view english) { return find(adjectives(), english, "adjective"); }
const Verb& verb(std::string_view english) { return find(verbs(), english, "verb"); }

}  // namespace heed::grammar
