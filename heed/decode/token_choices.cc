// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/token_choices.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "heed/base/error.h"

namespace heed::decode {
namespace {

void sort_once(std::vector<int32_t>& tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

// The tokens of row `row` of an input: without any of these, it could not be searched as it asks.
std::vector<int32_t> needed(const SearchInput& input, int64_t row) {
  std::vector<int32_t> tokens{input.special.end};
  for (const Phrase& phrase : input.required) tokens.insert(tokens.end(), phrase.begin(), phrase.end());
  if (input.prefix) {
    const int64_t forced = input.prefix.shape(1);
    const int32_t* prefix = input.prefix.data<int32_t>() + row * forced;
    tokens.insert(tokens.end(), prefix, prefix + forced);
  }
  return tokens;
}

}  // namespace

int64_t TokenChoices::place(int32_t token) const {
  if (!list_) return token;
  const auto found = std::lower_bound(list_->tokens.begin(), list_->tokens.end(), token);
  assert(found != list_->tokens.end() && *found == token);
  return found - list_->tokens.begin();
}

std::vector<TokenChoices> OutputSubset::enter(nn::Pass& pass, const models::Stepwise& model, const SearchInput& input,
                                              int64_t sentences) {
  std::vector<TokenChoices> choices(static_cast<size_t>(sentences));
  const bool listed = !input.shortlists.empty();
  if (listed_.value_or(listed) != listed) {
    throw Error("search: shortlists came for some sentences alone, expected them for all or for none");
  }
  listed_ = listed;
  if (!listed) return choices;
  if (std::ssize(input.shortlists) != sentences) {
    throw Error("search: shortlists has " + std::to_string(input.shortlists.size()) + " lists, expected " +
                std::to_string(sentences) + ", one for each sentence");
  }
  for (int64_t i = 0; i < sentences; ++i) {
    auto list = std::make_shared<TokenChoices::List>();
    list->tokens = needed(input, i);
    const std::vector<int32_t>& given = input.shortlists[static_cast<size_t>(i)];
    list->tokens.insert(list->tokens.end(), given.begin(), given.end());
    sort_once(list->tokens);
    choices[static_cast<size_t>(i)] = TokenChoices(list);
    open_.push_back(list);
  }
  gather(pass, model);
  return choices;
}

void OutputSubset::gather(nn::Pass& pass, const models::Stepwise& model) {
  std::erase_if(open_, [](const auto& list) { return list.expired(); });
  std::vector<int32_t> tokens;
  for (const auto& list : open_) {
    const auto& more = list.lock()->tokens;
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  sort_once(tokens);
  layer_ = model.output_subset(pass, tokens);
  for (const auto& entry : open_) {
    const auto list = entry.lock();
    list->places.clear();
    auto from = tokens.begin();
    for (const int32_t token : list->tokens) {
      from = std::lower_bound(from, tokens.end(), token);
      list->places.push_back(from - tokens.begin());
    }
  }
}

Tensor OutputSubset::step(nn::Pass& pass, const models::Stepwise& model, const Tensor& ids, nn::State& state) const {
  struct Borrowed {
    nn::Pass& pass;
    ~Borrowed() { pass.output_subset = nullptr; }
  };
  const Borrowed for_this_step{pass};
  if (listed_ == true) pass.output_subset = &layer_;
  return model.step(pass, ids, state).value();
}

}  // namespace heed::decode
