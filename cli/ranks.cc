// SPDX-License-Identifier: Apache-2.0
#include "cli/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>

#include "heed/base/error.h"
#include "heed/dist/open.h"

namespace heed::cli {
namespace {

// An error of all ranks, such as a file that is not there, is told by the first one: its end comes before the others
// have waited.
constexpr unsigned kSecondsForTheFirst = 2;

void end_all(dist::Communicator& communicator, const std::string& why) {
  if (communicator.rank() > 0) ::sleep(kSecondsForTheFirst);
  const std::string who = communicator.rank() > 0 ? fmt::format("rank {}: ", communicator.rank()) : "";
  fmt::print(stderr, "heed: {}{}\n", who, why);
  std::fflush(stderr);
  communicator.abort(why);
}

}  // namespace

void on_ranks(const std::function<void(dist::Communicator&)>& body) {
  const auto communicator = dist::open();
  if (communicator->size() == 1) return body(*communicator);
  try {
    body(*communicator);
  } catch (const std::bad_alloc&) {
    end_all(*communicator, "out of memory");
    throw;
  } catch (const std::exception& error) {
    end_all(*communicator, error.what());
    throw;
  }
}

int rank_of_launch() {
  try {
    return dist::launch_of_environment().rank;
  } catch (const Error&) {  // a job that cannot begin: everybody may say so
    return 0;
  }
}

}  // namespace heed::cli
