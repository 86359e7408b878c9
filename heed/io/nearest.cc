// SPDX-License-Identifier: Apache-2.0
#include "heed/io/nearest.h"

#include <algorithm>
#include <vector>

namespace heed::io {
namespace {

// Letters to insert, delete or replace, or neighbours to swap, to come from a to b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known) {
  constexpr size_t kLongest = 200;  // what nobody typed is not compared
  if (name.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  size_t fewest = 0;
  for (const std::string& candidate : known) {
    const size_t letters = std::max(name.size(), candidate.size());
    if (letters > kLongest) continue;
    const size_t distance = edit_distance(name, candidate);
    if (3 * distance <= letters && (!best || distance < fewest)) {
      best = candidate;
      fewest = distance;
    }
  }
  return best;
}

}  // namespace heed::io
