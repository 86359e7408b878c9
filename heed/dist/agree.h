// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that work on one thing have to have the same of it: options, data, version. A rank of another machine that has
// an older heed, or another file of the same name, would spoil the result of all.
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/dist/communicator.h"

namespace heed::dist {

// Something that is known by a name, and is to be the same everywhere.
struct Fact {
  std::string name, value;
};

// All ranks call it. Throws Error on all of them where they differ, with the first difference:
//   "ranks differ: rate is '0.001' on rank 0 and '0.002' on rank 3"
HEED_API void agree(Communicator&, const std::vector<Fact>&);

}  // namespace heed::dist
