// SPDX-License-Identifier: Apache-2.0
// Learning on several ranks, which are threads here: the same bits as on one.
// fixed seed: trainings that have to succeed in few steps.
#include <gtest/gtest.h>

#include <map>

#include "heed/dist/testing.h"
#include "heed/train/testing.h"
#include "heed/train/trainer.h"

namespace heed::train {
namespace {

using dist::testing::run_ranks, heed::testing::error_of, heed::testing::TemporaryFolder;

// What ranks have in common.
struct Source {
  text::Corpus corpus = testing::letters(60, 1);
  std::shared_ptr<const text::Tokenizer> tokenizer = text::train_tokenizer(testing::lines_of(corpus), {});
  data::Batches data{corpus, *tokenizer, *tokenizer, {.tokens = 64, .max_length = 32}};
};

struct Training {
  Training(const Source& source, const TrainOptions& options, dist::Communicator* communicator = nullptr)
      : model(models::make_model(testing::small_model(source.tokenizer->size()), 1)),
        optimizer(model->parameters()),
        trainer(*model, optimizer, source.data, options, parallel, communicator) {}
  std::vector<double> values() const { return model->parameters().values().to_doubles(); }
  double train(int64_t steps) {
    double last = 0;
    for (int64_t i = 0; i < steps; ++i) last = trainer.step().loss;
    return last;
  }

  std::shared_ptr<models::Model> model;
  Parallel parallel{1};
  AdamW optimizer;
  Trainer trainer;
};

TrainOptions options_with(SumOrder order, int64_t accumulate) {
  return {.steps = 20, .rate = 1e-2, .warmup = 5, .accumulate = accumulate, .sum_order = order};
}

// The first rank does `body`, the others follow; what each has learnt, which is the same.
std::vector<double> learnt(const Source& source, const TrainOptions& options, int ranks,
                           const std::function<void(Training&)>& body, const std::string& checkpoint = "") {
  std::vector<std::vector<double>> values(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](dist::Communicator& communicator) {
    Training training(source, options, &communicator);
    if (!checkpoint.empty()) training.trainer.restore(checkpoint);
    communicator.barrier();  // the body may save to the same file
    if (communicator.rank() == 0) {
      body(training);
      training.trainer.finish();
    } else {
      training.trainer.follow();
    }
    values[static_cast<size_t>(communicator.rank())] = training.values();
  });
  for (const std::vector<double>& one : values) EXPECT_EQ(one, values.front()) << "ranks differ";
  return values.front();
}

TEST(TrainerOnRanks, LearnsTheSameBitsOnAnyNumber) {
  const Source source;
  for (const int64_t accumulate : {4, 5}) {
    const TrainOptions options = options_with(SumOrder::tree, accumulate);
    Training alone(source, options);
    const double loss = alone.train(6);
    for (int ranks = 1; ranks <= 4; ++ranks) {
      const auto values = learnt(source, options, ranks,
                                 [&](Training& training) { EXPECT_EQ(training.train(6), loss) << ranks << " ranks"; });
      EXPECT_EQ(values, alone.values()) << ranks << " ranks, " << accumulate << " batches";
    }
  }
}

TEST(TrainerOnRanks, ATreeOfOneBatchIsTheSequence) {
  const Source source;
  TrainOptions tree = options_with(SumOrder::tree, 1), sequence = options_with(SumOrder::sequence, 1);
  Training first(source, tree), second(source, sequence);
  EXPECT_EQ(first.train(1), second.train(1));
  EXPECT_EQ(first.values(), second.values()) << "the first step draws the same dropout, later ones do not";
}

TEST(TrainerOnRanks, InAnyOrderAllRanksHaveTheSame) {
  const Source source;
  double loss = 0;
  learnt(source, options_with(SumOrder::any, 4), 3, [&](Training& training) {
    loss = training.train(1);
    EXPECT_LT(training.train(19), 0.9 * loss);
  });
}

TEST(TrainerOnRanks, GoesOnWithOtherNumbers) {
  const Source source;
  const TemporaryFolder folder;
  const TrainOptions options = options_with(SumOrder::tree, 4);
  Training whole(source, options);
  whole.train(9);
  const std::string file = folder.file("checkpoint");
  const auto part = [&](Training& training) {
    training.train(3);
    training.trainer.save(file);
  };
  learnt(source, options, 4, part);
  learnt(source, options, 2, part, file);
  EXPECT_EQ(learnt(source, options, 3, part, file), whole.values());
}

TEST(TrainerOnRanks, OneThatIsCancelledCancelsTheStepOfAll) {
  const Source source;
  const TrainOptions options = options_with(SumOrder::tree, 3);
  Training whole(source, options);
  whole.train(2);
  run_ranks(3, [&](dist::Communicator& communicator) {
    Training training(source, options, &communicator);
    Cancel cancel;
    if (communicator.rank() == 2) cancel.request();
    if (communicator.rank() != 0) {
      training.trainer.follow(&cancel);
      EXPECT_EQ(training.trainer.steps_done(), 0);
      return training.trainer.follow();
    }
    EXPECT_THROW(training.trainer.step(), Cancelled);
    EXPECT_EQ(training.trainer.steps_done(), 0);
    training.trainer.finish();
    training.train(2);
    training.trainer.finish();
    EXPECT_EQ(training.values(), whole.values());
  });
}

TEST(TrainerOnRanks, ALossThatIsNoNumberIsTheErrorOfAll) {
  const Source source;
  TrainOptions options = options_with(SumOrder::tree, 2);
  options.rate = 1e30, options.warmup = 0;
  run_ranks(2, [&](dist::Communicator& communicator) {
    Training training(source, options, &communicator);
    const std::string error = error_of([&] {
      if (communicator.rank() == 0) training.train(10);
      training.trainer.follow();
    });
    EXPECT_NE(error.find("expected finite numbers; try a lower rate"), std::string::npos) << error;
  });
}

TEST(TrainerOnRanks, SaysWhatDoesNotFit) {
  const Source source;
  const auto error_with = [&](SumOrder order, int64_t accumulate) {
    const std::string error = error_of([&] {
      run_ranks(3, [&](dist::Communicator& communicator) {
        Training training(source, options_with(order, accumulate), &communicator);
      });
    });
    return error.substr(error.find(": ") + 2);
  };
  EXPECT_EQ(error_with(SumOrder::sequence, 4), "train: sum_order is sequence with 3 ranks, expected tree or any");
  EXPECT_EQ(error_with(SumOrder::any, 2),
            "train: accumulate is 2 with 3 ranks, expected a batch for each of them, or more");
}

}  // namespace
}  // namespace heed::train
