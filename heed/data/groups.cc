// SPDX-License-Identifier: Apache-2.0
#include "heed/data/groups.h"

#include <algorithm>
#include <numeric>

namespace heed::data {

std::vector<std::vector<size_t>> group_by_length(std::span<const int64_t> lengths, const GroupOptions& options) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] < lengths[b]; });
  std::vector<std::vector<size_t>> groups;
  for (const size_t item : order) {
    const bool fits = !groups.empty() && std::ssize(groups.back()) < options.rows &&
                      (std::ssize(groups.back()) + 1) * lengths[item] <= options.tokens &&
                      (!options.exact || lengths[groups.back().front()] == lengths[item]);
    if (!fits) groups.emplace_back();
    groups.back().push_back(item);
  }
  return groups;
}

}  // namespace heed::data
