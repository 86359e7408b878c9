#include "heed/io/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace heed::io {
namespace {

// Letters to insert, delete or replace to come from a to b (Levenshtein): one row of the table at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
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
