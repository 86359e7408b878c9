// SPDX-License-Identifier: Apache-2.0
#include "bench/explain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/decoding.h"
#include "heed/base/testing.h"
#include "heed/models/presets.h"

namespace heed::bench {
namespace {

TEST(Spearman, IsTheCorrelationOfRanks) {
  const std::vector<double> a = {1, 2, 3, 4}, far = {-7, 0, 0.5, 900}, back = {4, 3, 2, 1}, same = {5, 5, 5, 5};
  EXPECT_DOUBLE_EQ(spearman(a, far), 1);
  EXPECT_DOUBLE_EQ(spearman(a, back), -1);
  EXPECT_DOUBLE_EQ(spearman(a, same), 0);
  // Ranks 0 1 2 3 and 0 1.5 1.5 3: the sums of squares are 5 and 4.5, that of products 4.5.
  EXPECT_DOUBLE_EQ(spearman(a, std::vector<double>{1, 2, 2, 3}), 4.5 / std::sqrt(5 * 4.5));
}

decode::Engine random_engine(const std::string& preset) {
  return decode::Engine(data::TextModel(models::make_model(
      models::model_options(models::preset_named(preset), {.source = 30}), heed::testing::seeded(1))));
}

TEST(BenchExplain, MeasuresEveryMethodBesideAPlainPass) {
  std::vector<data::TokenPair> pairs;
  for (const auto& ids : random_ids(3, 4, 6, 30)) pairs.push_back({ids, ids});
  const ExplainReport report = measure_explain(random_engine("transformer-tiny"), pairs, {.steps = 2});
  EXPECT_EQ(report.texts, 3);
  EXPECT_GT(report.by_chance, 1.0 / 6 - 1e-9);
  ASSERT_EQ(report.rows.size(), 10u);
  for (const ExplainFigures& row : report.rows) {
    EXPECT_GT(row.ratio, 0) << row.method;
    if (row.spearman) {
      EXPECT_LE(std::abs(*row.spearman), 1 + 1e-9) << row.method;
    }
  }
  EXPECT_EQ(report.rows.back().method, "leave-out");
  EXPECT_NEAR(*report.rows.back().spearman, 1, 1e-12) << "with itself";
  EXPECT_EQ(report.rows.back().same_first, 1);
  EXPECT_FALSE(report.rows[4].spearman) << "heads have no number for a token";
}

TEST(BenchExplain, OfALanguageModelMeasuresTimesAlone) {
  std::vector<data::TokenPair> texts;
  for (const auto& ids : random_ids(1, 5, 5, 30)) texts.push_back({{}, ids});
  const ExplainReport report = measure_explain(random_engine("lm-small"), texts, {.steps = 1});
  EXPECT_EQ(report.tokens, 5);
  ASSERT_EQ(report.rows.size(), 9u);
  for (const ExplainFigures& row : report.rows) EXPECT_FALSE(row.spearman) << row.method;
}

}  // namespace
}  // namespace heed::bench
