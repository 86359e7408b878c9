// SPDX-License-Identifier: Apache-2.0
#include "heed/data/groups.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace heed::data {
namespace {

using Groups = std::vector<std::vector<size_t>>;

TEST(GroupByLength, SortsAndCuts) {
  const std::vector<int64_t> lengths = {5, 2, 9, 2, 5, 100};
  EXPECT_EQ(group_by_length(lengths, {.rows = 2, .tokens = 50}), (Groups{{1, 3}, {0, 4}, {2}, {5}}));
  EXPECT_EQ(group_by_length(lengths, {.rows = 9, .tokens = 20}), (Groups{{1, 3, 0, 4}, {2}, {5}}));
  EXPECT_EQ(group_by_length(lengths, {.exact = true}), (Groups{{1, 3}, {0, 4}, {2}, {5}}));
  EXPECT_TRUE(group_by_length({}).empty());
}

RC_GTEST_PROP(GroupByLength, HasEachOnceWithinTheLimits, ()) {
  const auto lengths = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 60));
  const GroupOptions options{.rows = *rc::gen::inRange<int64_t>(1, 9), .tokens = *rc::gen::inRange<int64_t>(1, 200)};
  std::set<size_t> seen;
  int64_t last = 0;
  for (const std::vector<size_t>& group : group_by_length(lengths, options)) {
    RC_ASSERT(!group.empty());
    RC_ASSERT(std::ssize(group) <= options.rows);
    for (const size_t item : group) {
      RC_ASSERT(lengths[item] >= last);
      last = lengths[item];
      RC_ASSERT(seen.insert(item).second);
    }
    RC_ASSERT(group.size() == 1 || std::ssize(group) * last <= options.tokens);
  }
  RC_ASSERT(seen.size() == lengths.size());
}

}  // namespace
}  // namespace heed::data
