// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/open.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "heed/base/error.h"
#include "heed/dist/module.h"

namespace heed::dist {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libheed_mpi.so";

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
  return value ? value : "";
}

// None where the variable is not there, or is no number.
std::optional<int> number(const char* name) {
  const std::string text = variable(name);
  int value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value).ptr != end || value < 0) return {};
  return value;
}

std::string joined(const std::vector<std::string>& places) {
  std::string text;
  for (const std::string& place : places) text += (text.empty() ? "" : ", ") + place;
  return text;
}

void* load() {
  std::string why;
  for (const std::string& place : module_places()) {
    std::error_code ignored;
    if (!fs::exists(place, ignored)) continue;
    // Its symbols are for MPI's own modules, too. It is never closed: MPI cannot begin twice.
    if (void* module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): one thread opens
    break;
  }
  if (!why.empty()) throw Error("MPI cannot be loaded: " + why);
  throw Error("this heed has no MPI, expected its module, which is built where Open MPI is installed: " +
              joined(module_places()));
}

template <class Function>
Function* function_of(void* module, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(module, name));
}

}  // namespace

Launch launch_of_environment() {
  if (const auto size = number("OMPI_COMM_WORLD_SIZE")) {
    return {number("OMPI_COMM_WORLD_RANK").value_or(0), *size, "mpirun"};
  }
  // Set by srun for the tasks of a step, and not in the batch script itself.
  const int tasks = number("SLURM_STEP_NUM_TASKS").value_or(1);
  if (tasks <= 1) return {};
  const std::optional<int> rank = number("PMIX_RANK");
  if (!rank) {
    throw Error("srun started " + std::to_string(tasks) + " processes that cannot find each other, expected srun " +
                "--mpi=pmix");
  }
  return {*rank, tasks, "srun"};
}

std::vector<std::string> module_places() {
  if (const std::string given = variable("HEED_MPI_MODULE"); !given.empty()) return {given};
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&launch_of_environment), &here) == 0 || !here.dli_fname) return {kFile};
  std::error_code ignored;
  const fs::path binary = fs::canonical(here.dli_fname, ignored);
  const fs::path folder = binary.parent_path();
  std::vector<std::string> places{(folder / kFile).string()};
  for (const char* libraries : {HEED_LIBRARY_FOLDER, "lib"}) {
    const std::string place = (folder.parent_path() / libraries / kFile).lexically_normal().string();
    if (place != places.back() && place != places.front()) places.push_back(place);
  }
  return places;
}

std::unique_ptr<Communicator> open() {
  const Launch launch = launch_of_environment();
  if (launch.size <= 1) return single_process();
  void* module = load();
  const auto version = function_of<ModuleVersion>(module, kModuleVersion);
  const auto open = function_of<ModuleOpen>(module, kModuleOpen);
  if (!version || !open || std::strcmp(version(), HEED_VERSION) != 0) {
    throw Error(std::string(kFile) + " is of heed " + (version ? version() : "without a version") +
                ", expected " HEED_VERSION);
  }
  std::array<char, 500> why{};
  std::unique_ptr<Communicator> communicator(open(why.data(), static_cast<int>(why.size())));
  if (!communicator) throw Error(std::string("MPI cannot begin: ") + why.data());
  if (communicator->size() != launch.size) {
    throw Error("MPI has " + std::to_string(communicator->size()) + " ranks, expected " + std::to_string(launch.size) +
                ", as " + launch.by + " started");
  }
  return communicator;
}

}  // namespace heed::dist
