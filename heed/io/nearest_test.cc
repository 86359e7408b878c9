// SPDX-License-Identifier: Apache-2.0
#include "heed/io/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace heed::io {
namespace {

std::string nearest_to(std::string_view name) {
  const std::vector<std::string> known = {"heads", "layers", "dropout", "d_model", "kv_heads"};
  return nearest(name, known).value_or("none");
}

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_to("heads"), "heads");
  EXPECT_EQ(nearest_to("head"), "heads") << "one letter too few";
  EXPECT_EQ(nearest_to("headss"), "heads") << "one too many";
  EXPECT_EQ(nearest_to("hxads"), "heads") << "one replaced";
  EXPECT_EQ(nearest_to("haeds"), "heads") << "two swapped";
  EXPECT_EQ(nearest_to("dmodel"), "d_model");
  EXPECT_EQ(nearest_to("kvheads"), "kv_heads") << "nearer than heads";
}

TEST(Nearest, FindsNothingThatIsFar) {
  EXPECT_EQ(nearest_to("vocabulary"), "none");
  EXPECT_EQ(nearest_to(""), "none");
  EXPECT_EQ(nearest_to("hea"), "none") << "two of five letters are missing";
  EXPECT_EQ(nearest_to(std::string(1'000'000, 'h')), "none");
  EXPECT_EQ(nearest("heads", {}), std::nullopt);
}

}  // namespace
}  // namespace heed::io
