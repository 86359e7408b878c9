// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that are threads of one process: for tests, which then need no MPI.
//
//   dist::testing::run_ranks(4, [&](dist::Communicator& communicator) { ... });
#include <functional>

#include "heed/dist/communicator.h"

namespace heed::dist::testing {

// Runs the body on every rank at once, each on a thread of its own. Where a rank throws, the others throw, too, when
// they wait for a message; the first error comes out of here, with its rank.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace heed::dist::testing
