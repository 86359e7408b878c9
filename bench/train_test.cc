// SPDX-License-Identifier: Apache-2.0
#include "bench/train.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heed/base/testing.h"
#include "heed/folder/model_folder.h"
#include "heed/models/presets.h"

namespace heed::bench {
namespace {

using heed::testing::error_of;

TEST(TrainingBatch, HasRowsOfOneLengthAndNoPadding) {
  const TrainBenchOptions options{.vocabulary = 50, .batch_tokens = 50, .length = 8};
  const data::Batch batch = training_batch(options);
  EXPECT_EQ(batch.rows, 6);
  EXPECT_EQ(batch.source_length, 8);
  EXPECT_EQ(batch.target_length, 8);
  EXPECT_EQ(batch.target_tokens, 48);
  EXPECT_EQ(batch.source_lengths, std::vector<int64_t>(6, 8));
  EXPECT_EQ(batch.source, training_batch(options).source) << "the same in every run";
  EXPECT_NE(batch.source, batch.target_out);
  EXPECT_EQ(error_of([] { training_batch({.batch_tokens = 20, .length = 32}); }),
            "--batch-tokens is 20, expected 32 (--length) or more");
}

// Two flops of every element of a matrix for each token that goes through it, and attention's for each pair of tokens
// that see each other.
double expected_flops(const models::ModelOptions& options, double rows, double S, double T) {
  const auto* transformer = std::get_if<models::TransformerOptions>(&options.family);
  double forward = 0;
  for (const models::ParameterShape& parameter : models::parameter_shapes(options)) {
    const std::string& name = parameter.name;
    const bool looked_up = name == "embedding.weight" && !transformer;  // a Transformer's is its output, too
    if (parameter.shape.rank() != 2 || looked_up || name == "cross.w") continue;
    const bool of_source = name.starts_with("encoder") || name.find("cross.k") != std::string::npos ||
                           name.find("cross.v") != std::string::npos;
    forward += 2 * rows * (of_source ? S : T) * static_cast<double>(parameter.shape[0] * parameter.shape[1]);
  }
  if (transformer) {
    const double layers = static_cast<double>(transformer->encoder_layers);
    const double width = static_cast<double>(transformer->width);
    return 3 * (forward + layers * 4 * width * rows * (S * S + T * (T + 1) / 2 + T * S));
  }
  const auto& rnn = std::get<models::RnnSeq2SeqOptions>(options.family);
  const double width = static_cast<double>(rnn.width);
  return 3 * (forward + (rnn.query == models::Query::none ? 0 : 4 * width * rows * T * S));
}

TEST(TrainingFlops, AreThoseOfTheMatricesThatTokensGoThrough) {
  const std::vector<data::TokenPair> pairs = {{{4, 5, 6, 7}, {4, 5}}, {{7, 6, 5, 4}, {6, 7}}, {{4, 4, 4, 4}, {5, 5}}};
  const std::vector<size_t> items = {0, 1, 2};
  const data::Batch batch = data::pair_batch(pairs, items);
  const auto of = [](const char* preset) {
    return models::model_options(models::preset_named(preset), {.source = 50});
  };
  std::vector<models::ModelOptions> all;
  for (const char* preset : {"transformer-tiny", "transformer-base", "rnn", "rnn-attention", "rnn-dot"}) {
    all.push_back(of(preset));
  }
  models::RnnSeq2SeqOptions other = of("rnn-dot").as<models::RnnSeq2SeqOptions>();
  other.cell = nn::Cell::lstm, other.layers = 2, other.bidirectional = false, other.score = nn::Score::bilinear;
  all.emplace_back(other);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<double> flops = training_flops(all[i], batch);
    ASSERT_TRUE(flops) << i;
    EXPECT_EQ(*flops, expected_flops(all[i], 3, 5, 3)) << i;
  }
  EXPECT_FALSE(training_flops(of("rnn-self-attention"), batch)) << "not counted";
}

TEST(BenchTrain, TimesStepsAndSavesTheModelBeforeThem) {
  const std::string folder = ::testing::TempDir() + "heed_bench_train";
  TrainBenchOptions options{
      .vocabulary = 50, .batch_tokens = 64, .length = 8, .rounds = 2, .dropout = 0, .save = folder};
  const data::Batch batch = training_batch(options);
  const TrainFigures f = measure_training("transformer-tiny", batch, options);
  EXPECT_EQ(f.tokens, 64);
  EXPECT_EQ(f.rates.rounds, 2);
  EXPECT_GT(f.ms, 0);
  EXPECT_GT(f.rates.percent_of_peak, 0);
  EXPECT_DOUBLE_EQ(f.tokens_per_second(), 64e3 / f.ms);
  EXPECT_GT(f.first_loss, 0);
  const auto saved = folder::open_model(folder, DType::f32, /*gradients=*/true);
  EXPECT_EQ(saved->parameters().count(), f.parameters);
  // What the folder holds is what the first step began from: a run from it begins with the same loss.
  options.save.clear();
  EXPECT_EQ(measure_training("transformer-tiny", batch, options).first_loss, f.first_loss);
  std::filesystem::remove_all(folder);
}

TEST(BenchTrain, ThrowsForWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { bench_train({.presets = {"lm-small"}}); }),
            "--preset has 'lm-small', expected models that translate, such as transformer-small");
  EXPECT_EQ(error_of([] { bench_train({.presets = {}}); }),
            "--preset is empty, expected names such as transformer-small");
  EXPECT_EQ(error_of([] { bench_train({.save = "somewhere"}); }), "--save came with 3 presets, expected one");
}

}  // namespace
}  // namespace heed::bench
