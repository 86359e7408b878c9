// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/observe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/kernels/reference/check.h"

namespace heed::kernels::reference {
namespace {

struct Range {
  int64_t begin, end;
};

// The share of cell i when `cells` of them pool `count` places.
Range pooled(int64_t i, int64_t cells, int64_t count) {
  const int64_t begin = i * count / cells;
  return {begin, std::min(count, std::max(begin + 1, (i + 1) * count / cells))};
}

struct Pool {
  double mean = 0, max = 0;  // no weight is below 0
};

Pool pool(const View<const double, 2>& weights, const Range& queries, const Range& keys) {
  Pool result;
  double sum = 0;
  int64_t pairs = 0;
  for (int64_t t = queries.begin; t < queries.end; ++t) {
    for (int64_t s = keys.begin; s < keys.end; ++s) {
      const double weight = weights(t, s);
      sum += weight;
      ++pairs;
      if (weight > result.max || std::isnan(weight)) result.max = weight;  // nothing is above NaN: it stays
    }
  }
  if (pairs > 0) result.mean = sum / static_cast<double>(pairs);
  return result;
}

double entropy(const View<const double, 1>& row) {
  double sum = 0;
  for (int64_t s = 0; s < row.shape(0); ++s) {
    if (row(s) != 0) sum -= row(s) * std::log(row(s));
  }
  return sum;
}

// The keys above 0, from the largest weight down; the sort keeps the order of equals.
std::vector<int64_t> strongest(const View<const double, 1>& row) {
  std::vector<int64_t> keys;
  for (int64_t s = 0; s < row.shape(0); ++s) {
    if (row(s) != 0) keys.push_back(s);
  }
  std::stable_sort(keys.begin(), keys.end(), [&row](int64_t a, int64_t b) { return row(a) > row(b); });
  return keys;
}

void observe_row(const View<const double, 1>& row, const Dims<3>& place, const Observations& to) {
  const auto [b, h, t] = place;
  if (to.entropy) to.entropy(b, h, t) = entropy(row);
  if (!to.top_weights && !to.top_keys) return;
  const std::vector<int64_t> keys = strongest(row);
  const int64_t K = to.top_weights ? to.top_weights.shape(3) : to.top_keys.shape(3);
  for (int64_t i = 0; i < K; ++i) {
    const int64_t key = i < std::ssize(keys) ? keys[static_cast<size_t>(i)] : -1;
    if (to.top_weights) to.top_weights(b, h, t, i) = key < 0 ? 0 : row(key);
    if (to.top_keys) to.top_keys(b, h, t, i) = static_cast<int32_t>(key);
  }
}

// weights [T,S] of head h in batch b.
void observe_head(const View<const double, 2>& weights, int64_t b, int64_t h, const Observations& to) {
  const int64_t T = weights.shape(0), S = weights.shape(1);
  for (int64_t t = 0; t < T; ++t) observe_row({weights.at(t), {S}, {weights.stride(1)}}, {b, h, t}, to);

  for (int64_t s = 0; to.received && s < S; ++s) {
    double sum = 0;
    for (int64_t t = 0; t < T; ++t) sum += weights(t, s);
    to.received(b, h, s) = sum;
  }

  const auto fill = [&](const View<double, 4>& map, double Pool::*what) {
    for (int64_t i = 0; map && i < map.shape(2); ++i) {
      for (int64_t j = 0; j < map.shape(3); ++j) {
        map(b, h, i, j) = pool(weights, pooled(i, map.shape(2), T), pooled(j, map.shape(3), S)).*what;
      }
    }
  };
  fill(to.map_mean, &Pool::mean);
  fill(to.map_max, &Pool::max);
}

}  // namespace

void attention_observe(const View<const double, 4>& weights, const Observations& to) {
  const auto& [B, H, T, S] = weights.shape();
  check_data("weights", weights);
  check_if_wanted("entropy", to.entropy, {B, H, T});
  if (to.top_weights) check_shape("top_weights", to.top_weights, {B, H, T, kAny}, "K");
  if (to.top_keys)
    check_shape("top_keys", to.top_keys, {B, H, T, to.top_weights ? to.top_weights.shape(3) : kAny}, "K");
  check_if_wanted("received", to.received, {B, H, S});
  check_if_wanted("map_mean", to.map_mean, {B, H, to.map_mean.shape(2), to.map_mean.shape(3)});
  check_if_wanted("map_max", to.map_max, {B, H, to.map_max.shape(2), to.map_max.shape(3)});

  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      observe_head({weights.at(b, h), {T, S}, {weights.stride(2), weights.stride(3)}}, b, h, to);
    }
  }
}

}  // namespace heed::kernels::reference
