// SPDX-License-Identifier: Apache-2.0
#include "heed/data/text_model.h"

#include <utility>

#include "heed/base/error.h"

namespace heed::data {
namespace {

void check_size(const std::string& name, const char* which, int64_t came, int64_t expected) {
  if (came == expected) return;
  throw Error(name + ": the " + which + " has " + std::to_string(came) + " tokens, expected " +
              std::to_string(expected) + " as the model has");
}

}  // namespace

TextModel::TextModel(std::shared_ptr<const models::Model> model, Tokenizers tokenizers, std::string name)
    : model_(std::move(model)), tokenizers_(std::move(tokenizers)), name_(std::move(name)) {
  if (!has_tokenizers()) return;
  if (!tokenizers_.target) throw Error(name_ + ": a tokenizer of the source came alone, expected the target's too");
  check_size(name_, tokenizers_.are_shared() ? "tokenizer" : "tokenizer of the source", tokenizers_.source->size(),
             model_->source_vocabulary());
  const bool tags = task() == models::Task::tag;
  check_size(name_, tags ? "list of tags" : "tokenizer of the target", tokenizers_.target->size(), model_->outputs());
}

const text::Tokenizer& TextModel::source() const {
  if (!has_tokenizers()) throw Error(name_ + ": has no tokenizer, expected one to work with text: use token ids");
  return *tokenizers_.source;
}

const text::Tokenizer& TextModel::target() const {
  source();
  return *tokenizers_.target;
}

void TextModel::check_length(int64_t tokens) const {
  const int64_t most = model_->max_length() - 1;  // and one for the end
  if (tokens <= most) return;
  throw Error(std::to_string(tokens) + " tokens came, expected at most " + std::to_string(most));
}

std::vector<int32_t> TextModel::encode(std::string_view text) const {
  std::vector<int32_t> ids = source().encode(text);
  check_length(std::ssize(ids));
  return ids;
}

void TextModel::expect(models::Task wanted) const {
  if (task() == wanted) return;
  throw Error(name_ + ": is " + describe_task(task()) + ", expected " + describe_task(wanted));
}

std::string describe_task(models::Task task) {
  switch (task) {
    case models::Task::translate:
      return "a model that translates";
    case models::Task::language:
      return "a language model";
    case models::Task::tag:
      return "a tagger";
    case models::Task::classify:
      return "a classifier";
    case models::Task::encode:
      return "an encoder";
  }
  return "?";
}

}  // namespace heed::data
