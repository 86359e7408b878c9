// SPDX-License-Identifier: Apache-2.0
#pragma once
// What sampling draws a token from: the tokens that may come, narrowed by top-k and top-p, each with its weight at a
// temperature. Not here: what becomes of the token that is drawn (search.cc).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "heed/base/rng.h"
#include "heed/decode/search.h"

namespace heed::decode {

// Tokens by their places in a row of logits, in order, and how likely each is drawn, not normalised.
struct Drawing {
  std::vector<int32_t> places;  // none: nothing may come
  std::vector<double> weights;

  int32_t draw(Rng& rng) const {
    double left = static_cast<double>(rng.uniform()) * std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < places.size(); ++i) {
      left -= weights[i];
      if (left < 0) return places[i];
    }
    return places.back();
  }
};

// Of `places`, the fewest that have `top_p` of the weight of all.
template <class Better, class Weight>
void keep_probable(std::vector<int32_t>& places, double top_p, const Better& better, const Weight& weight) {
  std::sort(places.begin(), places.end(), better);
  double all = 0, kept = 0;
  for (const int32_t place : places) all += weight(place);
  size_t count = 0;
  while (count < places.size() && (count == 0 || kept < top_p * all)) kept += weight(places[count++]);
  places.resize(count);
  std::sort(places.begin(), places.end());
}

// From the logits at `places`, of which any may come.
template <class T>
Drawing drawing_of(const T* logits, std::vector<int32_t> places, const SearchOptions& options) {
  const auto better = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  if (options.top_k > 0 && options.top_k < std::ssize(places)) {
    std::nth_element(places.begin(), places.begin() + options.top_k, places.end(), better);
    places.resize(static_cast<size_t>(options.top_k));
    std::sort(places.begin(), places.end());
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (const int32_t place : places) largest = std::max(largest, double{logits[place]});
  const auto weight = [&](int32_t place) { return std::exp((double{logits[place]} - largest) / options.temperature); };
  if (options.top_p < 1) keep_probable(places, options.top_p, better, weight);
  Drawing drawing{std::move(places), {}};
  for (const int32_t place : drawing.places) drawing.weights.push_back(weight(place));
  return drawing;
}

}  // namespace heed::decode
