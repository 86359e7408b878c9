// SPDX-License-Identifier: Apache-2.0
#pragma once
// The input of models: padded token ids, the length of each row, and the type of each token.
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/kernels/attention/mask.h"
#include "heed/tensor/tensor.h"

namespace heed::models {

// Token ids [B,S] and how many of each row are not padding; lengths are borrowed until the backward pass is done.
struct Tokens {
  Tensor ids{};
  std::span<const int64_t> lengths{};  // empty: all of them
  Tensor types{};                      // [B,S], for models with token types (BERT's segments); empty: all 0
};

// The mask that hides padding.
inline kernels::Mask lengths_mask(const Tokens& tokens) {
  return tokens.lengths.empty() ? kernels::Mask() : kernels::Mask(kernels::Lengths{tokens.lengths});
}

// Throws Error, which begins with the model's name.
HEED_API void check_ids(const std::string& model, const std::string& name, const Tensor& ids);

}  // namespace heed::models
