// SPDX-License-Identifier: Apache-2.0
// A bound for the error of weights that are rebuilt from rounded queries and keys: for all pairs of a head, in time
// linear in its length.
//
// A weight w whose score is off by d becomes w e^d, so that large weights matter most. Those of the strongest keys are
// computed and compared. Any other key of the row has at most the last one's weight, and its score is off by at most
//
//   dot       scale (2 eps + eps^2) |q| |k|                       (Cauchy and Schwarz)
//   additive  scale eps sum_a |w_a| (|q_a| + max |k_a|)            (the slope of tanh is at most 1)
//
// with eps the rounding error of a number: 2^-11 of f16, 2^-24 of f32.
#include <algorithm>
#include <cmath>

#include "heed/trace/recorded.h"

namespace heed::trace {
namespace {

// What the sums themselves, the log-sum-exp and weights in f32 are rounded by.
constexpr double kRounding = 0x1p-20;

// One head.
class Tiles {
 public:
  Tiles(const RecordedLayer& layer, size_t place, const TileRows& rows, double eps)
      : layer_(layer), rows_(rows), place_(place), D_(static_cast<size_t>(layer.D)), eps_(eps) {
    if (!layer.w.empty()) w_ = std::span(layer.w).subspan(place * D_, D_);
    largest_.resize(D_);
    for (size_t s = 0; s < rows.k.size() / D_; ++s) {
      const std::span<const float> k = rows.k.subspan(s * D_, D_);
      longest_ = std::max(longest_, norm(k));
      for (size_t d = 0; d < D_; ++d) largest_[d] = std::max(largest_[d], std::abs(k[d]));
    }
  }

  double error_of_row(size_t t) const {
    const size_t K = rows_.top_keys.size() / rows_.lse.size();
    double error = 0;
    for (size_t i = t * K; i < (t + 1) * K; ++i) {
      if (rows_.top_keys[i] == kNoKey) return error;  // there are no others
      error = std::max(error, std::abs(weight(t, rows_.top_keys[i]) - double{rows_.top_weights[i]}));
    }
    return std::max(error, double{rows_.top_weights[(t + 1) * K - 1]} * std::expm1(score_error(t)));
  }

 private:
  static double norm(std::span<const float> x) {
    double sum = 0;
    for (const float one : x) sum += double{one} * double{one};
    return std::sqrt(sum);
  }

  double weight(size_t t, size_t s) const {
    double score = 0;
    for (size_t d = 0; d < D_; ++d) {
      const double a = double{rows_.q[t * D_ + d]}, b = double{rows_.k[s * D_ + d]};
      score += w_.empty() ? a * b : double{w_[d]} * std::tanh(a + b);
    }
    score *= layer_.score.scale;
    if (layer_.score.softcap) score = *layer_.score.softcap * std::tanh(score / *layer_.score.softcap);
    if (!layer_.score.slopes.empty()) {
      const auto distance = rows_.first + static_cast<int64_t>(t) - static_cast<int64_t>(s);
      score -= layer_.score.slopes[place_] * static_cast<double>(std::abs(distance));
    }
    return std::exp(score - double{rows_.lse[t]});
  }

  double score_error(size_t t) const {
    const std::span<const float> q = rows_.q.subspan(t * D_, D_);
    const double scale = std::abs(layer_.score.scale);
    if (w_.empty()) return scale * (2 * eps_ + eps_ * eps_) * norm(q) * longest_ + kRounding;
    double sum = 0;
    for (size_t d = 0; d < D_; ++d) sum += std::abs(double{w_[d]}) * (std::abs(double{q[d]}) + double{largest_[d]});
    return scale * eps_ * sum + kRounding;
  }

  const RecordedLayer& layer_;
  const TileRows& rows_;
  const size_t place_, D_;
  const double eps_;
  std::span<const float> w_;
  double longest_ = 0;          // key
  std::vector<float> largest_;  // of each number of the keys
};

}  // namespace

double tile_error(const RecordedLayer& layer, size_t head_place, const TileRows& rows, Storage stored) {
  const Tiles tiles(layer, head_place, rows, stored == Storage::f16 ? 0x1p-11 : 0x1p-24);
  double error = 0;
  for (size_t t = 0; t < rows.lse.size(); ++t) error = std::max(error, tiles.error_of_row(t));
  return error + kRounding;  // of the weights that were taken to be exact
}

}  // namespace heed::trace
