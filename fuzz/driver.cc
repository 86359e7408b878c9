// SPDX-License-Identifier: Apache-2.0
// Feeds a fuzz target: mutated seeds, or files to see again what they did. A crash, a failed requirement, ten seconds
// without an answer or too much memory ends it, and the input is left in a file.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "fuzz/mutate.h"
#include "heed/base/export.h"
#include "heed/base/file.h"

// Sanitizers ask for these; by themselves they would end without a signal.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers chose these names
extern "C" HEED_API const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" HEED_API const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace heed::fuzz {
namespace {

constexpr unsigned kSeconds = 10;
constexpr size_t kFreeMemory = size_t{4} << 20;  // and kMemoryPerByte for each byte of the input
constexpr size_t kMemoryPerByte = 64;

std::string left_behind;  // the file for an input that ends the program
std::string current;      // what the target reads now
size_t live = 0;          // bytes that operator new has given out
size_t limit = SIZE_MAX;  // of them

// Only what may be called from a signal handler.
void leave_input() {
  const int file = ::open(left_behind.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || ::write(file, current.data(), current.size()) < 0) return;
  for (const std::string_view part :
       {std::string_view("the input is in "), std::string_view(left_behind), std::string_view("\n")}) {
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) return;
  }
}

extern "C" void end_by_signal(int signal) {
  leave_input();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Unless a sanitizer, which has more to say, listens already; in the end it aborts.
void catch_signals() {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGALRM}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (!(before.sa_flags & SA_SIGINFO)) std::signal(signal, end_by_signal);
  }
}

// An exception that is no Error has no business here: it aborts.
void run(std::string input) noexcept {
  current = std::move(input);
  limit = live + kFreeMemory + kMemoryPerByte * current.size();
  ::alarm(kSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
  ::alarm(0);
  limit = SIZE_MAX;
}

std::string read_text(const std::string& path) { return std::string(text_of(read_file(path, uint64_t{1} << 30))); }

// In the order of their names, which a folder does not have by itself.
std::vector<std::string> read_folder(const std::string& folder) {
  std::vector<std::string> paths, texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const std::string& path : paths) texts.push_back(read_text(path));
  if (texts.empty()) throw Error(folder + ": holds no seeds");
  return texts;
}

struct Arguments {
  std::string seeds = {};
  uint64_t runs = 20'000, seed = 0;
  std::vector<std::string> files = {};
};

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error("argument is '" + std::string(text) + "', expected a whole number");
  }
  return value;
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  if (const char* const of_all_tests = std::getenv("HEED_TEST_SEED")) arguments.seed = number(of_all_tests);
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      arguments.files.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) throw Error(words[i] + " lacks its value");
    const std::string& value = words[i + 1];
    if (words[i] == "--seeds") {
      arguments.seeds = value;
    } else if (words[i] == "--runs") {
      arguments.runs = number(value);
    } else if (words[i] == "--seed") {
      arguments.seed = number(value);
    } else {
      throw Error("unknown flag " + words[i]);
    }
    ++i;
  }
  if (arguments.seeds.empty() == arguments.files.empty()) {
    throw Error("expected --seeds FOLDER [--runs N] [--seed S], or files");
  }
  return arguments;
}

void drive(const Arguments& arguments) {
  for (const std::string& path : arguments.files) run(read_text(path));
  if (arguments.seeds.empty()) return;
  const std::vector<std::string> seeds = read_folder(arguments.seeds);
  for (const std::string& seed : seeds) {
    const uint64_t before = accepted;
    run(seed);
    require(accepted > before, "every seed is accepted as it is");
  }
  accepted = 0;
  for (uint64_t i = 0; i < arguments.runs; ++i) run(mutated(seeds, arguments.seed, i));
  std::printf("%s inputs of seed %s, %s times accepted\n", std::to_string(arguments.runs).c_str(),
              std::to_string(arguments.seed).c_str(), std::to_string(accepted).c_str());
}

void* allocate(size_t bytes) {
  if (bytes > limit || live > limit - bytes) {
    limit = SIZE_MAX;
    require(false, "memory stays in proportion to the input");
  }
  void* const memory = std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  live += ::malloc_usable_size(memory);
  return memory;
}

void release(void* memory) {
  live -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace
}  // namespace heed::fuzz

void* operator new(size_t bytes) { return heed::fuzz::allocate(bytes); }
void* operator new[](size_t bytes) { return heed::fuzz::allocate(bytes); }
void operator delete(void* memory) noexcept { heed::fuzz::release(memory); }
void operator delete[](void* memory) noexcept { heed::fuzz::release(memory); }
void operator delete(void* memory, size_t) noexcept { heed::fuzz::release(memory); }
void operator delete[](void* memory, size_t) noexcept { heed::fuzz::release(memory); }

int main(int argc, char** argv) {
  using namespace heed::fuzz;
  left_behind = std::filesystem::path(argv[0]).filename().string() + ".failure";
  catch_signals();
  try {
    drive(parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
}
