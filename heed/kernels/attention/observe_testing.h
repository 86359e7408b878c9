// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of observers share: everything that can be observed of a problem, in guarded memory, and how far from
// the twin it may be.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/kernels/attention/error_bounds.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/testing.h"
#include "heed/kernels/attention/visibility.h"
#include "heed/kernels/reference/observe.h"

namespace heed::kernels::attention_testing {

// How wrong each pair [B,Hq,T,S] may be at each stage; 0 for the weight of a hidden one. The derivation is that of
// error_bounds.h, with the roundings of natural units on top: a few more of each number's own size.
struct PairErrors {
  std::vector<double> raw, capped, masked, weight;
};

class PairErrorsOfRow {
 public:
  PairErrorsOfRow(const Problem& problem, const Twin& twin, int64_t b, int64_t h, int64_t t)
      : p_(problem), twin_(twin), n_(problem.instance.shape), b_(b), h_(h), t_(t) {
    row_ = static_cast<size_t>((b * n_.Hq + h) * n_.T + t);
    head_ = static_cast<size_t>(b * n_.Hk + h / problem.instance.group());
  }

  void append_to(PairErrors& errors) const {
    const AttentionOptions options = p_.options();
    const Visibility visibility(options.mask, n_.B, n_.T, n_.S);
    const double cap = options.softcap;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    std::vector<double> log_errors;
    for (int64_t s = 0; s < n_.S; ++s) {
      const double raw = twin_.raw[at(s)], raw_error = score_error(s);
      const double capped = cap > 0 ? cap * std::tanh(raw / cap) : raw;
      const double capped_error = raw_error + (cap > 0 ? 8 * kUnit * std::abs(capped) : 0);
      double terms = std::abs(capped);
      if (options.mask.alibi) {
        const double distance = static_cast<double>(std::abs(visibility.position(b_, t_) - s));
        terms += std::abs(double{options.mask.alibi->slopes[static_cast<size_t>(h_)]}) * distance;
      }
      if (seen(s)) terms += std::abs(twin_.masked[at(s)]) + terms;  // at least the size of the bias
      errors.raw.push_back(raw_error + 4 * kUnit * std::abs(raw));
      errors.capped.push_back(capped_error + 4 * kUnit * std::abs(capped));
      errors.masked.push_back(capped_error + 4 * kUnit * terms);
      log_errors.push_back(errors.masked.back());
      if (seen(s)) largest = std::max(largest, twin_.masked[at(s)]);
    }
    for (int64_t s = 0; s < n_.S; ++s) {
      double& error = log_errors[static_cast<size_t>(s)];
      if (seen(s)) error += 2 * kUnit * (largest - twin_.masked[at(s)] + 5);
      if (seen(s)) sum += twin_.weights[at(s)] * std::exp(error);
    }
    const double normalizer = std::log(sum) + kUnit * static_cast<double>(n_.S + 12);
    for (int64_t s = 0; s < n_.S; ++s) {
      const double error = log_errors[static_cast<size_t>(s)] + normalizer + 4 * kUnit;
      errors.weight.push_back(seen(s) ? twin_.weights[at(s)] * std::expm1(error) + kTiny : 0);
    }
  }

 private:
  size_t at(int64_t s) const { return row_ * static_cast<size_t>(n_.S) + static_cast<size_t>(s); }
  bool seen(int64_t s) const { return twin_.seen[at(s)] != 0; }

  // D + 8 roundings of each term; each tanh of the additive score has five of its own.
  double score_error(int64_t s) const {
    const auto D = static_cast<size_t>(n_.D), key = head_ * static_cast<size_t>(n_.S) + static_cast<size_t>(s);
    double size = 0;
    for (size_t d = 0; d < D; ++d) {
      const double q = twin_.q[row_ * D + d], k = twin_.k[key * D + d];
      const double w = twin_.w.empty() ? 0 : std::abs(twin_.w[static_cast<size_t>(h_) * D + d]);
      size += twin_.w.empty() ? std::abs(q * k) * static_cast<double>(D + 8)
                              : w * (std::abs(std::tanh(q + k)) * static_cast<double>(D + 8) + 5);
    }
    return kUnit * std::abs(p_.instance.score_scale()) * size;
  }

  const Problem& p_;
  const Twin& twin_;
  const AttentionShape& n_;
  int64_t b_, h_, t_;
  size_t row_, head_;
};

inline PairErrors pair_errors(const Problem& problem, const Twin& twin) {
  const AttentionShape& n = problem.instance.shape;
  PairErrors errors;
  for (int64_t b = 0; b < n.B; ++b)
    for (int64_t h = 0; h < n.Hq; ++h)
      for (int64_t t = 0; t < n.T; ++t) PairErrorsOfRow(problem, twin, b, h, t).append_to(errors);
  return errors;
}

// Row `row` of [B,Hq,T], of the twin's pairs.
struct TwinRow {
  std::span<const double> weights, scores, weight_errors, score_errors;
  std::span<const char> seen;

  TwinRow(const Twin& twin, const PairErrors& errors, int64_t row, int64_t S) {
    const auto of = [&](const auto& pairs) {
      return std::span(pairs).subspan(static_cast<size_t>(row * S), static_cast<size_t>(S));
    };
    weights = of(twin.weights), scores = of(twin.masked);
    weight_errors = of(errors.weight), score_errors = of(errors.masked);
    seen = of(twin.seen);
  }

  double entropy() const {
    double sum = 0;
    for (double w : weights) sum -= w > 0 ? w * std::log(w) : 0;
    return sum;
  }

  // entropy = ln(sum e^x) - sum e^x x / sum e^x, with x <= 0 the distance from the maximum rounded up by less than one
  // bit. Each term of the second sum is wrong by what its weight and its x are, and by a rounding or two an addition;
  // so is the first sum, within its logarithm.
  double entropy_error() const {
    const double roundings = 2 * kUnit * static_cast<double>(std::ssize(weights) + 12);
    double largest = -std::numeric_limits<double>::infinity(), error = 0;
    for (size_t s = 0; s < seen.size(); ++s)
      if (seen[s]) largest = std::max(largest, scores[s]);
    for (size_t s = 0; s < seen.size(); ++s) {
      if (!seen[s]) continue;
      const double distance = largest - scores[s] + 1, x_error = score_errors[s] + 2 * kUnit * (distance + 5);
      const double weight_error = weight_errors[s] + weights[s] * roundings;
      error += weight_error * (distance + 1) + (weights[s] + weight_error) * x_error;
    }
    return error + 8 * kUnit * (entropy() + 1) + roundings;
  }

  // The largest `rank`-th of weights that are each wrong by at most their error, times `sign`.
  double order_statistic(size_t rank, double sign) const {
    std::vector<double> shifted;
    for (size_t s = 0; s < seen.size(); ++s)
      if (seen[s]) shifted.push_back(weights[s] + sign * weight_errors[s]);
    std::sort(shifted.begin(), shifted.end(), std::greater<>());
    return shifted[rank];
  }
};

// K keys and their weights, as forward tells them of the row.
inline void expect_top(const TwinRow& row, std::span<const int32_t> keys, std::span<const float> weights) {
  const auto seen = static_cast<size_t>(std::count(row.seen.begin(), row.seen.end(), 1));
  std::set<int32_t> different;
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    if (rank >= seen) {
      EXPECT_EQ(keys[rank], -1);
      EXPECT_EQ(weights[rank], 0.0f);
      continue;
    }
    ASSERT_GE(keys[rank], 0) << "rank " << rank << " of " << seen;
    const auto key = static_cast<size_t>(keys[rank]);
    EXPECT_TRUE(row.seen[key]) << "key " << key;
    EXPECT_TRUE(different.insert(keys[rank]).second) << "key " << key << " comes twice";
    EXPECT_NEAR(weights[rank], row.weights[key], row.weight_errors[key]) << "rank " << rank;
    EXPECT_LE(weights[rank], row.order_statistic(rank, 1)) << "rank " << rank;
    EXPECT_GE(weights[rank], row.order_statistic(rank, -1)) << "rank " << rank;
    EXPECT_LE(weights[rank], weights[rank == 0 ? 0 : rank - 1]) << "rank " << rank;
  }
}

// What to observe.
struct Questions {
  std::vector<int64_t> queries = {};
  AttentionStage stage = AttentionStage::weight;
  int64_t M = 0, N = 0;  // of the map
  Layout layout = Layout::bhtd;

  std::string describe() const {
    std::string text = "stage=" + std::to_string(static_cast<int>(stage)) + " M=" + std::to_string(M) +
                       " N=" + std::to_string(N) + " queries={";
    for (int64_t t : queries) text += std::to_string(t) + ",";
    return text + "}";
  }
};

// Row-major.
template <class T>
struct Answers {
  std::vector<T> rows, received, map_mean, map_max;
};

inline Questions draw_questions(Rng& rng, const AttentionShape& n) {
  const auto size = [&](int64_t places) {
    const int64_t sizes[] = {0, 1, 2, 3, 7, 8, places / 2, places, places + 1, 2 * places + 3, places / 3 + 1};
    return sizes[rng.below(std::size(sizes))];
  };
  Questions ask{.stage = static_cast<AttentionStage>(rng.below(4)), .M = size(n.T), .N = size(n.S)};
  ask.layout = rng.below(2) ? Layout::padded : Layout::bhtd;
  for (uint64_t runs = rng.below(5); n.T > 0 && runs > 0; --runs) {
    const auto begin = static_cast<int64_t>(rng.below(static_cast<uint64_t>(n.T)));
    const int64_t end = std::min(n.T, begin + (rng.below(2) ? 1 : static_cast<int64_t>(rng.below(40))));
    for (int64_t t = begin; t < end; ++t) ask.queries.push_back(t);
  }
  return ask;
}

// The problem's stats are those of its last forward pass.
inline Answers<float> observe(const Problem& problem, const Questions& ask, Parallel& parallel) {
  const AttentionShape& n = problem.instance.shape;
  GuardedMemory memory;
  Rng places(problem.instance.seed, 7);
  const auto allot = [&](const Dims<4>& shape) {
    const View<float, 4> view = memory.allot(shape, ask.layout, places);
    fill(view, std::numeric_limits<float>::quiet_NaN());
    return view;
  };
  const View<float, 4> rows = allot({n.B, n.Hq, std::ssize(ask.queries), n.S}), received = allot({1, n.B, n.Hq, n.S});
  const AttentionObservations to{
      .queries = ask.queries,
      .stage = ask.stage,
      .rows = rows,
      .received = {received.data(), {n.B, n.Hq, n.S}, {received.stride(1), received.stride(2), received.stride(3)}},
      .map_mean = allot({n.B, n.Hq, ask.M, ask.N}),
      .map_max = allot({n.B, n.Hq, ask.M, ask.N})};
  const auto plan = ObservationPlan::make(problem.inputs(), problem.stats, to, problem.options());
  const size_t used = plan.workspace_bytes(parallel.threads());
  Workspace scratch(used + 256);
  std::memset(scratch.data(), 0xff, scratch.bytes());  // NaN, as floats
  attention_observe(plan, problem.inputs(), problem.stats, to, scratch, parallel);
  EXPECT_TRUE(std::all_of(scratch.data() + used, scratch.data() + scratch.bytes(), [](std::byte byte) {
    return byte == std::byte{0xff};
  })) << "more scratch was written than the plan counted";
  EXPECT_EQ(memory.damage(), "");
  return {flatten(rows), flatten(received), flatten(to.map_mean), flatten(to.map_max)};
}

// What the twin says of a full matrix [B,Hq,T,S].
inline Answers<double> twin_answers(const AttentionShape& n, const Questions& ask, const std::vector<double>& weights,
                                    const std::vector<double>& stage) {
  Answers<double> answers;
  const Dims<4> map{n.B, n.Hq, ask.M, ask.N}, pairs{n.B, n.Hq, n.T, n.S};
  answers.received.resize(static_cast<size_t>(n.B * n.Hq * n.S));
  answers.map_mean.resize(static_cast<size_t>(element_count(map)));
  answers.map_max = answers.map_mean;
  reference::attention_observe({weights.data(), pairs}, {.received = {answers.received.data(), {n.B, n.Hq, n.S}},
                                                         .map_mean = {answers.map_mean.data(), map},
                                                         .map_max = {answers.map_max.data(), map}});
  for (int64_t head = 0; head < n.B * n.Hq; ++head)
    for (int64_t t : ask.queries) {
      const auto row = stage.begin() + (head * n.T + t) * n.S;
      answers.rows.insert(answers.rows.end(), row, row + n.S);
    }
  return answers;
}

inline void expect_same_bits(const Answers<float>& a, const Answers<float>& b) {
  EXPECT_TRUE(same_bits(a.rows, b.rows)) << "rows";
  EXPECT_TRUE(same_bits(a.received, b.received)) << "received";
  EXPECT_TRUE(same_bits(a.map_mean, b.map_mean)) << "map_mean";
  EXPECT_TRUE(same_bits(a.map_max, b.map_max)) << "map_max";
}

}  // namespace heed::kernels::attention_testing
