// SPDX-License-Identifier: Apache-2.0
#pragma once
// A command that several processes work on, when mpirun or srun has started them.
#include <functional>

#include "heed/dist/communicator.h"

namespace heed::cli {

// The body on the communicator of this job, or of this process alone. On several ranks, an error of one ends all of
// them, and is printed once; exceptions of a single process come out as they are.
void on_ranks(const std::function<void(dist::Communicator&)>& body);

// Of this process, before anything was begun; 0 where it is alone.
int rank_of_launch();

}  // namespace heed::cli
