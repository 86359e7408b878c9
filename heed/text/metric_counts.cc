// SPDX-License-Identifier: Apache-2.0
#include "heed/text/metric_counts.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "heed/base/error.h"

namespace heed::text {
namespace {

std::vector<std::u32string_view> sorted_ngrams(std::u32string_view sequence, size_t n) {
  std::vector<std::u32string_view> result;
  for (size_t i = 0; i + n <= sequence.size(); ++i) result.push_back(sequence.substr(i, n));
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

void check_counts(const char* metric, size_t results, size_t references) {
  if (results == references && references > 0) return;
  throw Error(std::string(metric) + ": " + std::to_string(results) + " results and " + std::to_string(references) +
              " references, expected as many, and at least one");
}

int64_t shared_ngrams(std::u32string_view a, std::u32string_view b, size_t n) {
  std::vector<std::u32string_view> shared;
  std::ranges::set_intersection(sorted_ngrams(a, n), sorted_ngrams(b, n), std::back_inserter(shared));
  return static_cast<int64_t>(shared.size());
}

}  // namespace heed::text
