// SPDX-License-Identifier: Apache-2.0
// main() of every test program: as GoogleTest's, and all random tests, RapidCheck's too, draw by HEED_TEST_SEED.
#include "heed/base/testing.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace heed::testing {
namespace {

uint64_t read_seed() {
  const char* const variable = std::getenv("HEED_TEST_SEED");
  if (!variable) return 0;
  const std::string_view text(variable);
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error("HEED_TEST_SEED is '" + std::string(text) + "', expected a whole number from 0 to 2^64 - 1");
  }
  return seed;
}

// RapidCheck reads its parameters once, at its first property. A seed among them is the user's own wish: a property
// that failed is drawn again by itself.
void seed_rapidcheck() {
  const char* const variable = std::getenv("RC_PARAMS");
  const std::string given = variable ? variable : "";
  if (given.find("seed=") != std::string::npos) return;
  ::setenv("RC_PARAMS", (given + " seed=" + std::to_string(seed_of_run())).c_str(), 1);
}

// What was drawn, and how to draw it again.
class SeedPrinter : public ::testing::EmptyTestEventListener {
 public:
  explicit SeedPrinter(std::string program) : program_(std::move(program)) {}

  void OnTestProgramStart(const ::testing::UnitTest&) override {
    std::printf("random tests draw with HEED_TEST_SEED=%s\n", std::to_string(seed_of_run()).c_str());
  }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    std::printf("again: HEED_TEST_SEED=%s %s --gtest_filter='%s.%s'\n", std::to_string(seed_of_run()).c_str(),
                program_.c_str(), test.test_suite_name(), test.name());
  }

 private:
  std::string program_;
};

}  // namespace

uint64_t seed_of_run() {
  static const uint64_t seed = read_seed();
  return seed;
}

}  // namespace heed::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    heed::testing::seed_rapidcheck();
  } catch (const heed::Error& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  ::testing::UnitTest::GetInstance()->listeners().Append(new heed::testing::SeedPrinter(argv[0]));  // which owns it
  return RUN_ALL_TESTS();
}
