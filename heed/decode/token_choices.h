// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which tokens may come in each sentence of a search, where that is not all of them: a shortlist, as a rule. One
// product gives the logits of the tokens of all sentences that are open; of each row only those of its own sentence are
// kept, so that what a sentence gives does not depend on its neighbours. Not here: where the lists come from
// (data/shortlist.h).
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "heed/decode/search.h"
#include "heed/models/stepwise.h"
#include "heed/nn/layers.h"
#include "heed/nn/pass.h"
#include "heed/nn/state.h"

namespace heed::decode {

// The tokens of one sentence, by their places in its row of logits.
class TokenChoices {
 public:
  struct List {
    std::vector<int32_t> tokens{};  // sorted, each once
    std::vector<int64_t> places{};  // in the logits that the model gives now
  };

  TokenChoices() = default;  // all: a token's place is its id
  explicit TokenChoices(std::shared_ptr<const List> list) : list_(std::move(list)) {}

  // How many of the `all` logits of a row are the sentence's.
  int64_t count(int64_t all) const { return list_ ? std::ssize(list_->tokens) : all; }
  int32_t token(int64_t place) const {
    return list_ ? list_->tokens[static_cast<size_t>(place)] : static_cast<int32_t>(place);
  }
  // The token must be one of them.
  int64_t place(int32_t token) const;
  // Moves the sentence's own logits to the front of a row that the model has just given.
  template <class T>
  void narrow(T* row) const {
    if (!list_) return;
    // Places rise, so that none is overwritten before it is read.
    for (size_t i = 0; i < list_->places.size(); ++i) row[i] = row[list_->places[i]];
  }

 private:
  std::shared_ptr<const List> list_;
};

// The output layer that the open sentences of a search need.
class OutputSubset {
 public:
  // The choices of sentences that enter: for each its list, and what it needs beside that, which is the end, the prefix
  // and the required phrases. Gathers the output layer anew. Throws Error where not each sentence has a list and some
  // have, or a list has a token that the model does not have.
  std::vector<TokenChoices> enter(nn::Pass&, const models::Stepwise&, const SearchInput&, int64_t sentences);
  // The model's logits of the open sentences' tokens, which are yet to be narrowed.
  Tensor step(nn::Pass&, const models::Stepwise&, const Tensor& ids, nn::State&) const;

 private:
  void gather(nn::Pass&, const models::Stepwise&);

  std::vector<std::weak_ptr<TokenChoices::List>> open_;  // a sentence that is done lets go of its list
  std::optional<bool> listed_;                           // the sentences have lists; none: no sentence has come yet
  nn::Linear layer_;                                     // its outputs are all their tokens, sorted
};

}  // namespace heed::decode
