// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

using data::testing::kBegin, data::testing::kEnd, data::testing::kPad;
using data::testing::rounding, data::testing::small_model, data::testing::Source;
using heed::testing::error_of;
using Kind = models::TransformerKind;

constexpr int64_t kVocabulary = 6;  // three tokens that mean something

class SearchTest : public ::testing::Test {
 protected:
  nn::Pass pass() { return {{parallel_, workspace_}}; }

  std::vector<std::vector<Hypothesis>> found(const models::Stepwise& model, const models::Tokens& source,
                                             const SearchOptions& options, const Tensor& prefix = {}) {
    nn::Pass p = pass();
    return search(p, model, {.source = source, .prefix = prefix}, options);
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
  std::vector<int32_t> chosen = greedy.tokens;
  if (greedy.finished) chosen.push_back(kEnd);
  ASSERT_FALSE(chosen.empty());
  for (int32_t token : chosen) {
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
        EXPECT_NEAR(best[i].score, all[i], rounding(3))
            << "seed " << seed << ", penalty " << penalty << ", place " << i;
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
class TableModel final : public models::Stepwise {
 public:
  explicit TableModel(std::vector<std::vector<float>> table) : table_(std::move(table)) {}
  nn::State begin(nn::Pass&, const models::Tokens&) const override {
    nn::State state;
    state.hidden.push_back(Tensor::zeros({1, 1}));  // so that rows are counted
    return state;
  }
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const override { return after(ids); }
  int64_t max_length() const override { return 100; }

 private:
  Var after(const Tensor& ids) const {
    const int64_t V = std::ssize(table_);
    Tensor logits = Tensor::uninitialised({ids.shape(0), ids.shape(1), V});
    for (int64_t i = 0; i < ids.size(); ++i) {
      for (int64_t j = 0; j < V; ++j) {
        logits.data<float>()[i * V + j] =
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
    EXPECT_NEAR(best.score, std::log(.6 * .9 * .9 * .95) / 4, 8 * 0x1p-24)
        << "the mean of four: a table's number, its logarithm, and the softmax round a few times each";
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
                  log_probability(*model, {row, {}}, results[n].tokens, results[n].finished),
                  rounding(results[n].tokens.size() + 1))
          << "sentence " << i << ", result " << n;
    }
    EXPECT_EQ(distinct.size(), results.size());
  }
}

TEST_F(SearchTest, NeighboursInABatchDoNotMatter) {
  const auto model = small_model(Kind::encoder_decoder, 12, 4);
  const Source source(3, 5, 12, 4);
  for (const int64_t most : {9, 0}) {  // 0: by the length of the sentence itself
    const SearchOptions options{.beam = 3, .max_length = most};
    const auto together = found(*model, source.tokens(), options);
    for (int64_t i = 0; i < 3; ++i) {
      const Tensor row = Tensor::of({1, 5}, std::span<const int32_t>(source.ids.data<int32_t>() + 5 * i, 5));
      const std::vector<int64_t> length{source.lengths[static_cast<size_t>(i)]};
      EXPECT_EQ(found(*model, {row, length}, options)[0][0].tokens, together[static_cast<size_t>(i)][0].tokens);
    }
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
  EXPECT_NEAR(one.log_probability, log_probability(*model, {}, one.tokens, one.finished),
              rounding(one.tokens.size() + 1));
}

TEST_F(SearchTest, RequiredAndForbiddenPhrasesAreKeptTo) {
  int64_t changed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto model = small_model(Kind::encoder_decoder, 9, seed);
    const Source source(2, 4, 9, seed);
    const std::vector<Phrase> required{{4, 6}, {8}}, forbidden{{5, 5}, {7}};
    const SearchOptions options{.beam = 6, .nbest = 3, .max_length = 9};
    nn::Pass p = pass();
    const auto free = search(p, *model, {.source = source.tokens()}, options);
    const auto bound =
        search(p, *model, {.source = source.tokens(), .required = required, .forbidden = forbidden}, options);
    ASSERT_EQ(bound.size(), 2u);
    for (size_t i = 0; i < bound.size(); ++i) {
      ASSERT_FALSE(bound[i].empty());
      changed += bound[i][0].tokens != free[i][0].tokens;
      for (const Hypothesis& one : bound[i]) {
        EXPECT_EQ(coverage(one.tokens, required).left, 0) << "seed " << seed;
        for (size_t t = 0; t < one.tokens.size(); ++t) {
          EXPECT_FALSE(completes(std::span(one.tokens).first(t), one.tokens[t], forbidden)) << "seed " << seed;
        }
        EXPECT_LE(one.tokens.size(), 9u);
      }
    }
  }
  EXPECT_GT(changed, 20);  // of 40: the phrases were not there by themselves
}

TEST_F(SearchTest, AWideBeamFindsTheBestOutputThatHasAPhrase) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto model = small_model(Kind::encoder_decoder, kVocabulary, seed);
    const Source source(1, 3, kVocabulary, seed);
    const std::vector<Phrase> required{{4}};
    double best = -std::numeric_limits<double>::infinity();
    for (int32_t a = 3; a < kVocabulary; ++a) {
      if (a == 4) best = std::max(best, log_probability(*model, source.tokens(), {4}, true) / 2);
      for (int32_t b = 3; b < kVocabulary; ++b) {
        if (a != 4 && b != 4) continue;
        best = std::max(best, log_probability(*model, source.tokens(), {a, b}, true) / 3);
      }
    }
    nn::Pass p = pass();
    const auto found =
        search(p, *model, {.source = source.tokens(), .required = required}, {.beam = 40, .nbest = 1, .max_length = 3});
    EXPECT_NEAR(found[0][0].score, best, rounding(3)) << "seed " << seed;
  }
}

TEST(Coverage, SeesPhrasesThatOverlapAndBeginAgain) {
  const std::vector<Phrase> required{{1, 1, 2}, {2, 3}};
  const auto of = [&](const std::vector<int32_t>& tokens) { return coverage(tokens, required); };
  EXPECT_EQ(of({}).left, 5);
  EXPECT_EQ(of({}).next, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(of({1, 1, 1}).met, 2);  // the last two begin the first phrase
  EXPECT_EQ(of({1, 1, 1}).next, (std::vector<int32_t>{2}));
  EXPECT_EQ(of({1, 1, 2}).met, 4);  // and the second has begun
  EXPECT_EQ(of({1, 1, 2, 3}).left, 0);
  EXPECT_EQ(of({3, 1}).next, (std::vector<int32_t>{1}));
}

TEST_F(SearchTest, StopsWhereTheModelDoes) {
  const auto model = small_model(Kind::decoder, 12, 8);  // 40 tokens at most
  const auto all = found(*model, {}, {.beam = 4, .nbest = 4, .max_length = 1000});
  ASSERT_EQ(all[0].size(), 4u);
  for (const auto& one : all[0]) EXPECT_LT(one.tokens.size(), 40u);
}

TEST_F(SearchTest, RejectsOptionsThatDoNotFit) {
  const auto model = small_model(Kind::decoder, kVocabulary, 1);
  const auto error = [&](const SearchOptions& options, const Tensor& prefix = {}) {
    return error_of([&] { found(*model, {}, options, prefix); });
  };
  EXPECT_EQ(error({.beam = 0}), "search: beam is 0, expected 1 or more");
  EXPECT_EQ(error({.beam = 2, .nbest = 3}), "search: nbest is 3, expected 1 to 2 (beam)");
  EXPECT_EQ(error({.temperature = 0}), "search: temperature is 0.000000, expected above 0");
  const auto error_with = [&](const SearchInput& input, const SearchOptions& options) {
    nn::Pass p = pass();
    return error_of([&] { search(p, *model, input, options); });
  };
  EXPECT_EQ(error_with({.required = {{3}}}, {}), "search: beam is 1, expected 2 or more where phrases are required");
  EXPECT_EQ(error_with({.required = {{3}}}, {.beam = 2, .sample = true}),
            "search: phrases are required of drawn tokens, expected a beam search");
  EXPECT_EQ(error_with({.forbidden = {{}}}, {}),
            "search: a required or forbidden phrase is empty, expected one token or more");
  EXPECT_EQ(
      error_with({.required = {{3, 4, 5}}}, {.beam = 2, .max_length = 3}),
      "search: the phrases that must come have 3 tokens, expected at most 2: an output has 3 at most, with its end");
  EXPECT_EQ(error({}, Tensor::full({1, 40}, 3, DType::i32)),
            "search: the prefix has 40 tokens, expected at most 38: the model takes 40 with its begin and one more");
}

// A model in double gives what the same one in single precision does.
TEST_F(SearchTest, WorksInDouble) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto single = small_model(Kind::encoder_decoder, 12, seed);
    const auto twice = data::testing::in_double(*single);
    const Source source(3, 5, 12, seed);
    for (const SearchOptions& options :
         {SearchOptions{.beam = 1, .max_length = 9}, SearchOptions{.beam = 4, .nbest = 2, .max_length = 9},
          SearchOptions{.max_length = 9, .sample = true, .top_k = 3}}) {
      const auto a = found(*single, source.tokens(), options), b = found(*twice, source.tokens(), options);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(a[i].size(), b[i].size());
        EXPECT_EQ(a[i][0].tokens, b[i][0].tokens);
        EXPECT_NEAR(a[i][0].log_probability, b[i][0].log_probability, rounding(a[i][0].tokens.size() + 1));
      }
    }
  }
}

// The nodes of a hypothesis name the passes that chose its tokens: their attention, put together, is that of one pass
// over the whole of it.
TEST_F(SearchTest, NodesLeadToTheAttentionThatChoseEachToken) {
  struct Recorder final : nn::Observer {
    void attention(const nn::AttentionEvent& event) override {
      if (event.path != "decoder.1.cross") return;
      const auto& q = event.inputs.q;
      for (int64_t b = 0; b < q.shape(0); ++b) {
        const nn::HypothesisRow row = event.rows.empty() ? nn::HypothesisRow{b, 0} : event.rows[static_cast<size_t>(b)];
        std::vector<float>& to = queries[{row.sentence, row.node}];
        EXPECT_TRUE(to.empty()) << "a node runs once";
        const float* last = q.at(b, 0, q.shape(2) - 1);
        to.assign(last, last + q.shape(3));
      }
    }
    std::map<std::pair<int64_t, int64_t>, std::vector<float>> queries;
  } recorder;
  const auto model = small_model(Kind::encoder_decoder, 12, 3);
  const Source source(2, 5, 12, 3);
  nn::Pass p = pass();
  p.observer = &recorder;
  const auto all = search(p, *model, {.source = source.tokens()}, {.beam = 3, .nbest = 3, .max_length = 7});
  ASSERT_EQ(all.size(), 2u);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i].size(), 3u);
    for (const Hypothesis& one : all[i]) {
      ASSERT_EQ(one.nodes.size(), one.tokens.size() + (one.finished ? 1 : 0));
      EXPECT_EQ(one.nodes[0], 0);
      // The same tokens in one pass.
      struct Whole final : nn::Observer {
        void attention(const nn::AttentionEvent& event) override {
          if (event.path != "decoder.1.cross") return;
          for (int64_t t = 0; t < event.inputs.q.shape(2); ++t) {
            const float* row = event.inputs.q.at(0, 0, t);
            queries.emplace_back(row, row + event.inputs.q.shape(3));
          }
        }
        std::vector<std::vector<float>> queries;
      } whole;
      std::vector<int32_t> in{kBegin};
      in.insert(in.end(), one.tokens.begin(), one.tokens.end());
      nn::Pass forced = pass();
      forced.observer = &whole;
      const Tensor row = Tensor::of({1, 5}, std::span<const int32_t>(source.ids.data<int32_t>() + 5 * i, 5));
      const std::vector<int64_t> length{source.lengths[i]};
      model->logits(forced, {.ids = row, .lengths = length},
                    {.ids = Tensor::of({1, std::ssize(in)}, std::span<const int32_t>(in))});
      for (size_t t = 0; t < one.nodes.size(); ++t) {
        const std::vector<float>& seen = recorder.queries.at({static_cast<int64_t>(i), one.nodes[t]});
        for (size_t d = 0; d < seen.size(); ++d) EXPECT_NEAR(seen[d], whole.queries[t][d], rounding(1));
      }
    }
  }
}

TEST_F(SearchTest, TellsOfEachRowOnceAndCanBeCancelled) {
  const auto model = small_model(Kind::encoder_decoder, 12, 4);
  const Source source(3, 5, 12, 4);
  std::map<int64_t, std::vector<int32_t>> told;
  nn::Pass p = pass();
  const auto all = search(p, *model, {.source = source.tokens()}, {.max_length = 9},
                          {.done = [&](int64_t row, const std::vector<Hypothesis>& h) { told[row] = h.at(0).tokens; }});
  ASSERT_EQ(told.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(told[i], all[static_cast<size_t>(i)][0].tokens);
  Cancel cancel;
  cancel.request();
  EXPECT_THROW(search(p, *model, {.source = source.tokens()}, {}, {.cancel = &cancel}), Cancelled);
}

// What is drawn for a sentence does not depend on those beside it.
TEST_F(SearchTest, DrawsHaveAStreamForEachSentence) {
  const auto model = small_model(Kind::decoder, 12, 5);
  const Tensor three = Tensor::full({3, 1}, 5, DType::i32), one = Tensor::full({1, 1}, 5, DType::i32);
  const SearchOptions options{.max_length = 20, .sample = true, .temperature = 3};
  nn::Pass p = pass();
  const auto together = search(p, *model, {.prefix = three, .streams = {7, 8, 9}}, options);
  const auto alone = search(p, *model, {.prefix = one, .streams = {8}}, options);
  EXPECT_EQ(together[1][0].tokens, alone[0][0].tokens);
  EXPECT_NE(together[0][0].tokens, together[2][0].tokens);
}

}  // namespace
}  // namespace heed::decode
