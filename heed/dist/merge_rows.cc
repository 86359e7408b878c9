// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/merge_rows.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "heed/base/error.h"

namespace heed::dist {
namespace {

using kernels::AttentionOutputs;

constexpr int64_t kRowsOfTask = 256;

// What a row's numbers over some keys are multiplied with, for those over all.
struct Shares {
  float rows = 0, part = 0;
};

// Also writes the merged statistics. A side that has seen no key has no share.
Shares merge_stats(float* rows, const float* part) {
  if (rows[1] == 0) {
    std::copy_n(part, 2, rows);
    return {0, 1};
  }
  const float max = std::max(rows[0], part[0]);
  const float rows_sum = rows[1] * std::exp2(rows[0] - max), part_sum = part[1] * std::exp2(part[0] - max);
  rows[0] = max, rows[1] = rows_sum + part_sum;
  return {rows_sum / rows[1], part_sum / rows[1]};
}

// -p ln p, whose limit at 0 is 0.
float surprise(float p) { return p == 0 ? 0 : -p * std::log(p); }

float log_sum_exp(const float* stats) {
  if (stats[1] == 0) return -std::numeric_limits<float>::infinity();
  return std::numbers::ln2_v<float> * (stats[0] + std::log2(stats[1]));
}

// The strongest keys of a row, strongest first; empty places, with key -1, come last.
struct Strongest {
  float* weights;
  int32_t* keys;

  // Whether place i comes before place j of another list: of equal weights the first key does.
  bool before(int64_t i, const Strongest& other, int64_t j) const {
    if (keys[i] < 0 || other.keys[j] < 0) return other.keys[j] < 0;
    return weights[i] != other.weights[j] ? weights[i] > other.weights[j] : keys[i] < other.keys[j];
  }
};

// rows <- the K strongest of both, where `part` is scaled and its keys are moved. `scratch` has room for K.
void merge_strongest(const Strongest& rows, const Strongest& part, const Strongest& scratch, int64_t K) {
  for (int64_t k = 0, i = 0, j = 0; k < K; ++k) {
    const bool first = rows.before(i, part, j);
    const Strongest& from = first ? rows : part;
    const int64_t at = first ? i++ : j++;
    scratch.weights[k] = from.weights[at], scratch.keys[k] = from.keys[at];
  }
  std::copy_n(scratch.weights, K, rows.weights);
  std::copy_n(scratch.keys, K, rows.keys);
}

class Merge {
 public:
  Merge(const AttentionOutputs& rows, const AttentionOutputs& part, int64_t first_key, int threads)
      : rows_(rows), part_(part), first_key_(first_key) {
    if (rows.top_keys) K_ = rows.top_keys.shape(3);
    const auto places = static_cast<size_t>(K_ * 2 * threads);
    weights_.resize(places), keys_.resize(places);
  }

  void row(int64_t b, int64_t h, int64_t t, int worker) noexcept {
    if (part_.stats(b, h, t, 1) == 0) return;  // it has seen no key
    const bool seen = rows_.stats(b, h, t, 1) != 0;
    const Shares shares = merge_stats(rows_.stats.at(b, h, t), part_.stats.at(b, h, t));
    const auto weighted = [&](float rows, float part) { return seen ? shares.rows * rows + shares.part * part : part; };
    float* out = rows_.out.at(b, h, t);
    const float* part = part_.out.at(b, h, t);
    for (int64_t d = 0; d < rows_.out.shape(3); ++d) out[d] = weighted(out[d], part[d]);
    if (rows_.lse) rows_.lse(b, h, t) = log_sum_exp(rows_.stats.at(b, h, t));
    if (rows_.entropy) {
      const float merged = weighted(rows_.entropy(b, h, t), part_.entropy(b, h, t));
      rows_.entropy(b, h, t) = merged + surprise(shares.rows) + surprise(shares.part);
    }
    if (K_ > 0) merge_top(b, h, t, shares, worker);
  }

 private:
  void merge_top(int64_t b, int64_t h, int64_t t, const Shares& shares, int worker) {
    const Strongest rows{rows_.top_weights.at(b, h, t), rows_.top_keys.at(b, h, t)};
    const auto place = static_cast<size_t>(K_ * 2 * worker);
    float* const weights = &weights_[place];
    int32_t* const keys = &keys_[place];
    for (int64_t k = 0; k < K_; ++k) {
      const int32_t key = part_.top_keys(b, h, t, k);
      rows.weights[k] *= shares.rows;
      weights[k] = shares.part * part_.top_weights(b, h, t, k);
      keys[k] = key < 0 ? key : static_cast<int32_t>(key + first_key_);
    }
    merge_strongest(rows, {weights, keys}, {weights + K_, keys + K_}, K_);
  }

  const AttentionOutputs &rows_, &part_;
  int64_t first_key_, K_ = 0;
  std::vector<float> weights_;  // [worker][2][K]: of the part, scaled, and of the merged list
  std::vector<int32_t> keys_;
};

template <size_t Rank>
void check(const char* name, const Dims<Rank>& part, const Dims<Rank>& rows) {
  if (part == rows) return;
  throw Error(std::string("merge_rows: ") + name + " of the part has shape " + to_string(part) + ", expected " +
              to_string(rows));
}

void check(const AttentionOutputs& rows, const AttentionOutputs& part) {
  const auto [B, H, T, Dv] = rows.out.shape();
  check("out", part.out.shape(), rows.out.shape());
  check("stats", part.stats.shape(), {B, H, T, 2});
  if (rows.stats.shape() != Dims<4>{B, H, T, 2}) {
    throw Error("merge_rows: stats has shape " + to_string(rows.stats.shape()) + ", expected " +
                to_string(Dims<4>{B, H, T, 2}));
  }
  if (rows.entropy) check("entropy", part.entropy.shape(), rows.entropy.shape());
  if (rows.top_weights.empty() != rows.top_keys.empty()) {
    throw Error("merge_rows: one of top_weights and top_keys is empty, expected both or neither");
  }
  if (rows.top_keys) {
    check("top_weights", part.top_weights.shape(), rows.top_keys.shape());
    check("top_keys", part.top_keys.shape(), rows.top_keys.shape());
  }
}

}  // namespace

void clear_rows(const AttentionOutputs& rows) {
  const auto [B, H, T, Dv] = rows.out.shape();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) {
        std::fill_n(rows.out.at(b, h, t), Dv, 0.0f);
        rows.stats(b, h, t, 0) = -FLT_MAX, rows.stats(b, h, t, 1) = 0;
        if (rows.lse) rows.lse(b, h, t) = -std::numeric_limits<float>::infinity();
        if (rows.entropy) rows.entropy(b, h, t) = 0;
        if (rows.top_weights) std::fill_n(rows.top_weights.at(b, h, t), rows.top_weights.shape(3), 0.0f);
        if (rows.top_keys) std::fill_n(rows.top_keys.at(b, h, t), rows.top_keys.shape(3), -1);
      }
    }
  }
}

void merge_rows(const AttentionOutputs& rows, const AttentionOutputs& part, int64_t first_key, Parallel& parallel) {
  check(rows, part);
  const auto [B, H, T, Dv] = rows.out.shape();
  Merge merge(rows, part, first_key, parallel.threads());
  const int64_t all = B * H * T;
  parallel.for_each((all + kRowsOfTask - 1) / kRowsOfTask, [&, H = H, T = T](int64_t task, int worker) {
    const int64_t end = std::min(all, (task + 1) * kRowsOfTask);
    for (int64_t i = task * kRowsOfTask; i < end; ++i) merge.row(i / (H * T), i / T % H, i % T, worker);
  });
}

}  // namespace heed::dist
