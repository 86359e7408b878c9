#pragma once
// 'Did you mean': the nearest of the words that would have been understood.
#include <optional>
#include <string>
#include <vector>

namespace heed::cli {

// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
size_t edit_distance(const std::string&, const std::string&);

// The nearest candidate, if it is near: at most a third of its letters away, and at least one.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace heed::cli
