// SPDX-License-Identifier: Apache-2.0
// HEED_TEST_SEED: what it changes, and what a failing test prints. This program runs itself with other seeds.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>
#include <string>

#include "heed/base/rng.h"
#include "heed/base/testing.h"

namespace heed::testing {
namespace {

// What the tests below are run by. They are not tests of anything.
TEST(DISABLED_Draws, OurOwn) { std::printf("drew %llu\n", static_cast<unsigned long long>(Rng(seeded(3)).next_u64())); }
TEST(DISABLED_Draws, RapidChecks) {
  rc::check([] { std::printf("drew %u\n", *rc::gen::resize(1000, rc::gen::arbitrary<uint32_t>())); });
}
TEST(DISABLED_Draws, ThatFail) { FAIL() << "as it should"; }

struct Output {
  std::string text;
  bool ok = false;
};

Output run(const std::string& environment, const std::string& test) {
  const std::string command = "env -u HEED_TEST_SEED -u RC_PARAMS " + environment + " /proc/" +
                              std::to_string(::getpid()) + "/exe --gtest_also_run_disabled_tests --gtest_filter='" +
                              test + "' 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw Error("cannot run " + command);
  Output output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output.text += static_cast<char>(c);
  output.ok = ::pclose(pipe) == 0;
  return output;
}

// The lines that tell what was drawn.
std::string drawn(const std::string& environment, const std::string& test) {
  const Output output = run(environment, test);
  EXPECT_TRUE(output.ok) << output.text;
  std::string lines;
  for (size_t at = output.text.find("drew "); at != std::string::npos; at = output.text.find("drew ", at + 1)) {
    lines += output.text.substr(at, output.text.find('\n', at) + 1 - at);
  }
  return lines;
}

TEST(TestSeed, ChangesEveryDrawAndRepeatsIt) {
  for (const std::string test : {"DISABLED_Draws.OurOwn", "DISABLED_Draws.RapidChecks"}) {
    SCOPED_TRACE(test);
    const std::string one = drawn("HEED_TEST_SEED=1", test);
    EXPECT_NE(one, "");
    EXPECT_EQ(one, drawn("HEED_TEST_SEED=1", test));
    EXPECT_NE(one, drawn("HEED_TEST_SEED=2", test));
    EXPECT_EQ(drawn("", test), drawn("HEED_TEST_SEED=0", test));
  }
}

TEST(TestSeed, OfRapidCheckMayBeItsOwn) {
  const std::string test = "DISABLED_Draws.RapidChecks", five = drawn("HEED_TEST_SEED=5", test);
  EXPECT_EQ(drawn("HEED_TEST_SEED=1 RC_PARAMS='seed=5'", test), five);
  EXPECT_NE(drawn("HEED_TEST_SEED=5 RC_PARAMS='max_success=20'", test), five);
  EXPECT_EQ(five.find(drawn("HEED_TEST_SEED=5 RC_PARAMS='max_success=20'", test)), 0u) << "the first of the same";
}

TEST(TestSeed, IsPrintedWithWhatFailed) {
  const Output output = run("HEED_TEST_SEED=18446744073709551615", "DISABLED_Draws.ThatFail");
  EXPECT_FALSE(output.ok);
  EXPECT_NE(output.text.find("random tests draw with HEED_TEST_SEED=18446744073709551615\n"), std::string::npos);
  EXPECT_NE(output.text.find("again: HEED_TEST_SEED=18446744073709551615 "), std::string::npos) << output.text;
  EXPECT_NE(output.text.find(" --gtest_filter='DISABLED_Draws.ThatFail'\n"), std::string::npos) << output.text;
}

TEST(TestSeed, ThatIsNoNumberRunsNothing) {
  for (const std::string value : {"", "seven", "-1", "1e3", "18446744073709551616"}) {
    const Output output = run("HEED_TEST_SEED=" + value, "DISABLED_Draws.OurOwn");
    EXPECT_FALSE(output.ok);
    EXPECT_NE(output.text.find(": HEED_TEST_SEED is '" + value + "', expected a whole number from 0 to 2^64 - 1\n"),
              std::string::npos)
        << output.text;
    EXPECT_EQ(output.text.find("drew"), std::string::npos);
  }
}

}  // namespace
}  // namespace heed::testing
