// SPDX-License-Identifier: Apache-2.0
#pragma once
// In which order the gradients of a step's micro-batches are added up.
#include <array>
#include <cstdint>

#include "heed/base/describe.h"

namespace heed::train {

enum class SumOrder : uint8_t {
  sequence,  // one after the other, into one buffer: a single process
  tree,      // by a tree that depends on the number of micro-batches alone: the same bits on any number of ranks
  any,       // as it comes: what an all-reduce of MPI does
};

constexpr auto enum_names(SumOrder) {
  return std::to_array<EnumName<SumOrder>>(
      {{"sequence", SumOrder::sequence}, {"tree", SumOrder::tree}, {"any", SumOrder::any}});
}

}  // namespace heed::train
