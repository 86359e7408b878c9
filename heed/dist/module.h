// SPDX-License-Identifier: Apache-2.0
#pragma once
// What libheed_mpi.so gives: functions of C, that are looked up by name.
#include "heed/dist/communicator.h"

namespace heed::dist {

// The version of heed that the module was built with: another one may have another Communicator.
using ModuleVersion = const char*();
inline constexpr const char* kModuleVersion = "heed_mpi_version";

// Begins MPI. Null where that cannot be, and `why` has at most `room` bytes of the reason then.
using ModuleOpen = Communicator*(char* why, int room);
inline constexpr const char* kModuleOpen = "heed_mpi_open";

}  // namespace heed::dist
