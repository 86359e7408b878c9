// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs an operator's cases and says what came of each: the part that all operators share.
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/case.h"

namespace heed::conformance {

// What one way of computing a case came to: the twin, or a kernel on one instruction set.
struct Verdict {
  std::string way;
  double largest_error = 0;
  std::string wrong{};  // what is; empty: nothing
};

struct Suite {
  std::string prefix;   // of the names of its cases
  size_t at_least = 1;  // this many cases: a truncated folder must not pass
  std::function<std::vector<Verdict>(const Case&)> judge;
};

// Exit codes of a program that runs a suite. ctest shows the last one as 'skipped'.
inline constexpr int kPassed = 0, kFailed = 1, kSkipped = 77;

// Runs the cases in <data>/onnx-cases, one line each, and counts them. Whatever is thrown is that case's failure.
// `data` may be null; without cases, the log says loudly that nothing was tested.
int run(const Suite& suite, const char* data, std::ostream& log);

// Half a unit in the last place of a dtype: how far what is expected may be from what it was rounded from.
double half_ulp(const std::string& dtype, double rounded);

// Every element of an output within `allowed` of what the case expects. An infinity must be the same one; a NaN must be
// one. Adds to the verdict.
void compare(const std::string& output, const Tensor& expected, std::span<const double> got,
             std::span<const double> allowed, Verdict& verdict);

}  // namespace heed::conformance
