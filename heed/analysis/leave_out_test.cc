// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/leave_out.h"

#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;
using Words = std::vector<std::vector<int64_t>>;

class LeaveOutTest : public AnalysisTest {
 protected:
  double value(const models::Model& model, const data::TokenPair& pair, const Target& target) {
    return Question(model, pair, target).measure(pass());
  }
  std::vector<std::optional<double>> changes(const models::Model& model, const data::TokenPair& pair,
                                             const Target& target, const Words& words) {
    return leave_out(pass(), Question(model, pair, target), words);
  }
};

TEST_F(LeaveOutTest, OfATranslatorReadsTheSourceWithoutTheWord) {
  const auto model = drawn(transformer(Kind::encoder_decoder), 1);
  for (const Target& target : {Target{}, Target{.position = 1, .against = 3}}) {
    const auto came = changes(*model, {{4, 7, 3, 6}, {5, 8}}, target, {{0}, {1, 2}, {0, 1, 2, 3}});
    const double whole = value(*model, {{4, 7, 3, 6}, {5, 8}}, target);
    ASSERT_EQ(came.size(), 3u);
    EXPECT_EQ(came[0], value(*model, {{7, 3, 6}, {5, 8}}, target) - whole);
    EXPECT_EQ(came[1], value(*model, {{4, 6}, {5, 8}}, target) - whole);
    EXPECT_FALSE(came[2]) << "nothing is left";
  }
}

TEST_F(LeaveOutTest, OfATaggerAsksForTheSameTag) {
  const auto model = drawn(transformer(Kind::encoder), 2);
  const auto came = changes(*model, {{4, 7, 3, 6}, {1, 3, 0, 2}}, {.position = 2}, {{0, 1}, {2}, {3}});
  const double whole = value(*model, {{4, 7, 3, 6}, {1, 3, 0, 2}}, {.position = 2});
  EXPECT_EQ(came[0], value(*model, {{3, 6}, {0, 2}}, {.position = 0}) - whole);
  EXPECT_FALSE(came[1]) << "it is asked for";
  EXPECT_EQ(came[2], value(*model, {{4, 7, 3}, {1, 3, 0}}, {.position = 2}) - whole);
}

TEST_F(LeaveOutTest, OfALanguageModelTakesWhatCameBefore) {
  const auto model = drawn(transformer(Kind::decoder), 3);
  const auto came = changes(*model, {{}, {4, 7, 3, 6}}, {.position = 2}, {{0}, {0, 1}, {2}, {3}});
  const double whole = value(*model, {{}, {4, 7, 3, 6}}, {.position = 2});
  EXPECT_EQ(came[0], value(*model, {{}, {7, 3, 6}}, {.position = 1}) - whole);
  EXPECT_EQ(came[1], value(*model, {{}, {3, 6}}, {.position = 0}) - whole);
  EXPECT_FALSE(came[2]);
  EXPECT_FALSE(came[3]);
}

TEST_F(LeaveOutTest, SaysWhatDoesNotFit) {
  const auto model = drawn(transformer(Kind::encoder), 4);
  EXPECT_EQ(error_of([&] {
              changes(*model, {{4}, {1}}, {}, {});
            }),
            "leave out: the target is the whole output, expected a position: without a word, the output is another");
  EXPECT_EQ(error_of([&] {
              changes(*model, {{4}, {1}}, {.position = 0}, {{1}});
            }),
            "leave out: a token of a word is 1, expected 0 to 0");
}

}  // namespace
}  // namespace heed::analysis
