// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of data, analysis, decoding and evaluation share: a Transformer small enough to try every output of.
#include <memory>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/models/model.h"

namespace heed::data::testing {

using heed::testing::seeded;

inline constexpr int32_t kPad = 0, kBegin = 1, kEnd = 2;

inline std::unique_ptr<models::Model> small_model(models::TransformerKind kind, int64_t vocabulary, uint64_t seed) {
  models::TransformerOptions o;
  o.kind = kind;
  o.vocabulary = vocabulary;
  o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 40;
  o.encoder_layers = o.decoder_layers = 2;
  auto model = models::make_model(o, seeded(seed));
  // Moved so far that outputs depend on what came before.
  Rng rng(seeded(seed), 5);
  for (const auto& entry : model->parameters().entries()) {
    for (float& x : entry.value.span<float>()) x += 0.5f * rng.normal();
  }
  return model;
}

// How far sums of log-probabilities of small_model may lie apart that were added up in another order: a whole sequence
// and its single steps, other batches, f32 and f64. Some twenty sums follow each other behind a logit, of numbers below
// 4, and each rounds once in f32; a log-probability is the difference of two such numbers.
inline double rounding(size_t tokens) {
  constexpr double kUnit = 0x1p-24, kSums = 20, kLargest = 4;
  return 2 * kSums * kLargest * kUnit * static_cast<double>(tokens);
}

// The same model in double.
inline std::unique_ptr<models::Model> in_double(const models::Model& model) {
  auto other = models::make_model(model.options(), 0, DType::f64);
  for (const auto& entry : model.parameters().entries()) {
    other->parameters().find(entry.name)->value.copy_from(entry.value.converted(DType::f64));
  }
  return other;
}

struct Source {
  Source(int64_t rows, int64_t length, int64_t vocabulary, uint64_t seed) {
    Rng rng(seeded(seed), 6);
    ids = Tensor::uninitialised({rows, length}, DType::i32);
    for (int32_t& id : ids.span<int32_t>())
      id = 3 + static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocabulary - 3)));
    for (int64_t i = 0; i < rows; ++i) lengths.push_back(std::max<int64_t>(1, length - i));
  }
  models::Tokens tokens() const { return {ids, lengths}; }

  Tensor ids;
  std::vector<int64_t> lengths;
};

}  // namespace heed::data::testing
