#pragma once
// What models are given: token ids, how many of each row are real, and what type each token is of.
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/kernels/attention/mask.h"
#include "heed/tensor/tensor.h"

namespace heed::models {

// Token ids [B,S] and how many of each row are real; lengths are borrowed until the tape has gone back.
struct Tokens {
  Tensor ids{};
  std::span<const int64_t> lengths{};  // empty: all of them
  Tensor types{};                      // [B,S], for models with token types (BERT's segments); empty: all 0
};

// The real ones are seen, the others not.
inline kernels::Mask lengths_mask(const Tokens& tokens) {
  return tokens.lengths.empty() ? kernels::Mask() : kernels::Mask(kernels::Lengths{tokens.lengths});
}

// Throws Error, which begins with the model's name.
HEED_API void check_ids(const std::string& model, const std::string& name, const Tensor& ids);

}  // namespace heed::models
