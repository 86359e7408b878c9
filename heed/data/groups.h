// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which sentences of a list are batched together: those of about the same length, so that there is little padding.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"

namespace heed::data {

struct GroupOptions {
  int64_t rows{32};      // of a batch at most
  int64_t tokens{4096};  // rows times the longest of them at most, but for a single one that is longer
  bool exact{false};     // only sentences of one length together

  static void describe(GroupOptions& o, auto&& field) {
    field("batch", o.rows, "sentences that are worked on together", Range::at_least(1));
    field("batch_tokens", o.tokens, "and tokens of them, padding included", Range::at_least(1));
  }
};

// The numbers of all sentences, in groups, by rising length; of equals the first comes first.
HEED_API std::vector<std::vector<size_t>> group_by_length(std::span<const int64_t> lengths, const GroupOptions& = {});

}  // namespace heed::data
