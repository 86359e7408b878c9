// SPDX-License-Identifier: Apache-2.0
// Searches among some tokens alone, of every family that translates.
#include "heed/data/shortlist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/decode/search.h"
#include "heed/decode/translate.h"
#include "heed/folder/model_folder.h"

namespace heed::decode {
namespace {

using data::testing::kBegin, data::testing::kEnd, data::testing::Source;
using heed::testing::error_of, heed::testing::seeded, heed::testing::TemporaryFolder;
using Ids = std::vector<int32_t>;
using Lists = std::vector<Ids>;

constexpr int32_t kVocabulary = 40;  // not a multiple of a panel's 16 outputs

// Between a whole sequence and its single steps, which sum in another order: some twenty sums behind each logit, of
// numbers below 16, each with a rounding error of 2^-24, and up to 11 tokens: 11 * 20 * 16 * 6e-8 = 2e-4.
constexpr double kRounding = 2e-4;

struct Family {
  std::string name;
  models::ModelOptions options;
};

std::vector<Family> families() {
  models::TransformerOptions transformer{.vocabulary = kVocabulary, .width = 8, .heads = 2, .inner = 12};
  transformer.max_length = 40, transformer.encoder_layers = transformer.decoder_layers = 1;
  transformer.output_bias = models::OutputBias::always;
  models::TransformerOptions untied = transformer;
  untied.tied = false;
  models::RnnSeq2SeqOptions rnn{.vocabulary = kVocabulary, .width = 8};
  rnn.tied = true;
  models::RnnSeq2SeqOptions untied_rnn = rnn;
  untied_rnn.tied = false, untied_rnn.cell = nn::Cell::lstm;
  return {{"transformer", transformer}, {"untied transformer", untied}, {"rnn", rnn}, {"untied rnn", untied_rnn}};
}

// Parameters that differ so much that outputs depend on what came before.
std::unique_ptr<models::Model> model_of(const Family& family, uint64_t seed) {
  auto model = models::make_unfilled_model(family.options, {.gradients = false, .flat = false});
  Rng rng(seeded(seed), 5);
  for (const auto& entry : model->parameters().entries()) {
    for (float& x : entry.value.span<float>()) x = 0.7f * rng.normal();
  }
  return model;
}

Ids all_tokens() {
  Ids all(kVocabulary);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// About a third of the vocabulary, in no order, and some of it twice.
Ids some_tokens(uint64_t seed) {
  Rng rng(seeded(seed), 9);
  Ids some;
  for (int i = 0; i < 14; ++i) some.push_back(static_cast<int32_t>(rng.below(kVocabulary)));
  return some;
}

bool has(const Ids& list, int32_t token) { return std::find(list.begin(), list.end(), token) != list.end(); }

class ShortlistedSearch : public ::testing::Test {
 protected:
  nn::Pass pass() { return {{parallel_, workspace_}}; }

  // For each family, as it is, and packed in f32 and bf16: of the Transformers, packing gives the untied weight back.
  void for_each_model(const std::function<void(const models::Model&, const std::string& name)>& test) {
    uint64_t seed = 0;
    for (const Family& family : families()) {
      test(*model_of(family, ++seed), family.name);
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const auto model = model_of(family, seed);
        model->pack(dtype, parallel_);
        test(*model, family.name + ", packed in " + name_of(dtype));
      }
    }
  }

  Parallel parallel_{1};
  Workspace workspace_;
};

// The same outputs are the same sums, in the same order, whether the weights are packed or not.
TEST_F(ShortlistedSearch, LogitsOfSomeTokensAreThoseOfAll) {
  for_each_model([&](const models::Model& model, const std::string& name) {
    const Source source(3, 5, kVocabulary, 1);
    for (const Ids& tokens : {all_tokens(), Ids{39, 2, 17, 2}, some_tokens(1), Ids{7}}) {
      nn::Pass p = pass();
      const Tensor ids = Tensor::full({3, 1}, kBegin, DType::i32);
      nn::State state = model.begin(p, source.tokens());
      const Tensor all = model.step(p, ids, state).value();
      const nn::Linear subset = model.output_subset(p, tokens);
      p.output_subset = &subset;
      nn::State again = model.begin(p, source.tokens());
      const Tensor some = model.step(p, ids, again).value();
      ASSERT_EQ(some.shape(), (Shape{3, 1, std::ssize(tokens)})) << name;
      for (int64_t row = 0; row < 3; ++row) {
        for (size_t i = 0; i < tokens.size(); ++i) {
          const float whole = all.data<float>()[row * kVocabulary + tokens[i]];
          const float part = some.data<float>()[row * std::ssize(tokens) + static_cast<int64_t>(i)];
          EXPECT_EQ(part, whole) << name << ", token " << tokens[i];
        }
      }
    }
  });
}

TEST_F(ShortlistedSearch, AListOfAllTokensChangesNothing) {
  const std::vector<SearchOptions> searches = {
      {.beam = 1, .max_length = 12},
      {.beam = 4, .nbest = 4, .max_length = 12},
      {.beam = 4, .nbest = 2, .max_length = 12, .min_length = 3, .repetition_penalty = 1.5},
      {.max_length = 12, .sample = true, .temperature = 2, .top_k = 7}};
  for_each_model([&](const models::Model& model, const std::string& name) {
    const Source source(3, 5, kVocabulary, 2);
    nn::Pass p = pass();
    for (const SearchOptions& options : searches) {
      const auto free = search(p, model, {.source = source.tokens()}, options);
      const auto listed = search(p, model, {.source = source.tokens(), .shortlists = Lists(3, all_tokens())}, options);
      for (size_t i = 0; i < free.size(); ++i) {
        ASSERT_EQ(listed[i].size(), free[i].size());
        for (size_t n = 0; n < free[i].size(); ++n) {
          EXPECT_EQ(listed[i][n].tokens, free[i][n].tokens) << name << ", beam " << options.beam;
          EXPECT_EQ(listed[i][n].log_probability, free[i][n].log_probability) << name << ", beam " << options.beam;
        }
      }
    }
  });
}

// Greedy, each token is the best of the list by the logits of all tokens, and its probability is that among the list.
TEST_F(ShortlistedSearch, ChoosesTheBestOfTheListByItsShareOfTheList) {
  for_each_model([&](const models::Model& model, const std::string& name) {
    const Source source(1, 5, kVocabulary, 3);
    Ids list = some_tokens(3);
    nn::Pass p = pass();
    const Hypothesis greedy =
        search(p, model, {.source = source.tokens(), .shortlists = {list}}, {.max_length = 10})[0][0];
    list.push_back(kEnd);
    Ids in{kBegin};
    in.insert(in.end(), greedy.tokens.begin(), greedy.tokens.end());
    const Tensor ids = Tensor::of({1, std::ssize(in)}, std::span<const int32_t>(in));
    const Tensor logits = model.logits(p, source.tokens(), {ids, {}}).value();
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    double sum = 0;
    const size_t said = greedy.tokens.size() + (greedy.finished ? 1 : 0);
    for (size_t t = 0; t < said; ++t) {
      const float* row = logits.data<float>() + static_cast<int64_t>(t) * kVocabulary;
      const int32_t token = t < greedy.tokens.size() ? greedy.tokens[t] : kEnd;
      ASSERT_TRUE(has(list, token)) << name;
      double all = 0;
      for (const int32_t other : list) {
        all += std::exp(double{row[other]});
        const bool never = other == kBegin || other == data::testing::kPad;
        if (never) continue;
        EXPECT_GE(double{row[token]} + kRounding, double{row[other]}) << name;
      }
      sum += double{row[token]} - std::log(all);
    }
    EXPECT_NEAR(greedy.log_probability, sum, kRounding) << name;
  });
}

// Each sentence has a list of its own, whoever is in the batch, and whenever it entered.
TEST_F(ShortlistedSearch, NeighboursAndTheirListsDoNotMatter) {
  constexpr int64_t kSentences = 9;
  for_each_model([&](const models::Model& model, const std::string& name) {
    const Source source(kSentences, kSentences + 1, kVocabulary, 4);
    const auto input_of = [&](int64_t row) {
      const int64_t S = source.ids.shape(1);
      const auto from = std::span<const int32_t>(source.ids.data<int32_t>() + row * S, static_cast<size_t>(S));
      return SearchInput{
          .source = {Tensor::of({1, S}, from), std::span(source.lengths).subspan(static_cast<size_t>(row), 1)},
          .shortlists = {some_tokens(static_cast<uint64_t>(row))}};
    };
    for (const int64_t beam : {1, 4}) {
      const SearchOptions options{.beam = beam};
      nn::Pass p = pass();
      std::vector<Hypothesis> best(kSentences);
      int64_t next = 0;
      search_all(p, model, 3,
                 [&](int64_t) -> std::optional<SearchInput> {
                   if (next == kSentences) return std::nullopt;
                   return input_of(next++);
                 },
                 options, {.done = [&](int64_t row, const std::vector<Hypothesis>& found) {
                   best[static_cast<size_t>(row)] = found.at(0);
                 }});
      for (int64_t row = 0; row < kSentences; ++row) {
        const Hypothesis& one = best[static_cast<size_t>(row)];
        const Hypothesis alone = search(p, model, input_of(row), options)[0][0];
        EXPECT_EQ(one.tokens, alone.tokens) << name << ", beam " << beam;
        for (const int32_t token : one.tokens) EXPECT_TRUE(has(some_tokens(static_cast<uint64_t>(row)), token));
      }
    }
  });
}

TEST_F(ShortlistedSearch, PrefixesAndRequiredPhrasesComeAllTheSame) {
  for_each_model([&](const models::Model& model, const std::string& name) {
    const Source source(2, 4, kVocabulary, 5);
    const Ids list{4, 5, 6};
    const std::vector<Phrase> required{{30, 31}, {39}};
    const Ids forced{20, 21, 20, 21};
    nn::Pass p = pass();
    const auto found = search(p, model,
                              {.source = source.tokens(),
                               .prefix = Tensor::of({2, 2}, std::span<const int32_t>(forced)),
                               .required = required,
                               .forbidden = {{5}},
                               .shortlists = {list, list}},
                              {.beam = 4, .nbest = 4, .max_length = 9});
    for (const auto& row : found) {
      ASSERT_FALSE(row.empty()) << name;
      for (const Hypothesis& one : row) {
        ASSERT_GE(one.tokens.size(), 2u);
        EXPECT_TRUE(one.tokens[0] == 20 && one.tokens[1] == 21) << name;
        EXPECT_EQ(coverage(one.tokens, required).left, 0) << name;
        for (size_t t = 2; t < one.tokens.size(); ++t) {
          EXPECT_TRUE(has({4, 6, 20, 21, 30, 31, 39}, one.tokens[t])) << name << ", " << one.tokens[t];
        }
        EXPECT_TRUE(std::isfinite(one.log_probability));
      }
    }
  });
}

TEST_F(ShortlistedSearch, AnEmptyListLeavesTheEndAlone) {
  const auto model = model_of(families()[0], 6);
  const Source source(1, 4, kVocabulary, 6);
  nn::Pass p = pass();
  for (const bool sample : {false, true}) {
    const SearchInput input{.source = source.tokens(), .shortlists = {{}}};
    const auto found = search(p, *model, input, {.sample = sample});
    EXPECT_TRUE(found[0][0].tokens.empty());
    EXPECT_EQ(found[0][0].log_probability, 0) << "there was no choice";
    EXPECT_TRUE(search(p, *model, input, {.min_length = 1, .sample = sample})[0].empty()) << "nothing may come";
  }
}

TEST_F(ShortlistedSearch, WorksInDouble) {
  const auto single = model_of(families()[0], 7);
  const auto twice = data::testing::in_double(*single);
  const Source source(3, 5, kVocabulary, 7);
  const Lists lists{some_tokens(1), some_tokens(2), some_tokens(3)};
  nn::Pass p = pass();
  const SearchInput input{.source = source.tokens(), .shortlists = lists};
  const auto a = search(p, *single, input, {.beam = 3, .max_length = 8});
  const auto b = search(p, *twice, input, {.beam = 3, .max_length = 8});
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i][0].tokens, b[i][0].tokens);
}

TEST_F(ShortlistedSearch, SaysWhatDoesNotFit) {
  const auto model = model_of(families()[1], 8);
  const Source source(2, 4, kVocabulary, 8);
  const auto error = [&](const models::Stepwise& of, const Lists& lists) {
    nn::Pass p = pass();
    return error_of([&] { search(p, of, {.source = source.tokens(), .shortlists = lists}, {}); });
  };
  EXPECT_EQ(error(*model, {{4}}), "search: shortlists has 1 lists, expected 2, one for each sentence");
  EXPECT_EQ(error(*model, {{4}, {40}}), "linear: an output of the subset is 40, expected 0 to 39");
  EXPECT_EQ(error(*model, {{4}, {-1}}), "linear: an output of the subset is -1, expected 0 to 39");
  struct ThreeFunctions final : models::Stepwise {
    nn::State begin(nn::Pass&, const models::Tokens&) const override { return {}; }
    Var step(nn::Pass&, const Tensor&, nn::State&) const override { return {}; }
    int64_t max_length() const override { return 9; }
  };
  EXPECT_EQ(error(ThreeFunctions(), {{4}, {5}}),
            "output_subset was called, expected a model that can compute the logits of some tokens alone");
  bool listed = true;
  nn::Pass p = pass();
  EXPECT_EQ(error_of([&] {
              search_all(p, *model, 4,
                         [&](int64_t) {
                           return SearchInput{.source = source.tokens(),
                                              .shortlists = std::exchange(listed, false) ? Lists{{4}, {5}} : Lists{}};
                         },
                         {}, {});
            }),
            "search: shortlists came for some sentences alone, expected them for all or for none");
}

class ShortlistedTranslator : public ::testing::Test {
 protected:
  ShortlistedTranslator() {
    data::IdPairs pairs(kVocabulary, kVocabulary);
    for (int32_t e = 4; e < kVocabulary; ++e) {
      pairs.add(Ids{e, (e * 7) % kVocabulary}, Ids{kVocabulary - 1 - e, (e * 3) % kVocabulary});
    }
    shortlist_ =
        std::make_shared<const data::Shortlist>(data::Shortlist::learn(pairs, true, {}, {.best = 2, .frequent = 3}));
    Rng rng(seeded(1), 11);
    for (int i = 0; i < 30; ++i) {
      Ids& source = sources_.emplace_back();
      for (uint64_t n = rng.below(8); n > 0; --n)
        source.push_back(static_cast<int32_t>(4 + rng.below(kVocabulary - 4)));
    }
  }
  std::shared_ptr<const data::Shortlist> shortlist_;
  Lists sources_;
};

TEST_F(ShortlistedTranslator, KeepsToTheListsOnAnyNumberOfThreads) {
  Parallel one(1);
  for (const Family& family : families()) {
    std::shared_ptr<models::Model> model = model_of(family, 9);
    model->pack(DType::f32, one);
    TranslateOptions options{.search = {.beam = 3}, .shortlist = shortlist_};
    options.call.batch.rows = 4;
    const auto alone = Translator{Engine(data::TextModel(model), 1)}.translate_ids(sources_, options);
    const auto both = Translator{Engine(data::TextModel(model), 2)}.translate_ids(sources_, options);
    int64_t tokens = 0;
    for (size_t i = 0; i < sources_.size(); ++i) {
      EXPECT_EQ(alone[i][0].tokens, both[i][0].tokens) << family.name;
      const Ids list = shortlist_->tokens_for(sources_[i]);
      for (const int32_t token : alone[i][0].tokens) EXPECT_TRUE(has(list, token)) << family.name;
      tokens += std::ssize(alone[i][0].tokens);
    }
    EXPECT_GT(tokens, 30) << "else this shows nothing";
  }
}

TEST_F(ShortlistedTranslator, SaysThatTheListIsOfAnotherModel) {
  const Translator translator{
      Engine(data::TextModel(data::testing::small_model(models::TransformerKind::encoder_decoder, 41, 1)))};
  EXPECT_EQ(error_of([&] { translator.translate_ids(sources_, {.shortlist = shortlist_}); }),
            "the shortlist: was made for 40 tokens of the source, expected 41 as the model has");
}

TEST_F(ShortlistedTranslator, OpensTheListOfItsFolder) {
  const TemporaryFolder folder;
  const auto model = model_of(families()[0], 9);
  folder::save(folder.path(), *model);
  EXPECT_FALSE(folder::has_shortlist(folder.path()));
  folder::save_shortlist(folder.path(), *shortlist_);
  EXPECT_TRUE(folder::has_shortlist(folder.path()));
  const data::TextModel opened = folder::open(folder.path());
  const data::Shortlist list = folder::open_shortlist(folder.path(), opened);
  for (const Ids& source : sources_) EXPECT_EQ(list.tokens_for(source), shortlist_->tokens_for(source));
}

}  // namespace
}  // namespace heed::decode
