// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text as vectors: the states of a model's encoder (of a language model, its own), one a token, and pooled to one a
// sentence.
//
//   const decode::Embedder embedder("model");
//   const std::vector<float> vector = embedder.embed("The cat sleeps.").vector;
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/decode/engine.h"
#include "heed/tensor/tensor.h"

namespace heed::decode {

// Over all tokens that the model was given, the end included; first and last: the state of that token.
enum class Pooling : uint8_t { mean, max, first, last };

constexpr auto enum_names(Pooling) {
  return std::to_array<EnumName<Pooling>>(
      {{"mean", Pooling::mean}, {"max", Pooling::max}, {"first", Pooling::first}, {"last", Pooling::last}});
}

struct EmbedOptions {
  Pooling pooling{Pooling::mean};
  bool normalize{false};  // to length 1
  bool states{false};     // also the states themselves
  CallOptions call{};

  static void describe(EmbedOptions& o, auto&& field) {
    field("pooling", o.pooling, "how the states of a sentence become one vector");
    field("normalize", o.normalize, "vectors of length 1");
    data::GroupOptions::describe(o.call.batch, field);
  }
};

struct Embedding {
  std::vector<float> vector{};    // [width]
  Tensor states{};                // [tokens, width], where they were asked for, in the model's type
  std::vector<int32_t> tokens{};  // that the model was given, the end included
};

// Several threads may use one at the same time.
class HEED_API Embedder {
 public:
  explicit Embedder(Engine engine) : engine_(std::move(engine)) {}
  explicit Embedder(const std::string& folder, int threads = 1) : Embedder(Engine(folder, threads)) {}

  const Engine& engine() const { return engine_; }

  Embedding embed(const std::string& sentence, const EmbedOptions& = {}) const;
  // Throws Error, with the number of the sentence, where one is too long or no UTF-8, before anything is done;
  // Cancelled where that was requested. An empty sentence is its end alone.
  std::vector<Embedding> embed(std::span<const std::string> sentences, const EmbedOptions& = {},
                               const Done<Embedding>& done = {}) const;
  std::vector<Embedding> embed_ids(std::span<const std::vector<int32_t>> sentences, const EmbedOptions& = {},
                                   const Done<Embedding>& done = {}) const;

 private:
  Engine engine_;
};

}  // namespace heed::decode
