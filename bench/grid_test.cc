// SPDX-License-Identifier: Apache-2.0
#include "bench/grid.h"

#include <gtest/gtest.h>

#include <set>

#include "heed/base/error.h"

namespace heed::bench {
namespace {

TEST(Grid, HasEveryShapeCausalAndNotInEveryPass) {
  const std::vector<Row> rows = attention_grid();
  EXPECT_EQ(rows.size(), 9u * 2 * 3 + 2 * 5 + 5 * 3 + 4 + 2 * 8 + 4);
  std::set<std::string> names;
  for (const Row& row : rows) EXPECT_TRUE(names.insert(name(row)).second) << name(row);
  for (const char* expected :
       {"forward BHTD none 1,8,32,64", "backward BHTD causal 1,1,16384,64", "forward_backward BHTD causal 1,8,512,128",
        "decode BHTD none 1,8,1x4096,64", "forward BTHD none 1,8,512,64", "backward packed none 1,8,512,64",
        "forward BHTD none 1,8:2,512,64", "forward BHTD window128 1,8,512,64", "backward BHTD lengths 1,8,512,64",
        "forward BHTD none 1,8,512,64 alibi", "forward BHTD none 1,8,2048,64 additive",
        "backward BHTD none 1,8,512,64 bias", "decode BHTD none 1,8,1x65536,64 paged16"}) {
    EXPECT_TRUE(names.contains(expected)) << expected;
  }
}

TEST(Grid, CountsFlopsByVisibleScores) {
  EXPECT_EQ(flops(Pass::forward, Case{}), 4.0 * 8 * 512 * 512 * 64);
  EXPECT_EQ(flops(Pass::backward, Case{}), 10.0 * 8 * 512 * 512 * 64);
  EXPECT_EQ(flops(Pass::forward_backward, Case{}), 14.0 * 8 * 512 * 512 * 64);
  EXPECT_EQ(flops(Pass::decode, Case{.T = 1, .S = 4096}), 4.0 * 8 * 4096 * 64);
  const Case causal{.B = 3, .mask = MaskKind::causal};
  EXPECT_EQ(flops(Pass::forward, causal), 3 * 8 * 2.0 * 512 * 513 * 64);
  EXPECT_EQ(flops(Pass::backward, causal), 3 * 8 * 5.0 * 512 * 513 * 64);
  // 257 keys in the middle; the k-th row from either end lacks 128 - k of them.
  EXPECT_EQ(visible_scores({.mask = MaskKind::window128}), 8 * (512 * 257 - 128 * 129));
  EXPECT_EQ(visible_scores({.mask = MaskKind::lengths}), 8 * 512 * 389);
  EXPECT_EQ(visible_scores({.extra = Extra::dense}), 8 * 512 * 512);
  EXPECT_EQ(tanhs({.extra = Extra::additive}), 8 * 512 * 512 * 64);
  EXPECT_EQ(tanhs({.extra = Extra::softcap}), 0);
}

TEST(Grid, HoldsAnExtraAgainstTheSameShapeWithout) {
  const Case wide{.T = 2048, .S = 2048};
  EXPECT_EQ(plain_case({.T = 2048, .S = 2048, .extra = Extra::top8}), wide);
  EXPECT_EQ(plain_case(wide), wide);
  EXPECT_EQ(plain_case({.T = 2048, .S = 2048, .keys = DType::f16}), Case{});
  EXPECT_EQ(plain_case({.mask = MaskKind::window128}), Case{});
  const Case decode{.T = 1, .S = 4096};
  EXPECT_EQ(plain_case({.T = 1, .S = 4096, .keys = DType::bf16}), decode);
  EXPECT_EQ(plain_case({.T = 1, .S = 4096, .extra = Extra::paged16}), decode);
}

TEST(Grid, FiltersByEveryWord) {
  const std::vector<Row> rows = attention_grid();
  EXPECT_EQ(select(rows, "").size(), rows.size());
  EXPECT_EQ(select(rows, "decode").size(), 10u);
  EXPECT_EQ(select(rows, "decode bf16").size(), 2u);
  for (const Row& row : select(rows, "causal 2048")) {
    EXPECT_EQ(row.problem.mask, MaskKind::causal);
    EXPECT_EQ(row.problem.T, 2048);
  }
  EXPECT_EQ(select(rows, "causal 2048").size(), 3u);
  EXPECT_GT(select(rows, "forward none 1,8,512,64").size(), 1u);
  const std::vector<Row> one = select(rows, "forward BHTD none 1,8,512,64");
  ASSERT_EQ(one.size(), 1u) << "a whole name is that row alone";
  EXPECT_EQ(one[0].problem, Case{});
  try {
    select(rows, "causal packed");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "--filter is 'causal packed' and leaves no row, expected words of names such as "
                 "'forward BHTD none 1,8,32,64', 'forward BHTD causal 1,8,512,128', "
                 "'forward BHTD none 1,8,2048,64 additive'");
  }
}

}  // namespace
}  // namespace heed::bench
