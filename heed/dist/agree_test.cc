// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/agree.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/dist/testing.h"

namespace heed::dist {
namespace {

using heed::testing::error_of;

// What all ranks say of facts that one of three has differently.
std::string said(const std::vector<Fact>& facts, const std::vector<Fact>& others, int which) {
  std::string said;
  testing::run_ranks(3, [&](Communicator& communicator) {
    const std::string error = error_of([&] { agree(communicator, communicator.rank() == which ? others : facts); });
    const auto all = communicator.all_gather(error);
    EXPECT_EQ(all, std::vector<std::string>(3, all[0])) << "one error on all ranks";
    if (communicator.rank() == 0) said = error;
  });
  return said;
}

TEST(Agree, NamesWhatDiffers) {
  const std::vector<Fact> facts{{"version", "1"}, {"rate", "0.001"}, {"data", ""}};
  EXPECT_EQ(said(facts, facts, 1), "no error");
  EXPECT_EQ(said(facts, {{"version", "1"}, {"rate", "0.002"}, {"data", "x"}}, 2),
            "ranks differ: rate is '0.001' on rank 0 and '0.002' on rank 2");
  EXPECT_EQ(said(facts, {{"version", "1"}, {"rate", "0.001"}}, 1),
            "ranks differ: data is '' on rank 0 and not there on rank 1");
  EXPECT_EQ(said(facts, {{"version", "1"}, {"rate", "0.001"}, {"data", ""}, {"new", "2"}}, 1),
            "ranks differ: new is not there on rank 0 and '2' on rank 1");
  agree(*single_process(), facts);
}

}  // namespace
}  // namespace heed::dist
