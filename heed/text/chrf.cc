// SPDX-License-Identifier: Apache-2.0
#include "heed/text/chrf.h"

#include <array>
#include <cstdint>

#include "heed/text/metric_counts.h"
#include "heed/text/utf8.h"

namespace heed::text {
namespace {

constexpr size_t kOrders = 6;
constexpr double kBeta = 2;

struct Counts {
  int64_t hypothesis = 0, reference = 0, shared = 0;
};

std::u32string without_spaces(std::string_view text) {
  std::u32string characters = characters_of(text);
  std::erase_if(characters, is_space);
  return characters;
}

// F = (1 + beta^2) P R / (beta^2 P + R), of the mean precision and recall over the orders that both sides have.
double f_score(const std::array<Counts, kOrders>& counts) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const Counts& order : counts) {
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += static_cast<double>(order.shared) / static_cast<double>(order.hypothesis);
    recall += static_cast<double>(order.shared) / static_cast<double>(order.reference);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * (1 + kBeta * kBeta) * precision * recall / (kBeta * kBeta * precision + recall);
}

}  // namespace

double chrf(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  check_counts("chrf", hypotheses.size(), references.size());
  std::array<Counts, kOrders> counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const std::u32string hypothesis = without_spaces(hypotheses[i]), reference = without_spaces(references[i]);
    for (size_t n = 0; n < kOrders; ++n) {
      const int64_t expected = ngram_count(reference, n + 1);
      // As in sacreBLEU: runs are not held against a reference that is too short to have any.
      counts[n].hypothesis += expected > 0 ? ngram_count(hypothesis, n + 1) : 0;
      counts[n].reference += expected;
      counts[n].shared += shared_ngrams(hypothesis, reference, n + 1);
    }
  }
  return f_score(counts);
}

}  // namespace heed::text
