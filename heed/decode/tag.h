// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tag for each token of a sentence, by a model whose task that is.
//
//   const decode::Tagger tagger("model");
//   for (const auto& [word, tag, probability] : tagger.tag("The cat sleeps .")) ...
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/decode/engine.h"

namespace heed::decode {

struct TagOptions {
  CallOptions call{};

  static void describe(TagOptions& o, auto&& field) { data::GroupOptions::describe(o.call.batch, field); }
};

struct TaggedToken {
  std::string token{}, tag{};  // the word as it came, of ids as the tokenizer writes it; empty where there is none
  double log_probability = 0;  // of the tag
  int32_t token_id = 0, tag_id = 0;
};
using Tagging = std::vector<TaggedToken>;  // as many as the sentence has tokens

// Several threads may use one at the same time.
class HEED_API Tagger {
 public:
  // Throws Error for a model that does something else.
  explicit Tagger(Engine engine);
  explicit Tagger(const std::string& folder, int threads = 1) : Tagger(Engine(folder, threads)) {}

  const Engine& engine() const { return engine_; }

  Tagging tag(const std::string& sentence, const TagOptions& = {}) const;
  // Throws Error, with the number of the sentence, where one is too long or no UTF-8, before anything is done;
  // Cancelled where that was requested.
  std::vector<Tagging> tag(std::span<const std::string> sentences, const TagOptions& = {},
                           const Done<Tagging>& done = {}) const;
  std::vector<Tagging> tag_ids(std::span<const std::vector<int32_t>> sentences, const TagOptions& = {},
                               const Done<Tagging>& done = {}) const;

 private:
  // `texts` is empty, or has the text of each.
  std::vector<Tagging> run(std::span<const std::vector<int32_t>> sentences, std::span<const std::string> texts,
                           const TagOptions&, const Done<Tagging>& done) const;

  Engine engine_;
};

}  // namespace heed::decode
