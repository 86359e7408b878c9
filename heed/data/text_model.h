// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model with the tokenizers that belong to it: what translates, tags or generates text. Cheap to copy, never changed:
// several threads may use it at the same time. Not here: the folder it comes from (folder/model_folder.h).
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed::data {

// Of the source and of the target: one and the same, two, or words and tags.
struct Tokenizers {
  std::shared_ptr<const text::Tokenizer> source{}, target{};

  static Tokenizers shared(const std::shared_ptr<const text::Tokenizer>& both) { return {both, both}; }
  bool are_shared() const { return source == target; }
};

class HEED_API TextModel {
 public:
  TextModel() = default;
  // Without tokenizers it works over ids alone. `name` is what messages call it, such as its folder. Throws Error where
  // a tokenizer has another number of tokens than the model.
  explicit TextModel(std::shared_ptr<const models::Model> model, Tokenizers tokenizers = {},
                     std::string name = "model");

  const models::Model& model() const { return *model_; }
  models::Task task() const { return model_->task(); }
  const std::string& name() const { return name_; }
  bool has_tokenizers() const { return tokenizers_.source != nullptr; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  // These throw Error where there are none.
  const text::Tokenizer& source() const;
  const text::Tokenizer& target() const;  // of a tagger: its tags
  text::SpecialTokens special() const { return has_tokenizers() ? source().special() : text::SpecialTokens{}; }

  // Text as ids of the source. Throws Error where it is longer than the model can take.
  std::vector<int32_t> encode(std::string_view text) const;
  void check_length(int64_t tokens) const;
  // Throws Error where the model does something else.
  void expect(models::Task) const;

 private:
  std::shared_ptr<const models::Model> model_;
  Tokenizers tokenizers_;
  std::string name_;
};

// "a model that translates", "a tagger".
HEED_API std::string describe_task(models::Task);

}  // namespace heed::data
