// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/suite.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "heed/base/error.h"
#include "tests/conformance/testing.h"

namespace heed::conformance {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Ran {
  int code;
  std::string log;
};

Ran run_suite(const Suite& suite, const char* data) {
  std::ostringstream log;
  const int code = run(suite, data, log);
  return {code, log.str()};
}

Suite suite_that(const std::function<std::vector<Verdict>(const Case&)>& judge, size_t at_least = 1) {
  return {.prefix = "test_scale_", .at_least = at_least, .judge = judge};
}
const auto kFine = [](const Case&) { return std::vector<Verdict>{{"twin", 1e-8}}; };

TEST(Suite, SaysLoudlyThatItWasSkipped) {
  const heed::testing::TemporaryFolder nothing;
  for (const Ran& ran : {run_suite(suite_that(kFine), nullptr), run_suite(suite_that(kFine), nothing.path().c_str())}) {
    EXPECT_EQ(ran.code, kSkipped);
    EXPECT_NE(ran.log.find("conformance SKIPPED"), std::string::npos) << ran.log;
    EXPECT_NE(ran.log.find("tools/make_onnx_cases.py"), std::string::npos) << ran.log;
  }
}

TEST(Suite, PassesWithALineACaseAndTheCount) {
  const SmallCase small;
  const Ran ran = run_suite(suite_that(kFine), small.data().c_str());
  EXPECT_EQ(ran.code, kPassed);
  EXPECT_EQ(ran.log,
            "ok    test_scale_small  largest error:  twin 1.0e-08\n"
            "test_scale_*: 1 passed, 0 failed\n");
}

TEST(Suite, FailsOnTooFewCases) {
  const SmallCase small, other("test_shift_small");
  EXPECT_EQ(run_suite(suite_that(kFine, 2), small.data().c_str()).code, kFailed);
  EXPECT_EQ(run_suite(suite_that(kFine), other.data().c_str()).code, kFailed);
}

TEST(Suite, FailsOnAWrongCase) {
  const SmallCase small;
  const auto judge = [](const Case&) { return std::vector<Verdict>{{"twin"}, {"SCALAR", 1, "y is off"}}; };
  const Ran ran = run_suite(suite_that(judge), small.data().c_str());
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_NE(ran.log.find("FAIL  test_scale_small  SCALAR: y is off\n"), std::string::npos) << ran.log;
  EXPECT_NE(ran.log.find("0 passed, 1 failed"), std::string::npos) << ran.log;
}

TEST(Suite, FailsOnACaseThatCannotBeReadOrUnderstood) {
  const SmallCase small;
  const auto refuse = [](const Case& c) -> std::vector<Verdict> { c.refuse("is not understood"); };
  EXPECT_EQ(run_suite(suite_that(refuse), small.data().c_str()).code, kFailed);
  std::filesystem::resize_file(small.file("x.npy"), std::filesystem::file_size(small.file("x.npy")) - 1);
  const Ran ran = run_suite(suite_that(kFine), small.data().c_str());
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_NE(ran.log.find("x.npy"), std::string::npos) << ran.log;
}

TEST(HalfUlp, IsThatOfTheDtype) {
  EXPECT_EQ(half_ulp("float32", 1), 0x1p-24);
  EXPECT_EQ(half_ulp("float32", -1.999), 0x1p-24);
  EXPECT_EQ(half_ulp("float32", 2), 0x1p-23);
  EXPECT_EQ(half_ulp("float16", 1), 0x1p-11);
  EXPECT_EQ(half_ulp("float16", 0), 0x1p-25);  // below the least normal number, steps are of 2^-24
  EXPECT_EQ(half_ulp("float16", 0x1p-20), 0x1p-25);
  EXPECT_EQ(half_ulp("bfloat16", 0.5), 0x1p-9);
  EXPECT_EQ(heed::testing::error_of([] { half_ulp("int64", 1); }),
            "the dtype is int64, expected float32, float16 or bfloat16");
}

Verdict compared(const std::vector<float>& expected, const std::vector<double>& got, double allowed) {
  Verdict verdict{"twin"};
  const Tensor tensor{"float32", io::NpyArray::of<float>({1, std::ssize(expected)}, expected)};
  compare("y", tensor, got, std::vector<double>(got.size(), allowed), verdict);
  return verdict;
}

TEST(Compare, AllowsWhatIsAllowedAndNoMore) {
  EXPECT_EQ(compared({1, 2}, {1.25, 2}, 0.25).wrong, "");
  EXPECT_EQ(compared({1, 2}, {1.25, 2}, 0.25).largest_error, 0.25);
  EXPECT_EQ(compared({1, 2, 3}, {1.25, 2.5, 3}, 0.125).wrong,
            "y has 2 of 3 elements wrong, the worst at [0, 1] is 2.5, expected 2 to within 0.12. ");
}

TEST(Compare, WantsTheSameInfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(compared({-infinity, nan}, {-kInfinity, kNaN}, 0).wrong, "");
  for (const double got : {kInfinity, -1e300, kNaN})
    EXPECT_NE(compared({-infinity}, {got}, kInfinity).wrong, "") << got;
  for (const double got : {kInfinity, kNaN}) EXPECT_NE(compared({1}, {got}, 1).wrong, "") << got;
  EXPECT_NE(compared({nan}, {1}, 1).wrong, "");
  EXPECT_NE(compared({1}, {1.5}, kNaN).wrong, "") << "a bound that is no number allows nothing";
}

TEST(Compare, RejectsAnotherNumberOfElements) {
  EXPECT_EQ(heed::testing::error_of([] { compared({1, 2}, {1}, 0); }), "y has 1 elements, expected 2: [1, 2]");
}

}  // namespace
}  // namespace heed::conformance
