// SPDX-License-Identifier: Apache-2.0
#pragma once
// The logit lens: the target as if each layer were the last. Its hidden states go through the last norm and the output
// projection, so that one sees from which layer on the model says what it says.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// What would be said after one layer.
struct LensLayer {
  std::string layer{};                    // "decoder.0"; "embedding" before the first one
  double value = 0;                       // the target
  std::optional<int32_t> first_choice{};  // at the target's position, where it has one
};

// Of the layers that lead to the output, in order. Throws Error for all but Transformers.
HEED_API std::vector<LensLayer> logit_lens(const nn::Pass&, const Question&);

}  // namespace heed::analysis
