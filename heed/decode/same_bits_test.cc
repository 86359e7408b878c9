// SPDX-License-Identifier: Apache-2.0
// The same bits in any company: what a model says of a text depends neither on the texts beside it, nor on the size of
// the batch, nor on threads. Every preset, plain and packed weights, lengths on both sides of attention's blocks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "heed/base/testing.h"
#include "heed/decode/embed.h"
#include "heed/decode/generate.h"
#include "heed/decode/score.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/models/presets.h"

namespace heed::decode {
namespace {

using heed::testing::seeded;
using Ids = std::vector<int32_t>;

constexpr int64_t kVocabulary = 150, kTags = 20;

// Under sanitizers, which look at what memory is read, and not at its bits: some models, fewer texts.
bool is_brief() {
  const char* const effort = std::getenv("HEED_TEST_EFFORT");
  return effort && std::atof(effort) < 1;
}

// Most are short.
std::vector<Ids> draw_texts(size_t count, uint64_t longest, Rng& rng) {
  std::vector<Ids> texts(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t most = i % 4 == 0 ? longest : 12;
    for (uint64_t t = 0, length = 1 + rng.below(most); t < length; ++t) {
      texts[i].push_back(4 + static_cast<int32_t>(rng.below(kVocabulary - 4)));
    }
  }
  return texts;
}

// Numbers of all results of one item, in some order.
using Numbers = std::vector<double>;
// Results of some items by an engine, in batches of so many.
using Work = std::function<std::vector<Numbers>(const Engine&, std::span<const size_t> items, int64_t rows)>;

template <class T>
std::vector<T> chosen(const std::vector<T>& all, std::span<const size_t> items) {
  std::vector<T> some;
  for (const size_t i : items) some.push_back(all[i]);
  return some;
}

// All together in batches of several sizes on several threads, in another order, and each alone.
void expect_same_bits(const std::shared_ptr<const models::Model>& model, size_t items, Rng& rng, const Work& work) {
  const auto engine = [&](int threads) { return Engine(data::TextModel(model), threads); };
  std::vector<size_t> order(items);
  for (size_t i = 0; i < items; ++i) order[i] = i;
  const Engine single = engine(1);
  const std::vector<Numbers> expected = work(single, order, 1);
  for (size_t i = items; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  for (const auto& [threads, rows] : {std::pair<int, int64_t>{1, 64}, {3, 5}, {2, 64}}) {
    const std::vector<Numbers> found = work(engine(threads), order, rows);
    ASSERT_EQ(found.size(), items);
    for (size_t i = 0; i < items; ++i) {
      EXPECT_EQ(found[i], expected[order[i]])
          << "item " << order[i] << ", " << threads << " threads, batches of " << rows;
    }
  }
}

CallOptions batches_of(int64_t rows) { return {.batch = {.rows = rows}}; }

Numbers of_hypothesis(const Ids& tokens, double log_probability) {
  Numbers numbers(tokens.begin(), tokens.end());
  numbers.push_back(log_probability);
  return numbers;
}

Work translations(const std::vector<Ids>& texts, int64_t beam) {
  return [&texts, beam](const Engine& engine, std::span<const size_t> items, int64_t rows) {
    const TranslateOptions options{.search = {.beam = beam, .nbest = beam, .max_length = 10}, .call = batches_of(rows)};
    std::vector<Numbers> all;
    for (const Translations& found : Translator(engine).translate_ids(chosen(texts, items), options)) {
      Numbers numbers;
      for (const Translation& one : found) {
        const Numbers its = of_hypothesis(one.tokens, one.log_probability);
        numbers.insert(numbers.end(), its.begin(), its.end());
      }
      all.push_back(numbers);
    }
    return all;
  };
}

Work generations(const std::vector<Ids>& texts) {
  return [texts](const Engine& engine, std::span<const size_t> items, int64_t rows) {
    const GenerateOptions options{.search = {.beam = 2, .max_length = 70}, .call = batches_of(rows)};
    std::vector<Numbers> all;
    for (const Generations& found : Generator(engine).generate_ids(chosen(texts, items), options)) {
      all.push_back(of_hypothesis(found.front().tokens, found.front().log_probability));
    }
    return all;
  };
}

Work taggings(const std::vector<Ids>& texts) {
  return [&texts](const Engine& engine, std::span<const size_t> items, int64_t rows) {
    std::vector<Numbers> all;
    for (const Tagging& tags : Tagger(engine).tag_ids(chosen(texts, items), {.call = batches_of(rows)})) {
      Numbers numbers;
      for (const TaggedToken& one : tags) numbers.push_back(one.tag_id), numbers.push_back(one.log_probability);
      all.push_back(numbers);
    }
    return all;
  };
}

Work scores(const std::vector<data::TokenPair>& pairs) {
  return [&pairs](const Engine& engine, std::span<const size_t> items, int64_t rows) {
    std::vector<Numbers> all;
    for (const Score& score : Scorer(engine).score_ids(chosen(pairs, items), {.call = batches_of(rows)})) {
      all.push_back(score.log_probabilities);
    }
    return all;
  };
}

Work embeddings(const std::vector<Ids>& texts) {
  return [&texts](const Engine& engine, std::span<const size_t> items, int64_t rows) {
    std::vector<Numbers> all;
    for (const Embedding& one : Embedder(engine).embed_ids(chosen(texts, items), {.call = batches_of(rows)})) {
      all.emplace_back(one.vector.begin(), one.vector.end());
    }
    return all;
  };
}

void expect_same_bits(const std::shared_ptr<const models::Model>& model, models::Task task, Rng& rng) {
  const size_t items = is_brief() ? 4 : 9;
  const std::vector<Ids> texts = draw_texts(items, 138, rng), targets = draw_texts(items, 138, rng);
  std::vector<data::TokenPair> pairs;
  for (size_t i = 0; i < items; ++i) {
    data::TokenPair pair{task == models::Task::language ? Ids{} : texts[i], targets[i]};
    if (task == models::Task::tag) {
      pair.target = texts[i];
      for (int32_t& tag : pair.target) tag = 4 + tag % static_cast<int32_t>(kTags - 4);
    }
    pairs.push_back(pair);
  }
  expect_same_bits(model, items, rng, scores(pairs));
  if (task == models::Task::translate) {
    for (const int64_t beam : {1, 3}) expect_same_bits(model, items, rng, translations(texts, beam));
  }
  if (task == models::Task::language) expect_same_bits(model, items, rng, generations(draw_texts(items, 60, rng)));
  if (task == models::Task::tag) expect_same_bits(model, items, rng, taggings(texts));
  if (task != models::Task::tag) expect_same_bits(model, items, rng, embeddings(texts));
}

class SameBits : public ::testing::TestWithParam<models::Preset> {};

TEST_P(SameBits, InAnyCompany) {
  const models::ModelOptions options = models::model_options(GetParam(), {.source = kVocabulary, .tags = kTags});
  for (const std::optional<DType> weights : {std::optional<DType>(), {DType::f32}, {DType::bf16}, {DType::i8}}) {
    if (is_brief() && weights && *weights != DType::i8) continue;
    SCOPED_TRACE(weights ? "packed in " + std::string(name_of(*weights)) : "plain");
    Rng rng(seeded(1));
    const std::shared_ptr<models::Model> model = models::make_model(options, seeded(2));
    Parallel parallel(1);
    if (weights) model->pack(*weights, parallel);
    expect_same_bits(model, GetParam().task, rng);
  }
}

// transformer-base is transformer-small with other numbers, and takes ten times as long.
std::vector<models::Preset> all_but_large() {
  std::vector<models::Preset> some;
  for (const models::Preset& preset : models::presets()) {
    const std::string name = preset.name;
    const bool small = name.ends_with("-small") || name.ends_with("-long");
    if (name != "transformer-base" && !(is_brief() && small)) some.push_back(preset);
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(Presets, SameBits, ::testing::ValuesIn(all_but_large()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace heed::decode
