#include "heed/decode/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/base/testing.h"
#include "heed/decode/testing.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

using heed::testing::error_of;
using testing::kBegin, testing::kEnd, testing::kPad;
using testing::small_model, testing::Source;
using Kind = models::TransformerKind;

constexpr int64_t kVocabulary = 6;  // three tokens that mean something

class SearchTest : public ::testing::Test {
 protected:
  nn::Pass pass() { return {{parallel_, workspace_}}; }

  std::vector<std::vector<Hypothesis>> found(const models::Model& model, const models::Tokens& source,
                                             const SearchOptions& options, const Tensor& prefix = {}) {
    nn::Pass p = pass();
    return search(p, model, source, {kBegin, kEnd, kPad}, options, prefix);
  }

  // What the model itself says of one output, the end included if it is finished.
  double log_probability(const models::Model& model, const models::Tokens& source, std::vector<int32_t> tokens,
                         bool finished) {
    std::vector<int32_t> in{kBegin};
    in.insert(in.end(), tokens.begin(), tokens.end());
    if (finished) {
      tokens.push_back(kEnd);
    } else {
      in.pop_back();
    }
    nn::Pass p = pass();
    const Tensor ids = Tensor::of({1, std::ssize(in)}, std::span<const int32_t>(in));
    const Tensor rows = ops::log_softmax(p, model.logits(p, source, {ids, {}})).value();
    double sum = 0;
    for (size_t t = 0; t < tokens.size(); ++t) {
      sum += double{rows.data<float>()[static_cast<int64_t>(t) * rows.shape(2) + tokens[t]]};
    }
    return sum;
  }

  Parallel parallel_{1};
  Workspace workspace_;
};

TEST_F(SearchTest, GreedyTakesTheBestTokenEachTime) {
  const auto model = small_model(Kind::encoder_decoder, kVocabulary, 1);
  const Source source(1, 4, kVocabulary, 1);
  const Hypothesis greedy = found(*model, source.tokens(), {.beam = 1, .max_length = 8})[0][0];
  std::vector<int32_t> prefix{kBegin};
  for (int32_t token : greedy.tokens) {
    nn::Pass p = pass();
    const Tensor ids = Tensor::of({1, std::ssize(prefix)}, std::span<const int32_t>(prefix));
    const Tensor logits = model->logits(p, source.tokens(), {ids, {}}).value();
    const float* row = logits.data<float>() + (logits.shape(1) - 1) * kVocabulary;
    for (int32_t other = kEnd; other < kVocabulary; ++other) EXPECT_LE(row[other], row[token]);
    prefix.push_back(token);
  }
}

// With room for everything, beam search has to find what trying everything finds.
TEST_F(SearchTest, AWideBeamFindsTheBestOfAllOutputs) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    for (double penalty : {0.0, 0.7, 2.0}) {
      const auto model = small_model(Kind::encoder_decoder, kVocabulary, seed);
      const Source source(1, 3, kVocabulary, seed);
      std::vector<double> all;
      for (int32_t a = 2; a < kVocabulary; ++a) {
        for (int32_t b = 2; b < kVocabulary; ++b) {
          std::vector<int32_t> tokens;
          if (a != kEnd) tokens.push_back(a);
          if (b != kEnd && a == kEnd) continue;
          if (b != kEnd) tokens.push_back(b);
          all.push_back(log_probability(*model, source.tokens(), tokens, true) /
                        std::pow(static_cast<double>(tokens.size() + 1), penalty));
        }
      }
      std::sort(all.rbegin(), all.rend());
      const auto best = found(*model, source.tokens(),
                              {.beam = 40, .nbest = std::ssize(all), .length_penalty = penalty, .max_length = 3})[0];
      ASSERT_EQ(best.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_TRUE(best[i].finished);
        EXPECT_NEAR(best[i].score, all[i], 1e-5) << "seed " << seed << ", penalty " << penalty << ", place " << i;
      }
    }
  }
}

// No law, as the greedy way may fall out of the beam: but it must not be the rule.
TEST_F(SearchTest, ABeamIsBetterThanGreedyOnTheWhole) {
  double greedy = 0, beam = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto model = small_model(Kind::encoder_decoder, 8, seed);
    const Source source(4, 5, 8, seed);
    const auto one = found(*model, source.tokens(), {.beam = 1, .max_length = 12});
    const auto five = found(*model, source.tokens(), {.beam = 5, .max_length = 12});
    for (size_t i = 0; i < one.size(); ++i) {
      if (one[i][0].finished) greedy += one[i][0].score, beam += five[i][0].score;
    }
  }
  EXPECT_GT(beam, greedy);
}

// What comes next depends on the last token alone, by a table of probabilities.
class TableModel final : public models::Model {
 public:
  explicit TableModel(std::vector<std::vector<float>> table) : table_(std::move(table)) {}
  Var logits(nn::Pass&, const models::Tokens&, const models::Tokens& target) const override {
    return after(target.ids);
  }
  nn::State begin(nn::Pass&, const models::Tokens&) const override {
    nn::State state;
    state.hidden.push_back(Tensor::zeros({1, 1}));  // so that rows are counted
    return state;
  }
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const override { return after(ids); }
  models::Task task() const override { return models::Task::language; }
  Var states(nn::Pass&, const models::Tokens&) const override { return {}; }
  int64_t vocabulary() const override { return std::ssize(table_); }
  int64_t max_length() const override { return 100; }

 private:
  Var after(const Tensor& ids) const {
    Tensor logits = Tensor::uninitialised({ids.shape(0), ids.shape(1), vocabulary()});
    for (int64_t i = 0; i < ids.size(); ++i) {
      for (int64_t j = 0; j < vocabulary(); ++j) {
        logits.data<float>()[i * vocabulary() + j] =
            std::log(table_[static_cast<size_t>(ids.data<int32_t>()[i])][static_cast<size_t>(j)]);
      }
    }
    return logits;
  }
  const std::vector<std::vector<float>> table_;
};

// Ends that are unlikely, but among the first few, must not close the beam while something better grows.
TEST_F(SearchTest, BadEndsDoNotCloseTheBeam) {
  const float o = 1e-9f;
  const TableModel model({{o, o, 1, o, o, o},
                          {o, o, .2f, .6f, .15f, .05f},      // an early end is second
                          {o, o, 1, o, o, o},                //
                          {o, o, .05f, .02f, .9f, .03f},     // 3 goes to 4,
                          {o, o, .05f, .02f, .03f, .9f},     // 4 to 5,
                          {o, o, .95f, .02f, .02f, .01f}});  // and 5 ends
  for (const int64_t beam : {1, 2, 3, 5}) {
    const Hypothesis best = found(model, {}, {.beam = beam, .max_length = 20})[0][0];
    EXPECT_EQ(best.tokens, (std::vector<int32_t>{3, 4, 5})) << "beam " << beam;
    EXPECT_NEAR(best.score, std::log(.6 * .9 * .9 * .95) / 4, 1e-5);
  }
}

TEST_F(SearchTest, ResultsAreSortedDistinctAndWhatTheModelSays) {
  const auto model = small_model(Kind::encoder_decoder, 12, 3);
  const Source source(3, 5, 12, 3);
  const auto all = found(*model, source.tokens(), {.beam = 6, .nbest = 6, .max_length = 9});
  ASSERT_EQ(all.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    const auto& results = all[static_cast<size_t>(i)];
    const Tensor row =
        Tensor::of({1, source.lengths[static_cast<size_t>(i)]},
                   std::span<const int32_t>(source.ids.data<int32_t>() + 5 * i,
                                            static_cast<size_t>(source.lengths[static_cast<size_t>(i)])));
    ASSERT_EQ(results.size(), 6u);
    std::set<std::vector<int32_t>> distinct;
    for (size_t n = 0; n < results.size(); ++n) {
      distinct.insert(results[n].tokens);
      if (n > 0 && results[n].finished == results[n - 1].finished) {
        EXPECT_LE(results[n].score, results[n - 1].score);
      }
      EXPECT_NEAR(results[n].log_probability,
                  log_probability(*model, {row, {}}, results[n].tokens, results[n].finished), 1e-4)
          << "sentence " << i << ", result " << n;
    }
    EXPECT_EQ(distinct.size(), results.size());
  }
}

TEST_F(SearchTest, NeighboursInABatchDoNotMatter) {
  const auto model = small_model(Kind::encoder_decoder, 12, 4);
  const Source source(3, 5, 12, 4);
  const SearchOptions options{.beam = 3, .max_length = 9};
  const auto together = found(*model, source.tokens(), options);
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor row = Tensor::of({1, 5}, std::span<const int32_t>(source.ids.data<int32_t>() + 5 * i, 5));
    const std::vector<int64_t> length{source.lengths[static_cast<size_t>(i)]};
    EXPECT_EQ(found(*model, {row, length}, options)[0][0].tokens, together[static_cast<size_t>(i)][0].tokens);
  }
}

TEST_F(SearchTest, ALengthPenaltyFavoursLongerOutput) {
  size_t none = 0, strong = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto model = small_model(Kind::encoder_decoder, kVocabulary, seed);
    const Source source(1, 4, kVocabulary, seed);
    none += found(*model, source.tokens(), {.beam = 40, .length_penalty = 0, .max_length = 4})[0][0].tokens.size();
    strong += found(*model, source.tokens(), {.beam = 40, .length_penalty = 3, .max_length = 4})[0][0].tokens.size();
  }
  EXPECT_LT(none, strong);
}

TEST_F(SearchTest, SamplingDependsOnTheSeedAlone) {
  const auto model = small_model(Kind::decoder, 12, 5);
  const auto drawn = [&](int64_t seed) {
    return found(*model, {}, {.max_length = 20, .sample = true, .temperature = 3, .seed = seed})[0][0].tokens;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  std::set<std::vector<int32_t>> different;
  for (int64_t seed = 0; seed < 10; ++seed) different.insert(drawn(seed));
  EXPECT_GT(different.size(), 5u);
}

TEST_F(SearchTest, TheBestTokenIsAllThatTopOneAndTheColdDraw) {
  const auto model = small_model(Kind::decoder, 12, 6);
  const auto greedy = found(*model, {}, {.max_length = 15})[0][0].tokens;
  EXPECT_EQ(found(*model, {}, {.max_length = 15, .sample = true, .top_k = 1})[0][0].tokens, greedy);
  EXPECT_EQ(found(*model, {}, {.max_length = 15, .sample = true, .temperature = 1e-4})[0][0].tokens, greedy);
}

TEST_F(SearchTest, APrefixIsKeptAndCounted) {
  const auto model = small_model(Kind::decoder, 12, 7);
  const std::vector<int32_t> prefix{5, 7, 4};
  const Tensor ids = Tensor::of({1, 3}, std::span<const int32_t>(prefix));
  const Hypothesis one = found(*model, {}, {.beam = 3, .max_length = 6}, ids)[0][0];
  ASSERT_GE(one.tokens.size(), 3u);
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), one.tokens.begin()));
  EXPECT_LE(one.tokens.size(), 9u);
  EXPECT_NEAR(one.log_probability, log_probability(*model, {}, one.tokens, one.finished), 1e-4);
}

TEST_F(SearchTest, StopsWhereTheModelDoes) {
  const auto model = small_model(Kind::decoder, 12, 8);  // 40 tokens at most
  const auto all = found(*model, {}, {.beam = 4, .nbest = 4, .max_length = 1000});
  for (const auto& one : all[0]) EXPECT_LT(one.tokens.size(), 40u);
}

TEST_F(SearchTest, RefusesOptionsThatDoNotFit) {
  const auto model = small_model(Kind::decoder, kVocabulary, 1);
  const auto error = [&](const SearchOptions& options, const Tensor& prefix = {}) {
    return error_of([&] { found(*model, {}, options, prefix); });
  };
  EXPECT_EQ(error({.beam = 0}), "search: beam is 0, expected 1 or more");
  EXPECT_EQ(error({.beam = 2, .nbest = 3}), "search: nbest is 3, expected 1 to 2 (beam)");
  EXPECT_EQ(error({.temperature = 0}), "search: temperature is 0.000000, expected above 0");
  EXPECT_EQ(error({}, Tensor::full({1, 40}, 3, DType::i32)),
            "search: the prefix has 40 tokens, expected at most 38: the model takes 40 with its begin and one more");
}

}  // namespace
}  // namespace heed::decode
