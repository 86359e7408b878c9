// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is explained: one number of a model's output. The model is given an input, is made to say an output (teacher
// forcing), and is asked for the log-probability of all of it, of the token at one position, or of one token against
// another at that position ('cansado' against 'cansada').
// Not here: the answers. Every method of this folder takes a Question.
#include <cstdint>
#include <optional>
#include <vector>

#include "heed/base/export.h"
#include "heed/data/batch.h"
#include "heed/models/model.h"

namespace heed::analysis {

struct Target {
  std::optional<int64_t> position{};  // of the output, from 0, with the end of a sentence; none: all of it
  std::optional<int32_t> token{};     // whose log-probability is meant; none: that of the token which stands there
  std::optional<int32_t> against{};   // whose log-probability is subtracted; none: nothing is
};

// A model, an input with its output, and a target. Borrows the model.
class HEED_API Question {
 public:
  // A language model's text is the target of the pair, and it has no source; a tagger's target has a tag for each token
  // of the source. Throws Error where something does not fit the model.
  Question(const models::Model&, data::TokenPair, const Target& = {}, const text::SpecialTokens& = {});

  const models::Model& model() const { return *model_; }
  const data::TokenPair& pair() const { return pair_; }
  const Target& target() const { return target_; }
  const text::SpecialTokens& special() const { return special_; }
  // The side whose tokens the logits belong to, and how many tokens, begin and end included, the model reads of a side.
  nn::TextSide output_side() const;
  int64_t tokens(nn::TextSide) const;
  // What the model is made to say, the end included, where it says one.
  const std::vector<int32_t>& labels() const { return labels_; }

  // log p(token) - log p(against), natural, of one forward pass. On the pass's tape, if it has one: this object has to
  // live until the backward pass is done.
  Var value(nn::Pass&) const;
  // The same of logits [1,T,V] that the model gave for this pair.
  Var value_of(const Context&, const Var& logits) const;
  // Without a tape.
  double measure(const nn::Pass&) const;

 private:
  void check() const;
  const models::Model* model_;
  data::TokenPair pair_;
  Target target_;
  text::SpecialTokens special_;
  data::Batch batch_;
  std::vector<int32_t> labels_;
};

}  // namespace heed::analysis
