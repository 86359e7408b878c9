// SPDX-License-Identifier: Apache-2.0
#include "heed/data/shortlist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/io/safetensors.h"
#include "heed/io/tensor.h"

namespace heed::data {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

// Source token e is translated as e + 1, and 9 comes with all of them.
IdPairs shifted() {
  IdPairs pairs(9, 10);
  for (int32_t e = 4; e < 8; ++e) {
    for (int32_t other = 4; other < 8; ++other) pairs.add(Ids{e, other}, Ids{e + 1, 9, other + 1});
  }
  return pairs;
}

TEST(Shortlist, HasTheLikeliestTheFrequentAndTheEnd) {
  const Shortlist list = Shortlist::learn(shifted(), false, {}, {.best = 1, .frequent = 1});
  EXPECT_EQ(list.source_vocabulary(), 9);
  EXPECT_EQ(list.target_vocabulary(), 10);
  EXPECT_EQ(list.tokens_for({}), (Ids{2, 3, 9}));
  EXPECT_EQ(list.tokens_for(Ids{4}), (Ids{2, 3, 5, 9}));
  EXPECT_EQ(list.tokens_for(Ids{7, 4, 4}), (Ids{2, 3, 5, 8, 9}));
  EXPECT_EQ(list.tokens_for(Ids{0, 8}), (Ids{2, 3, 9})) << "they never came";
  const Shortlist more = Shortlist::learn(shifted(), false, {}, {.best = 100, .frequent = 0});
  EXPECT_EQ(more.tokens_for(Ids{4}), (Ids{2, 3, 5, 6, 7, 8, 9})) << "all that came with it";
}

TEST(Shortlist, HasTheSourceItselfWhereTheVocabularyIsShared) {
  const Shortlist list = Shortlist::learn(shifted(), true, {}, {.best = 1, .frequent = 0});
  EXPECT_EQ(list.tokens_for(Ids{4, 8}), (Ids{2, 3, 4, 5, 8}));
}

TEST(Shortlist, ComesBackFromItsFile) {
  const TemporaryFolder folder;
  Shortlist list = Shortlist::learn(shifted(), false, {}, {.best = 2, .frequent = 1});
  list.set_fingerprint("12");
  list.save(folder.path() + "/list");
  const Shortlist read = Shortlist::read(folder.path() + "/list");
  EXPECT_EQ(read.source_vocabulary(), 9);
  EXPECT_EQ(read.target_vocabulary(), 10);
  EXPECT_EQ(read.size(), list.size());
  EXPECT_EQ(read.fingerprint(), "12");
  for (int32_t e = 0; e < 9; ++e) EXPECT_EQ(read.tokens_for(Ids{e}), list.tokens_for(Ids{e}));
}

// What a file claims: one line of it is changed at a time.
class HostileShortlist : public ::testing::Test {
 protected:
  std::string error_with(const std::string& name, const Tensor& changed) {
    std::map<std::string, Tensor> parts = {
        {"counts", ids({1, 2})}, {"targets", ids({4, 5, 6})}, {"frequent", ids({2})}, {"target_vocabulary", ids({7})}};
    parts[name] = changed;
    std::vector<io::TensorEntry> entries;
    for (const auto& [part, numbers] : parts) {
      if (numbers) entries.push_back(io::entry_of(part, numbers));
    }
    io::write_safetensors(path_, entries);
    const std::string error = error_of([&] { Shortlist::read(path_); });
    return error.starts_with(path_) ? error.substr(path_.size()) : error;
  }
  static Tensor ids(const Ids& numbers) { return Tensor::of({std::ssize(numbers)}, std::span<const int32_t>(numbers)); }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/list";
};

TEST_F(HostileShortlist, GivesOneClearError) {
  EXPECT_EQ(error_with("targets", ids({4, 5})), ": 'targets' has 2 tokens, expected 3, the sum of 'counts'");
  EXPECT_EQ(error_with("counts", ids({1, 3})), ": 'targets' has 3 tokens, expected 4, the sum of 'counts'");
  EXPECT_EQ(error_with("counts", ids({-1, 4})), ": 'counts' has -1, expected 0 or more");
  EXPECT_EQ(error_with("counts", ids({2147483647, 2147483647, 5})),
            ": 'targets' has 3 tokens, expected 4294967299, the sum of 'counts'");
  EXPECT_EQ(error_with("targets", ids({4, 7, 6})), ": 'targets' has the token 7, expected 0 to 6");
  EXPECT_EQ(error_with("frequent", ids({-2})), ": 'frequent' has the token -2, expected 0 to 6");
  EXPECT_EQ(error_with("target_vocabulary", ids({5})), ": 'targets' has the token 5, expected 0 to 4");
  EXPECT_EQ(error_with("target_vocabulary", ids({7, 7})), ": 'target_vocabulary' has 2 numbers, expected 1");
  EXPECT_EQ(error_with("targets", ids({4, 5, 6}).reshaped({3, 1})),
            ": 'targets' has shape [3, 1], expected one dimension");
  EXPECT_EQ(error_with("targets", {}), ": has no tensor 'targets' among its 3");
  EXPECT_EQ(error_with("targets", Tensor::zeros({3})),
            ": tensor 'targets': elements are F32, expected integers for i32");
}

std::shared_ptr<const text::Tokenizer> words(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {});
}

TextModel model_of(const std::string& vocabulary) {
  const auto tokenizer = words(vocabulary);
  return TextModel(testing::small_model(models::TransformerKind::encoder_decoder, tokenizer->size(), 1),
                   Tokenizers::shared(tokenizer), "m");
}

TEST(Shortlist, IsLearntFromTextAndFitsItsModelAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/pairs.tsv") << "a b\tb a\na\tb\nc\t\n";
  const TextModel model = model_of("a b c");
  const LearntShortlist learnt =
      learn_shortlist(text::TsvFile(folder.path() + "/pairs.tsv", {}), model, {.best = 1, .frequent = 0});
  EXPECT_EQ(learnt.report.kept, 2);
  const int32_t a = model.source().encode("a")[0], b = model.source().encode("b")[0];
  Ids expected{text::kEnd, text::kUnknown, a, b};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(learnt.shortlist.tokens_for(Ids{a}), expected) << "itself, as both sides have one vocabulary, and b";
  learnt.shortlist.expect_made_for(model, "list");
  EXPECT_EQ(error_of([&] { learnt.shortlist.expect_made_for(model_of("a b c d"), "list"); }),
            "list: was made for 7 tokens of the source, expected 8 as the model has");
  EXPECT_EQ(error_of([&] { learnt.shortlist.expect_made_for(model_of("a b d"), "list"); }),
            "list: was made with other tokenizers, expected those of the model: make it again");
}

}  // namespace
}  // namespace heed::data
