// SPDX-License-Identifier: Apache-2.0
#pragma once
// The communicator of the job that this process was started in: by mpirun, or by srun of Slurm. A process that was
// started alone is its own, and needs no MPI. MPI comes from a module, libheed_mpi.so, that is loaded when it is
// needed: heed itself runs where none is installed.
#include <memory>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/dist/communicator.h"

namespace heed::dist {

// What the environment says of a job, before anything of it was begun.
struct Launch {
  int rank = 0, size = 1;
  std::string by;  // "mpirun"; empty: by nobody
};
// Throws Error where srun started several processes that cannot find each other.
HEED_API Launch launch_of_environment();

// Throws Error where several processes were started and the module is not there, or is another version's. In a job of
// several, all of its processes have to open it.
HEED_API std::unique_ptr<Communicator> open();

// Where the module is looked for, in this order: what HEED_MPI_MODULE names, and nothing else then; beside the library
// or program that heed is in; in the folder of libraries that it was installed with.
HEED_API std::vector<std::string> module_places();

}  // namespace heed::dist
