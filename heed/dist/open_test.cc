// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/open.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "heed/base/testing.h"

namespace heed::dist {
namespace {

using heed::testing::error_of;

// The environment of a process that was started alone, but for what a test sets.
class Open : public ::testing::Test {
 protected:
  Open() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "HEED_MPI_MODULE"}) {
      ::unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
};

TEST_F(Open, AloneIsOneRank) {
  EXPECT_EQ(open()->size(), 1);
  set("OMPI_COMM_WORLD_SIZE", "1"), set("HEED_MPI_MODULE", "/not/there.so");
  EXPECT_EQ(open()->size(), 1) << "mpirun -n 1 needs no MPI";
}

TEST_F(Open, TheEnvironmentTellsOfTheJob) {
  set("OMPI_COMM_WORLD_SIZE", "4"), set("OMPI_COMM_WORLD_RANK", "3");
  EXPECT_EQ(launch_of_environment().rank, 3);
  EXPECT_EQ(launch_of_environment().size, 4);
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  set("SLURM_STEP_NUM_TASKS", "2");
  EXPECT_EQ(error_of([] { launch_of_environment(); }),
            "srun started 2 processes that cannot find each other, expected srun --mpi=pmix");
  set("PMIX_RANK", "1");
  EXPECT_EQ(launch_of_environment().rank, 1);
  EXPECT_EQ(launch_of_environment().by, "srun");
}

TEST_F(Open, SaysWhichModuleIsMissing) {
  set("OMPI_COMM_WORLD_SIZE", "2"), set("HEED_MPI_MODULE", "/not/there.so");
  EXPECT_EQ(error_of([] { open(); }),
            "this heed has no MPI, expected its module, which is built where Open MPI is installed: /not/there.so");
  const heed::testing::TemporaryFolder folder;
  set("HEED_MPI_MODULE", folder.file("broken.so").c_str());
  ::fclose(::fopen(folder.file("broken.so").c_str(), "w"));
  EXPECT_TRUE(error_of([] { open(); }).starts_with("MPI cannot be loaded: ")) << error_of([] { open(); });
}

}  // namespace
}  // namespace heed::dist
