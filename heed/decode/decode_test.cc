// SPDX-License-Identifier: Apache-2.0
// The objects that do the job: translating, generating, tagging, scoring and embedding, over text and over ids.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/decode/embed.h"
#include "heed/decode/generate.h"
#include "heed/decode/score.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/folder/model_folder.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

using data::testing::rounding, data::testing::small_model;
using heed::testing::error_of, heed::testing::TemporaryFolder, heed::testing::seeded;
using Kind = models::TransformerKind;

const std::vector<std::string> kSentences = {"a b c", "", "d", "e d c b a", "b", "a a a"};

std::shared_ptr<const text::Tokenizer> words(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {});
}

data::TextModel text_model(Kind kind, uint64_t seed = 1) {
  return data::TextModel(small_model(kind, 9, seed), data::Tokenizers::shared(words("a b c d e")), "m");
}

data::TextModel tagger() {
  models::TransformerOptions o;
  o.kind = Kind::encoder, o.vocabulary = 9, o.outputs = 7;
  o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 40, o.encoder_layers = 1;
  return data::TextModel(models::make_model(o, seeded(3)), {words("a b c d e"), words("X Y Z")}, "m");
}

TEST(Translator, GivesTheSameOneByOneTogetherAndOverIds) {
  const Translator translator{Engine(text_model(Kind::encoder_decoder))};
  for (const int64_t beam : {1, 3}) {
    TranslateOptions options{.search = {.beam = beam, .nbest = beam, .max_length = 8}, .align = {{}}};
    std::map<size_t, Translations> told;
    const auto all =
        translator.translate(kSentences, options, [&](size_t i, const Translations& found) { told[i] = found; });
    ASSERT_EQ(all.size(), kSentences.size());
    ASSERT_EQ(told.size(), kSentences.size());
    const auto by_ids = translator.translate_ids(translator.engine().encode(kSentences), options);
    for (size_t i = 0; i < all.size(); ++i) {
      const Translation alone = translator.translate(kSentences[i], options);
      EXPECT_EQ(alone.text, all[i][0].text);
      EXPECT_EQ(alone.alignment, all[i][0].alignment);
      EXPECT_EQ(told[i][0].text, all[i][0].text);
      EXPECT_EQ(by_ids[i][0].tokens, all[i][0].tokens);
      EXPECT_EQ(by_ids[i][0].alignment, all[i][0].alignment) << "each token is a word here";
      if (kSentences[i].empty()) {
        EXPECT_EQ(all[i].size(), 1u);
        EXPECT_EQ(all[i][0].text, "");
        continue;
      }
      EXPECT_EQ(std::ssize(all[i]), beam);
      EXPECT_EQ(words("a b c d e")->decode(all[i][0].tokens), all[i][0].text);
      EXPECT_EQ(all[i][0].alignment.size(), all[i][0].tokens.size());
    }
  }
}

TEST(Translator, SaysWhatItCannotTranslateBeforeItBegins) {
  const Translator translator{Engine(text_model(Kind::encoder_decoder))};
  int64_t told = 0;
  const auto count = [&](size_t, const Translations&) { ++told; };
  std::string longer = "a";
  for (int i = 0; i < 40; ++i) longer += " a";
  EXPECT_EQ(error_of([&] {
              translator.translate(std::vector<std::string>{"a", longer}, {}, count);
            }),
            "sentence 1: 41 tokens came, expected at most 39");
  EXPECT_EQ(error_of([&] { translator.translate(std::vector<std::string>{"\xff"}, {}, count); }),
            "sentence 0: text: byte 1 is 0xff, which is no UTF-8");
  EXPECT_EQ(error_of([&] {
              translator.translate_ids(std::vector<std::vector<int32_t>>{{4, 9}}, {}, count);
            }),
            "sentence 0: an id is 9, expected 0 to 8");
  EXPECT_EQ(told, 0);
  EXPECT_EQ(error_of([] { Translator{Engine(text_model(Kind::decoder))}; }),
            "m: is a language model, expected a model that translates");
}

TEST(Translator, StopsWhereItIsCancelledAndHasDeliveredWhatWasDone) {
  const Translator translator{Engine(text_model(Kind::encoder_decoder))};
  Cancel cancel;
  int64_t told = 0;
  const TranslateOptions options{.call = {.batch = {.rows = 1}, .cancel = &cancel}};
  EXPECT_THROW(translator.translate(kSentences, options,
                                    [&](size_t, const Translations&) {
                                      if (++told == 3) cancel.request();
                                    }),
               Cancelled);
  EXPECT_EQ(told, 3);
}

TEST(Translator, SeveralThreadsUseOneAtTheSameTime) {
  const Translator translator{Engine(text_model(Kind::encoder_decoder), 1)};
  const Translator pooled{Engine(text_model(Kind::encoder_decoder), 2)};
  const TranslateOptions options{.search = {.beam = 2, .max_length = 8}};
  const auto texts = [&](const Translator& by) {
    std::vector<std::string> all;
    for (const Translations& found : by.translate(kSentences, options)) all.push_back(found[0].text);
    return all;
  };
  const std::vector<std::string> expected = texts(translator);
  ASSERT_EQ(expected.size(), kSentences.size());
  std::vector<std::vector<std::string>> got(4);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < got.size(); ++i) {
      threads.emplace_back([&, i] { got[i] = texts(i % 2 == 0 ? translator : pooled); });
    }
  }
  for (const auto& one : got) EXPECT_EQ(one, expected);
}

TEST(Translator, OpensAFolder) {
  const TemporaryFolder folder;
  const data::TextModel model = text_model(Kind::encoder_decoder);
  folder::save(folder.path(), model.model(), model.tokenizers());
  const Translator translator(folder.path());
  const Translation opened = translator.translate("a b"), expected = Translator{Engine(model)}.translate("a b");
  EXPECT_EQ(opened.text, expected.text);
  EXPECT_NEAR(opened.log_probability, expected.log_probability, rounding(expected.tokens.size() + 1));
  EXPECT_LT(expected.log_probability, 0) << "whatever the text is, the model had to choose it";
}

TEST(Generator, GoesOnWithEachPromptByItself) {
  const Generator generator{Engine(text_model(Kind::decoder))};
  const GenerateOptions options{.search = {.max_length = 6, .sample = true, .temperature = 2}};
  const auto all = generator.generate(kSentences, options);
  ASSERT_EQ(all.size(), kSentences.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i][0].text.starts_with(kSentences[i])) << all[i][0].text;
  const auto again = generator.generate_ids(generator.engine().encode(kSentences), options);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i][0].tokens, again[i][0].tokens);
  EXPECT_EQ(generator.generate(kSentences[0], options).text, all[0][0].text) << "stream 0 both times";
  const GenerateOptions best{.search = {.beam = 3, .nbest = 2, .max_length = 6}};
  EXPECT_EQ(generator.generate(kSentences, best)[3].size(), 2u);
}

// The tokenizer knows a to e, and one space between words.
TEST(Generator, WritesThePromptAsItCame) {
  const Generator generator{Engine(text_model(Kind::decoder))};
  const std::vector<std::string> prompts = {"a Gato  b", "zebra", "a ", "Gato."};
  const auto ids = generator.engine().encode(prompts);
  std::vector<int> followed(prompts.size());  // a draw may end at once
  for (int64_t seed = 1; seed <= 20; ++seed) {
    const GenerateOptions options{.search = {.max_length = 4, .sample = true, .seed = seed}};
    const auto all = generator.generate(prompts, options), by_ids = generator.generate_ids(ids, options);
    for (size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_EQ(all[i][0].tokens, by_ids[i][0].tokens);
      if (all[i][0].tokens.size() == ids[i].size()) continue;
      ++followed[i];
      const std::string shown = prompts[i] == "a " ? "a" : prompts[i];  // one space before what follows
      EXPECT_TRUE(all[i][0].text.starts_with(shown + " ")) << all[i][0].text;
      EXPECT_NE(all[i][0].text[shown.size() + 1], ' ') << all[i][0].text;
    }
    EXPECT_NE(by_ids[1][0].text.find("<unk>"), std::string::npos) << "there is no text to take it from";
  }
  for (const int times : followed) EXPECT_GT(times, 0);
}

TEST(Generator, DrawsByTheNumberOfAPromptNotByItsCall) {
  const Generator generator{Engine(text_model(Kind::decoder))};
  GenerateOptions options{.search = {.beam = 2, .nbest = 2, .max_length = 8, .sample = true, .temperature = 3}};
  const std::vector<std::string> prompts = {"a", "a", "a", "a"};
  const auto all = generator.generate(prompts, options);
  EXPECT_NE(all[0][0].text, all[1][0].text) << "else this shows nothing";
  for (size_t i = 0; i < prompts.size(); ++i) {
    options.first = static_cast<int64_t>(i);
    const auto alone = generator.generate(std::span(prompts).subspan(i, 1), options).front();
    ASSERT_EQ(alone.size(), 2u);
    for (size_t n = 0; n < 2; ++n) EXPECT_EQ(alone[n].text, all[i][n].text);
  }
}

TEST(Tagger, NamesWordsAsTheyCame) {
  const Tagger by{Engine(tagger())};
  std::vector<std::string> tokens;
  for (const TaggedToken& one : by.tag("a  Gato, \u2581 b.")) tokens.push_back(one.token);
  EXPECT_EQ(tokens, (std::vector<std::string>{"a", "Gato", ",", "\u2581", "b", "."}));
}

TEST(Tagger, TagsEachTokenWhateverStandsBesideIt) {
  const Tagger by{Engine(tagger())};
  const auto all = by.tag(kSentences);
  ASSERT_EQ(all.size(), kSentences.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Tagging alone = by.tag(kSentences[i]);
    ASSERT_EQ(alone.size(), all[i].size());
    std::string text;
    for (size_t t = 0; t < alone.size(); ++t) {
      EXPECT_EQ(alone[t].tag_id, all[i][t].tag_id);
      EXPECT_LE(alone[t].log_probability, 0);
      text += (t ? " " : "") + alone[t].token;
    }
    EXPECT_EQ(text, kSentences[i]);
  }
}

// What the pass itself says, token by token.
TEST(Scorer, IsTheModelsOwnLogProbability) {
  const data::TextModel model = text_model(Kind::encoder_decoder);
  const Scorer scorer{Engine(model)};
  const std::vector<text::Pair> pairs = {{"a b c", "c b", 1}, {"d", "a b c d e", 2}, {"e e", "e", 3}};
  const auto all = scorer.score(pairs);
  ASSERT_EQ(all.size(), 3u);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::vector<int32_t> source = model.encode(pairs[i].source), out = model.encode(pairs[i].target), in{text::kBegin};
    source.push_back(text::kEnd);
    in.insert(in.end(), out.begin(), out.end());
    out.push_back(text::kEnd);
    const auto ids = [](const std::vector<int32_t>& v) {
      return models::Tokens{.ids = Tensor::of({1, std::ssize(v)}, std::span<const int32_t>(v))};
    };
    const Tensor rows = ops::log_softmax(pass, model.model().logits(pass, ids(source), ids(in))).value();
    ASSERT_EQ(all[i].tokens(), std::ssize(out));
    double sum = 0;
    for (size_t t = 0; t < out.size(); ++t) {
      const double expected = double{rows.data<float>()[static_cast<int64_t>(t) * rows.shape(2) + out[t]]};
      EXPECT_NEAR(all[i].log_probabilities[t], expected, rounding(1));
      sum += expected;
    }
    const double perplexity = std::exp(-sum / static_cast<double>(out.size()));
    EXPECT_NEAR(all[i].perplexity(), perplexity, perplexity * rounding(1)) << "e^x passes x's error on as a factor";
    EXPECT_NEAR(scorer.score(pairs[i]).log_probability(), all[i].log_probability(), rounding(out.size()));
  }
}

TEST(Scorer, ServesTaggersAndLanguageModelsAndDouble) {
  const Scorer tags{Engine(tagger())};
  const Score score = tags.score({"a b", "X Z", 1});
  EXPECT_EQ(score.tokens(), 2) << "the end has no tag";
  EXPECT_EQ(error_of([&] { tags.score({"a b", "X", 1}); }), "pair 0: 2 tokens and 1 tags, expected as many");
  EXPECT_EQ(error_of([&] { tags.check({"a b", "X", 1}); }), "2 tokens and 1 tags, expected as many");
  EXPECT_EQ(error_of([&] { tags.check({"", "", 1}); }), "the source has no token, expected at least 1");
  EXPECT_NO_THROW(tags.check({"a b", "X Z", 1}));
  const Scorer language{Engine(text_model(Kind::decoder))};
  EXPECT_EQ(language.score({"", "a b", 1}).tokens(), 3);
  EXPECT_EQ(error_of([&] {
              language.score({"a", "b", 1});
            }),
            "pair 0: a source came, expected none: the text is the target");
  const auto single = small_model(Kind::decoder, 9, 1);
  const Scorer in_double{Engine(data::TextModel(data::testing::in_double(*single)))};
  const std::vector<data::TokenPair> ids = {{{}, {4, 5}}};
  EXPECT_NEAR(in_double.score_ids(ids)[0].log_probability(), language.score({"", "a b", 1}).log_probability(),
              rounding(3));
}

TEST(Embedder, PoolsTheStatesOfASentence) {
  for (const Kind kind : {Kind::encoder_decoder, Kind::decoder}) {
    const Embedder embedder{Engine(text_model(kind))};
    const auto embedded = [&](Pooling pooling, bool normalize = false) {
      return embedder.embed(kSentences, {.pooling = pooling, .normalize = normalize, .states = true});
    };
    const auto mean = embedded(Pooling::mean), max = embedded(Pooling::max), first = embedded(Pooling::first),
               last = embedded(Pooling::last), unit = embedded(Pooling::mean, true);
    for (size_t i = 0; i < kSentences.size(); ++i) {
      const Tensor states = mean[i].states;
      const int64_t tokens = states.shape(0), width = states.shape(1);
      EXPECT_EQ(tokens, std::ssize(mean[i].tokens));
      EXPECT_EQ(mean[i].tokens.back(), text::kEnd);
      double squares = 0;
      for (int64_t d = 0; d < width; ++d) {
        const auto at = [&](int64_t t) { return double{states.data<float>()[t * width + d]}; };
        double sum = 0, sizes = 0, largest = at(0);
        for (int64_t t = 0; t < tokens; ++t) sum += at(t), sizes += std::abs(at(t)), largest = std::max(largest, at(t));
        const auto place = static_cast<size_t>(d);
        EXPECT_NEAR(mean[i].vector[place], sum / static_cast<double>(tokens), 0x1p-24 * sizes)
            << "each of its terms is rounded once an addition";
        EXPECT_EQ(double{max[i].vector[place]}, largest);
        EXPECT_EQ(double{first[i].vector[place]}, at(0));
        EXPECT_EQ(double{last[i].vector[place]}, at(tokens - 1));
        squares += double{unit[i].vector[place]} * double{unit[i].vector[place]};
      }
      EXPECT_NEAR(squares, 1, 2 * static_cast<double>(width + 4) * 0x1p-24) << "a sum, a root, a quotient, squared";
      const Embedding alone = embedder.embed(kSentences[i]);
      for (size_t d = 0; d < alone.vector.size(); ++d) EXPECT_NEAR(alone.vector[d], mean[i].vector[d], rounding(1));
      EXPECT_FALSE(alone.states) << "not asked for";
    }
  }
}

}  // namespace
}  // namespace heed::decode
