// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/suite.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "heed/base/error.h"

namespace heed::conformance {
namespace {

using Path = std::filesystem::path;

constexpr const char* kHowToMakeThem =
    "The cases come from the Python package onnx. To make them, and to test with them:\n"
    "  python3 -m venv onnx-env && onnx-env/bin/pip install onnx==1.23.0 numpy\n"
    "  onnx-env/bin/python tools/make_onnx_cases.py data/onnx-cases\n"
    "  HEED_DATA=$PWD/data ./dev test\n";

int skip(const std::string& why, std::ostream& log) {
  log << "**** conformance SKIPPED: " << why << " ****\n" << kHowToMakeThem;
  return kSkipped;
}

std::vector<Path> folders_of(const Path& cases, const std::string& prefix) {
  std::vector<Path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    if (entry.path().filename().string().starts_with(prefix)) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

struct Result {
  bool passed = true;
  std::string line;
};

Result judge(const Suite& suite, const Path& folder) {
  std::ostringstream errors;
  std::string wrong;
  try {
    errors << std::scientific << std::setprecision(1);
    for (const Verdict& verdict : suite.judge(Case::read(folder))) {
      errors << "  " << verdict.way << " " << verdict.largest_error;
      if (!verdict.wrong.empty()) wrong += "  " + verdict.way + ": " + verdict.wrong;
    }
  } catch (const std::exception& error) {
    wrong += std::string("  ") + error.what();
  }
  const std::string name = folder.filename().string();
  if (!wrong.empty()) return {false, "FAIL  " + name + wrong};
  return {true, "ok    " + name + "  largest error:" + errors.str()};
}

std::string index_text(const io::Shape& shape, size_t flat) {
  io::Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = static_cast<int64_t>(flat) % shape[i];
    flat /= static_cast<size_t>(shape[i]);
  }
  return io::to_string(index);
}

}  // namespace

int run(const Suite& suite, const char* data, std::ostream& log) {
  if (!data) return skip("HEED_DATA is not set", log);
  const Path cases = Path(data) / "onnx-cases";
  if (!std::filesystem::is_directory(cases)) return skip("there is no folder " + cases.string(), log);

  const std::vector<Path> folders = folders_of(cases, suite.prefix);
  size_t passed = 0;
  for (const Path& folder : folders) {
    const Result result = judge(suite, folder);
    log << result.line << std::endl;
    passed += result.passed;
  }
  log << suite.prefix << "*: " << passed << " passed, " << folders.size() - passed << " failed\n";
  if (folders.size() < suite.at_least) {
    log << "FAIL  " << cases.string() << " has " << folders.size() << " of these cases, expected at least "
        << suite.at_least << "\n";
    return kFailed;
  }
  return passed == folders.size() ? kPassed : kFailed;
}

double half_ulp(const std::string& dtype, double rounded) {
  // Bits of the significand, and the exponent below which they no longer follow the number's size.
  struct Format {
    int digits, least_exponent;
  };
  static const std::map<std::string, Format> formats = {
      {"float32", {24, -126}}, {"float16", {11, -14}}, {"bfloat16", {8, -126}}};
  const auto format = formats.find(dtype);
  if (format == formats.end()) throw Error("the dtype is " + dtype + ", expected float32, float16 or bfloat16");
  const auto [digits, least_exponent] = format->second;
  const int exponent = rounded == 0 ? least_exponent : std::max(std::ilogb(rounded), least_exponent);
  return std::ldexp(1, exponent - digits);
}

void compare(const std::string& output, const Tensor& expected, std::span<const double> got,
             std::span<const double> allowed, Verdict& verdict) {
  const std::vector<double> values = expected.array.as_doubles();
  if (got.size() != values.size() || allowed.size() != values.size()) {
    throw Error(output + " has " + std::to_string(got.size()) + " elements, expected " + std::to_string(values.size()) +
                ": " + io::to_string(expected.array.shape));
  }
  double worst = 0;
  std::string where;
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (got[i] == values[i] || (std::isnan(got[i]) && std::isnan(values[i]))) continue;
    const double error = std::abs(got[i] - values[i]);
    verdict.largest_error = std::max(verdict.largest_error, error);
    if (std::isfinite(values[i]) && error <= allowed[i]) continue;
    ++wrong;
    if (where.empty() || error > worst) {
      worst = error;
      std::ostringstream text;
      text << "at " << index_text(expected.array.shape, i) << " is " << std::setprecision(9) << got[i] << ", expected "
           << values[i] << " to within " << std::setprecision(2) << allowed[i];
      where = text.str();
    }
  }
  if (!wrong) return;
  verdict.wrong += output + " has " + std::to_string(wrong) + " of " + std::to_string(values.size()) +
                   " elements wrong, the worst " + where + ". ";
}

}  // namespace heed::conformance
