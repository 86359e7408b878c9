// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/sha256.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace heed::shard {
namespace {

// The examples of FIPS 180-4 and of NIST's page on them.
TEST(Sha256, GivesTheSumsOfTheStandard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Also around the sizes at which the padding needs another block.
RC_GTEST_PROP(Sha256, DoesNotDependOnHowTheBytesCome, ()) {
  const auto text = *rc::gen::container<std::string>(*rc::gen::inRange(0, 200), rc::gen::arbitrary<char>());
  Sha256 sum;
  for (std::string_view left = text; !left.empty();) {
    const size_t some = *rc::gen::inRange<size_t>(1, left.size() + 1);
    sum.add(left.substr(0, some));
    left.remove_prefix(some);
  }
  RC_ASSERT(sum.hex() == sha256_of(text));
}

}  // namespace
}  // namespace heed::shard
