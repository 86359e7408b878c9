// SPDX-License-Identifier: Apache-2.0
#include "heed/data/text_model.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/data/testing.h"

namespace heed::data {
namespace {

using heed::testing::error_of;
using Kind = models::TransformerKind;

std::shared_ptr<const text::Tokenizer> words(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {});
}

TEST(TextModel, ChecksThatItsPartsBelongTogether) {
  const auto five = words("a b c d e"), six = words("a b c d e f");  // and four special ones
  const std::shared_ptr<const models::Model> model = testing::small_model(Kind::encoder_decoder, 9, 1);
  EXPECT_EQ(TextModel(model, Tokenizers::shared(five)).encode("c a"), (std::vector<int32_t>{6, 4}));
  EXPECT_EQ(error_of([&] { TextModel(model, Tokenizers::shared(six), "mine"); }),
            "mine: the tokenizer has 10 tokens, expected 9 as the model has");
  EXPECT_EQ(error_of([&] {
              TextModel(model, {five, six}, "mine");
            }),
            "mine: the tokenizer of the target has 10 tokens, expected 9 as the model has");
  EXPECT_EQ(error_of([&] {
              TextModel(model, {five, nullptr}, "mine");
            }),
            "mine: a tokenizer of the source came alone, expected the target's too");
}

TEST(TextModel, SaysWhatItCannotDo) {
  const std::shared_ptr<const models::Model> model = testing::small_model(Kind::decoder, 9, 1);
  const TextModel ids(model, {}, "mine");
  EXPECT_FALSE(ids.has_tokenizers());
  EXPECT_EQ(error_of([&] { ids.encode("a"); }),
            "mine: has no tokenizer, expected one to work with text: use token ids");
  EXPECT_EQ(error_of([&] { ids.expect(models::Task::tag); }), "mine: is a language model, expected a tagger");
  ids.expect(models::Task::language);
  ids.check_length(39);
  EXPECT_EQ(error_of([&] { ids.check_length(40); }), "40 tokens came, expected at most 39");
  const TextModel text(model, Tokenizers::shared(words("a b c d e")));
  EXPECT_EQ(error_of([&] { text.encode("a\xff"); }), "text: byte 2 is 0xff, which is no UTF-8");
}

}  // namespace
}  // namespace heed::data
