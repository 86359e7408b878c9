// SPDX-License-Identifier: Apache-2.0
// The benchmarks of whole models: what is given to them, and what is counted.
#include "bench/decoding.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/generate.h"
#include "bench/translate.h"
#include "heed/base/testing.h"

namespace heed::bench {
namespace {

using heed::testing::error_of;

TEST(RandomIds, HaveTheirLengthsAndNoSpecialTokens) {
  const Ids all = random_ids(50, 2, 5, 9);
  ASSERT_EQ(all.size(), 50u);
  EXPECT_EQ(all, random_ids(50, 2, 5, 9)) << "the same in every run";
  for (const std::vector<int32_t>& ids : all) {
    EXPECT_GE(ids.size(), 2u);
    EXPECT_LE(ids.size(), 5u);
    for (const int32_t id : ids) EXPECT_TRUE(id >= 4 && id < 9) << id;
  }
  EXPECT_EQ(error_of([] { random_ids(1, 1, 1, 4); }),
            "the vocabulary has 4 tokens, expected 5 or more: the first 4 are special");
}

TEST(OpenSubject, TakesOnlyAModelOfTheTask) {
  const SubjectOptions lm{.preset = "lm-small", .vocabulary = 50};
  EXPECT_NE(error_of([&] { open_subject(lm, models::Task::translate, 1); }), "");
  const Subject subject = open_subject(lm, models::Task::language, 1);
  EXPECT_FALSE(subject.open_ms) << "nothing was opened";
  EXPECT_EQ(subject.name, "lm-small with random parameters, 50 tokens");
  EXPECT_EQ(facts_of(subject)["threads"], 1);
}

TEST(OpenSubject, SavesARandomModel) {
  const std::string folder = ::testing::TempDir() + "heed_bench_subject";
  const SubjectOptions options{.preset = "transformer-tiny", .vocabulary = 50, .save = folder};
  const TranslateBenchOptions call{.beams = {1}, .batches = {2}, .sentences = 3, .rounds = 1, .length = 5};
  const Subject random = open_subject(options, models::Task::translate, 1);
  const Subject saved = open_subject({.model = folder}, models::Task::translate, 1);
  const Ids sources = translate_sources(saved.engine, call);
  EXPECT_EQ(measure_translate(decode::Translator(random.engine), sources, call)[0].outputs,
            measure_translate(decode::Translator(saved.engine), sources, call)[0].outputs);
  EXPECT_EQ(error_of([&] { open_subject({.model = folder, .save = folder}, models::Task::translate, 1); }),
            "--save came with --model, expected it for random parameters alone");
  std::filesystem::remove_all(folder);
}

TEST(BenchTranslate, CountsTheTokensOfForcedOutputs) {
  TranslateBenchOptions options{.beams = {1, 2}, .batches = {1, 3}, .sentences = 5, .rounds = 1, .length = 6};
  options.subject = {.preset = "transformer-tiny", .vocabulary = 50};
  const Subject subject = open_subject(options.subject, models::Task::translate, 1);
  const Ids sources = translate_sources(subject.engine, options);
  ASSERT_EQ(sources.size(), 5u);
  const auto rows = measure_translate(decode::Translator(subject.engine), sources, options);
  ASSERT_EQ(rows.size(), 4u);
  for (const TranslateFigures& row : rows) {
    EXPECT_EQ(row.tokens, 5 * 6);
    EXPECT_GT(row.seconds, 0);
    EXPECT_EQ(row.outputs, rows[row.beam == 1 ? 0 : 1].outputs) << "whatever the batch";
    EXPECT_DOUBLE_EQ(row.tokens_per_second(), 30 / row.seconds);
  }
}

TEST(BenchTranslate, ReadsSourcesOfAFile) {
  TranslateBenchOptions options{.data = "/nowhere/at/all.tsv"};
  options.subject = {.preset = "transformer-tiny", .vocabulary = 50};
  const Subject subject = open_subject(options.subject, models::Task::translate, 1);
  EXPECT_NE(error_of([&] { translate_sources(subject.engine, options); }).find("/nowhere/at/all.tsv"),
            std::string::npos);
}

TEST(BenchGenerate, TimesPromptsAndSteps) {
  GenerateBenchOptions options{.lengths = {3, 20}, .batches = {1, 2}, .steps = 4, .rounds = 1};
  options.subject.vocabulary = 50;
  const Subject subject = open_subject(options.subject, models::Task::language, 1);
  const auto rows = measure_generate(subject.engine, options);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].batch, 2);
  EXPECT_EQ(rows[3].length, 20);
  for (const GenerateFigures& row : rows) {
    EXPECT_GT(row.prompt_seconds, 0);
    EXPECT_GT(row.steps_seconds, 0);
  }
  const GenerateFigures f{.batch = 2, .length = 10, .steps = 4, .prompt_seconds = 0.5, .steps_seconds = 2};
  EXPECT_EQ(f.prompt_tokens_per_second(), 40);
  EXPECT_EQ(f.steps_tokens_per_second(), 4);
  EXPECT_EQ(f.step_ms(), 500);
}

TEST(BenchGenerate, ThrowsWhereTheModelCannotTakeThePrompt) {
  GenerateBenchOptions options{.lengths = {1020}, .steps = 5};
  options.subject.vocabulary = 50;
  const Subject subject = open_subject(options.subject, models::Task::language, 1);
  EXPECT_EQ(error_of([&] { measure_generate(subject.engine, options); }),
            "--length has 1020, expected 1 to 1019: the model takes 1024 tokens, and 5 are for --steps");
}

}  // namespace
}  // namespace heed::bench
