// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/sentence.h"

#include <gtest/gtest.h>

namespace heed::grammar {
namespace {

TEST(SentenceText, PrintsWhatIsKnown) {
  EXPECT_EQ(pharaoh({{0, 0, Certainty::sure}, {1, 2, Certainty::sure}, {8, 2, Certainty::possible}}), "0-0 1-2 8p2");
  EXPECT_EQ(pharaoh({}), "");
  EXPECT_EQ(to_string(std::vector<Referent>{{8, 1}, {9, 4}}), "8-1 9-4");
  EXPECT_EQ(to_string(std::vector<Tag>{Tag::det, Tag::noun, Tag::verb, Tag::punct}), "DET NOUN VERB PUNCT");
  EXPECT_EQ(name(Tag::adj), "ADJ");
  EXPECT_EQ(name(Tag::sconj), "SCONJ");
}

}  // namespace
}  // namespace heed::grammar
