// SPDX-License-Identifier: Apache-2.0
// fixed seed: trainings that have to succeed in few steps.
#include "heed/train/trainer.h"

#include <gtest/gtest.h>

#include "heed/train/testing.h"

namespace heed::train {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;

TEST(LearningRate, RisesThenFalls) {
  RateOptions o{.rate = 0.5, .warmup = 10, .schedule = Schedule::inverse_sqrt};
  EXPECT_DOUBLE_EQ(learning_rate(o, 1, 100), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(o, 9, 100), 0.45);
  EXPECT_DOUBLE_EQ(learning_rate(o, 10, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 40, 100), 0.25);
  o.schedule = Schedule::constant;
  EXPECT_DOUBLE_EQ(learning_rate(o, 5, 100), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000, 100), 0.5);
  o.schedule = Schedule::cosine;
  EXPECT_DOUBLE_EQ(learning_rate(o, 10, 110), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 60, 110), 0.5 * 0.55) << "half way from 1 to a tenth";
  EXPECT_DOUBLE_EQ(learning_rate(o, 110, 110), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(o, 500, 110), 0.05) << "and stays there";
  o.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(o, 1, 1), 0.5) << "no warm-up";
}

// A trainer, and all that it borrows.
struct Training {
  explicit Training(const TrainOptions& options, int threads = 1)
      : parallel(threads), optimizer(model->parameters()), trainer(*model, optimizer, data, options, parallel) {}

  std::vector<double> values() const { return model->parameters().values().to_doubles(); }
  Evaluation evaluated() {
    const decode::Engine engine(data::TextModel(model, data::Tokenizers::shared(tokenizer)), parallel);
    const evaluate::TestSet set(corpus, data::Tokenizers::shared(tokenizer), models::Task::translate, 32);
    return evaluation_of(evaluate::scores_of(evaluate::judge(engine, set, {.translate = false}), corpus));
  }
  double train(int64_t steps) {
    double last = 0;
    for (int64_t i = 0; i < steps; ++i) last = trainer.step().loss;
    return last;
  }

  text::Corpus corpus = testing::letters(60, 1);
  std::shared_ptr<const text::Tokenizer> tokenizer = text::train_tokenizer(testing::lines_of(corpus), {});
  data::Batches data{corpus, *tokenizer, *tokenizer, {.tokens = 64, .max_length = 32}};
  std::shared_ptr<models::Model> model = models::make_model(testing::small_model(tokenizer->size()), 1);
  Parallel parallel;
  AdamW optimizer;
  Trainer trainer;
};

TrainOptions short_options() {
  TrainOptions o;
  o.steps = 100, o.warmup = 5, o.accumulate = 2;
  return o;
}

TEST(TrainerTest, Learns) {
  TrainOptions o = short_options();
  o.rate = 1e-2, o.smoothing = 0;
  Training training(o);
  const Evaluation before = training.evaluated();
  training.train(100);
  const Evaluation after = training.evaluated();
  EXPECT_LT(after.loss, before.loss / 2);
  EXPECT_GT(after.accuracy, 2 * before.accuracy);
}

// One batch of a step is in memory at a time, so that any number of them can be accumulated.
TEST(TrainerTest, AStepCanBeCancelledBetweenItsBatches) {
  struct Counted final : data::BatchSource {
    explicit Counted(const data::BatchSource& of) : source(of) {}
    int64_t size() const override { return source.size(); }
    data::Batch at(int64_t epoch, int64_t n) const override {
      if (++made == cancel_at) cancel.request();
      return source.at(epoch, n);
    }
    const data::BatchSource& source;
    mutable Cancel cancel;
    mutable int64_t made = 0;
    int64_t cancel_at = 0;
  };
  TrainOptions o = short_options();
  o.accumulate = 3;
  Training whole(o), cancelled(o);
  for (const int64_t batch : {2, 5}) {  // while it counts, and while it learns
    Counted source(cancelled.data);
    source.cancel_at = batch;
    AdamW optimizer(cancelled.model->parameters());
    Trainer trainer(*cancelled.model, optimizer, source, o, cancelled.parallel);
    EXPECT_THROW(trainer.step(&source.cancel), Cancelled);
    EXPECT_EQ(source.made, batch);
    EXPECT_EQ(trainer.steps_done(), 0);
    for (const float gradient : cancelled.model->parameters().gradients().span<float>()) ASSERT_EQ(gradient, 0);
  }
  whole.train(2), cancelled.train(2);
  EXPECT_EQ(cancelled.values(), whole.values());
  o.accumulate = 1'000'000'000;
  EXPECT_EQ(error_of([&] { Training training(o); }),
            "train: accumulate is 1000000000, expected an integer in [1, 10000]");
}

// Dropout, two batches a step and the order of an epoch all go on where they were.
TEST(TrainerTest, GoesOnToTheSameBits) {
  const TemporaryFolder folder;
  Training whole(short_options());
  whole.train(23);
  for (const int64_t stop : {0, 1, 7, 22}) {
    Training first(short_options()), second(short_options());
    first.train(stop);
    first.trainer.save(folder.file("checkpoint"), {{"mine", "kept"}});
    EXPECT_EQ(second.trainer.restore(folder.file("checkpoint")).at("mine"), "kept");
    EXPECT_EQ(second.trainer.steps_done(), stop);
    second.train(23 - stop);
    EXPECT_EQ(second.values(), whole.values()) << "stopped after " << stop;
  }
}

TEST(TrainerTest, ThreadsAndLookingDoNotMatter) {
  Training one(short_options(), 1), two(short_options(), 2);
  for (int i = 0; i < 6; ++i) {
    one.train(1), two.train(1);
    one.evaluated();
  }
  EXPECT_EQ(one.values(), two.values());
}

TEST(TrainerTest, ALossThatIsNoNumberStopsBeforeItSpoilsTheModel) {
  TrainOptions o = short_options();
  o.rate = 1e30, o.warmup = 0;
  Training training(o);
  std::vector<double> before = training.values();
  std::string error = "no error";
  for (int i = 0; i < 10 && error == "no error"; ++i) {
    before = training.values();
    error = error_of([&] { training.train(1); });
  }
  EXPECT_NE(error.find("expected finite numbers; try a lower rate"), std::string::npos) << error;
  EXPECT_EQ(error.substr(0, 5), "step ");
  EXPECT_EQ(training.values(), before);
}

TEST(TrainerTest, NeedsAModelWithGradients) {
  Training small(short_options());
  const auto model = models::make_unfilled_model(small.model->options());
  EXPECT_EQ(error_of([&] { AdamW optimizer(model->parameters()); }),
            "optimizer: the parameters have no gradients, expected a model that was made to be trained");
}

TEST(TrainerTest, RejectsTheCheckpointOfAnotherModel) {
  const TemporaryFolder folder;
  Training small(short_options());
  small.trainer.save(folder.file("small"));
  models::ModelOptions other = testing::small_model(small.tokenizer->size());
  other.as<models::TransformerOptions>().width = 32;
  const auto model = models::make_model(other, 1);
  AdamW optimizer(model->parameters());
  Trainer trainer(*model, optimizer, small.data, short_options(), small.parallel);
  const std::string error = error_of([&] { trainer.restore(folder.file("small")); });
  EXPECT_TRUE(error.starts_with(folder.file("small") + ": 'values' has ")) << error;
  models::save_parameters(small.model->parameters(), folder.file("model"));
  EXPECT_EQ(
      error_of([&] { trainer.restore(folder.file("model")); }),
      folder.file("model") + ": metadata 'step' is missing or no number, expected a checkpoint of a training run");
}

// Batches that are made as they are asked for: any source will do.
TEST(TrainerTest, LearnsFromAnySourceOfBatches) {
  struct Copies final : data::BatchSource {
    int64_t size() const override { return kEndless; }
    data::Batch at(int64_t epoch, int64_t n) const override {
      EXPECT_EQ(epoch, 0);
      Rng rng(static_cast<uint64_t>(n));
      std::vector<data::TokenPair> pairs(8);
      std::vector<size_t> all;
      for (data::TokenPair& pair : pairs) {
        for (int i = 0; i < 3; ++i) pair.source.push_back(4 + static_cast<int32_t>(rng.below(6)));
        pair.target = pair.source;
        all.push_back(all.size());
      }
      return data::pair_batch(pairs, all);
    }
  } source;
  const auto model = models::make_model(testing::small_model(10), 1);
  AdamW optimizer(model->parameters());
  Parallel parallel(1);
  Trainer trainer(*model, optimizer, source, {.rate = 1e-2, .warmup = 5, .smoothing = 0}, parallel);
  const double first = trainer.step().loss;
  double last = first;
  for (int i = 0; i < 150; ++i) last = trainer.step().loss;
  EXPECT_LT(last, first / 2);
}

TEST(TrainerTest, ACheckpointKnowsItsOptimizer) {
  const TemporaryFolder folder;
  Training training(short_options());
  training.train(2);
  training.trainer.save(folder.file("adamw"));
  Sgd sgd(training.model->parameters(), {.momentum = 0.9});
  Trainer other(*training.model, sgd, training.data, short_options(), training.parallel);
  EXPECT_EQ(error_of([&] { other.restore(folder.file("adamw")); }),
            folder.file("adamw") + ": is of optimizer 'adamw', expected 'sgd'");
  other.step();
  other.save(folder.file("sgd"));
  const std::vector<double> values = training.values();
  other.step();
  other.restore(folder.file("sgd"));
  EXPECT_EQ(training.values(), values);
}

}  // namespace
}  // namespace heed::train
