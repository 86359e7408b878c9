// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far from the twin a correct f32 kernel may be, element by element, derived from how often a term is rounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "heed/kernels/attention/testing.h"

namespace heed::kernels::attention_testing {

// worst: no correct kernel is farther from the twin. typical: root of the sum of squares of the terms of each element.
struct Bound {
  std::vector<double> worst, typical;
};
struct Bounds {
  Bound out, dq, dk, dv;
  std::vector<double> d_bias, d_head_gate, dw;  // worst
  std::vector<double> lse;                      // worst
  std::vector<double> normalizer;               // worst, of the same from stats
  double logit = 0;                             // root mean square of a score's size, weighted by the softmax
};

// How rounding travels through the formula. u is half an ulp of 1; a sum of n terms, added in any order, changes each
// term by a factor within (1 + u)^(+-n); all factors are gathered as exponents, so that nothing is 'first order'.
//
//   scores    scale log2(e) is folded into q (a few roundings), then D products are added: the score of a pair is wrong
//             by at most (D + 8) u scale sum_d |q_d k_d|. Subtracting the maximum, which is rounded up by less than
//             one, adds u (|score - max| + 1), the polynomial for 2^x adds 4 u: this is the pair's log_error.
//   weights   sum w is wrong by a factor e^(+-normalizer), normalizer = log(sum p e^log_error) + (S + 8) u. Weights
//             below 2^-126 of the largest may be anything that small: kTiny.
//   out       each p v carries both factors and the S additions of its own sum.
//   P again   backward makes e^(score - lse) anew: both factors, and two subtractions of size |score - max| + log S.
//   dS        = P (dP - delta). dP has (Dv + 4) u sum_d |dO_d V_d|; delta = sum_d dO_d out_d has the like, and the
//             error of out.
//   dQ dK dV  carry the error of dS or P, and as many roundings as they have terms. So does what they are added to.
//
// And where there is more than the product:
//   tanh      is right to 4 u of itself. The softcap passes on the error of its argument (its slope is at most 1), and
//             adds that; its slope 1 - t^2 is wrong by twice what t is.
//   additive  q_a + k_a is rounded, which tanh, being flat where it is large, passes on as at most u; so each w_a t_a
//             is wrong by 5 u |w_a|, and each 1 - t_a^2 by 12 u.
//   bias      ALiBi and bias add 4 u of the sizes of all terms.
//   flushed   what is below 2^-126 becomes zero: each term of a sum, and the sum at that point: 2 kFlushed a term.
//   P kept    dropout and gate are a factor f of each weight, f = gate keep / (1 - rate): three roundings more.
inline constexpr double kUnit = 0x1p-24, kTiny = 0x1p-120, kFlushed = 0x1p-126;

struct Pair {
  size_t key;
  double weight, score, log_error;
  double kept, factor;                // keep / (1 - rate), and f, with the gate
  double slope = 1, slope_error = 0;  // of the softcap
  double distance = 0;                // from the row's largest score
};

class RowBounds {
 public:
  RowBounds(const Problem& problem, const Twin& twin, Bounds& bounds, int64_t b, int64_t h, int64_t t)
      : x_(problem.instance), n_(x_.shape), twin_(twin), bounds_(bounds), place_{b, h, t} {
    row_ = static_cast<size_t>((b * n_.Hq + h) * n_.T + t);
    first_key_ = static_cast<size_t>((b * n_.Hk + h / x_.group()) * n_.S);
    gate_ = twin.gate.empty() ? 1 : twin.gate[static_cast<size_t>(h)];
    w_ = twin.w.empty() ? nullptr : &twin.w[static_cast<size_t>(h) * D_];
    per_query_ = kUnit * static_cast<double>(n_.S + 12);
    per_key_ = kUnit * static_cast<double>(n_.T * x_.group() + 12);
    find_pairs(twin.seen.data() + row_ * S_);
    bound_forward();
    bound_backward();
  }

 private:
  // One pair's score: how large its terms are, and how wrong it may be.
  Pair measure(size_t s) {
    const double *q = &twin_.q[row_ * D_], *k = &twin_.k[(first_key_ + s) * D_];
    double size = 0, squares = 0, flat = 0;
    for (size_t d = 0; d < D_; ++d) {
      const double term = scale_ * (w_ ? w_[d] * std::tanh(q[d] + k[d]) : q[d] * k[d]);
      size += std::abs(term), squares += term * term;
      if (w_) flat += std::abs(scale_ * w_[d]);
    }
    const double score = twin_.masked[row_ * S_ + s], raw = twin_.raw[row_ * S_ + s];
    const double weight = twin_.weights[row_ * S_ + s], cap = x_.extras.softcap;
    Pair pair{s, weight, score, kUnit * (static_cast<double>(n_.D + 8) * size + 5 * flat), kept(s), gate_ * kept(s)};
    double capped = raw;
    if (cap > 0) {
      const double t = std::tanh(raw / cap), t_error = pair.log_error / cap + 6 * kUnit;
      pair.slope = 1 - t * t;
      pair.slope_error = (2 + t_error) * t_error + 2 * kUnit;
      capped = cap * t;
      pair.log_error += 6 * kUnit * std::abs(capped);
    }
    if (x_.extras.alibi || x_.extras.bias)
      pair.log_error += 4 * kUnit * (std::abs(capped) + 2 * std::abs(score - capped) + position_error(s));
    bounds_.logit += weight * (squares + (score - capped) * (score - capped));
    return pair;
  }

  // ALiBi and bias may cancel: their own sizes count.
  double position_error(size_t s) const {
    double size = 0;
    if (x_.extras.alibi) size += static_cast<double>(n_.T + n_.S + static_cast<int64_t>(s));  // slopes are at most 1/2
    if (x_.extras.bias) size += 6;                                                            // standard deviations
    return size;
  }

  double kept(size_t s) const {
    const auto& [b, h, t] = place_;
    const Dropout& dropout = x_.extras.dropout;
    return dropout.keeps(b * n_.Hq + h, t, static_cast<int64_t>(s)) ? double{dropout.keep_scale()} : 0;
  }

  void find_pairs(const char* seen) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (size_t s = 0; s < S_; ++s) {
      if (!seen[s]) continue;
      pairs_.push_back(measure(s));
      largest = std::max(largest, pairs_.back().score);
    }
    for (Pair& pair : pairs_) {
      pair.distance = largest - pair.score;
      pair.log_error += kUnit * (pair.distance + 5);
      sum += pair.weight * std::exp(pair.log_error);
    }
    normalizer_ = pairs_.empty() ? 0 : std::log(sum) + per_query_;
  }

  void bound_forward() {
    const double lse = pairs_.empty() ? 0 : twin_.lse[row_];
    bounds_.normalizer.push_back(normalizer_ + 4 * kUnit * (log_keys_ + 2));
    bounds_.lse.push_back(bounds_.normalizer.back() + 4 * kUnit * std::abs(lse));
    for (const Pair& pair : pairs_) {
      const double f = std::abs(pair.factor);
      const double error = f * (pair.weight * std::expm1(pair.log_error + normalizer_ + per_query_) + kTiny);
      add(bounds_.out, row_ * Dv_, &twin_.v[(first_key_ + pair.key) * Dv_], Dv_, error, f * pair.weight);
    }
  }

  void bound_backward() {
    const double *d_out = &twin_.d_out[row_ * Dv_], *out = &twin_.out[row_ * Dv_];
    double delta = 0, delta_error = 0, delta_squares = 0;
    for (size_t d = 0; d < Dv_; ++d) {
      const double error = bounds_.out.worst[row_ * Dv_ + d];
      delta += d_out[d] * out[d];
      delta_error += std::abs(d_out[d]) * (error + per_width_ * (std::abs(out[d]) + error));
      delta_squares += d_out[d] * d_out[d] * out[d] * out[d];
    }
    for (const Pair& pair : pairs_) {
      const double* v = &twin_.v[(first_key_ + pair.key) * Dv_];
      double dp = 0, dp_size = 0, dp_squares = 0;
      for (size_t d = 0; d < Dv_; ++d) {
        const double product = d_out[d] * v[d];
        dp += product, dp_size += std::abs(product), dp_squares += product * product;
      }
      const double p = pair.weight, f = std::abs(pair.factor);
      const double log_error = pair.log_error + normalizer_ + kUnit * (pair.distance + 2 * log_keys_ + 12);
      const double ds = p * std::abs(pair.factor * dp - delta), difference = f * std::abs(dp) + std::abs(delta);
      const double difference_error = f * per_width_ * dp_size + delta_error + 6 * kUnit * difference;
      const double ds_error =
          ds * std::expm1(log_error) + p * std::exp(log_error) * difference_error + kTiny * (1 + difference);
      const double typical = p * (f * std::sqrt(dp_squares) + std::sqrt(delta_squares));
      bound_scores(pair, ds, ds_error, typical);
      const size_t key = first_key_ + pair.key;
      add(bounds_.dv, key * Dv_, d_out, Dv_, f * (p * std::expm1(log_error + per_key_) + kTiny), f * p);
      if (!bounds_.d_head_gate.empty()) {
        const double roundings = log_error + per_width_ + kUnit * static_cast<double>(n_.B * n_.T + n_.S + 12);
        bounds_.d_head_gate[static_cast<size_t>(place_[1])] +=
            pair.kept * dp_size * (p * std::expm1(roundings) + kTiny);
      }
    }
  }

  // dS of one pair goes to dq, dk, bias and w.
  void bound_scores(const Pair& pair, double ds, double ds_error, double typical) {
    if (!bounds_.d_bias.empty()) {
      const double terms = kUnit * static_cast<double>(n_.B * n_.Hq * n_.T * n_.S / std::ssize(bounds_.d_bias) + 12);
      bounds_.d_bias[bias_index(pair.key)] += ds_error + (ds + ds_error) * std::expm1(terms);
    }
    const double scale = std::abs(scale_), slope = std::abs(pair.slope);
    const double size = scale * ds * slope;
    const double error = scale * (ds_error * (slope + pair.slope_error) + ds * pair.slope_error);
    const auto with_sum = [&](double roundings) { return error + (size + error) * std::expm1(roundings); };
    typical *= scale * slope;
    const size_t key = first_key_ + pair.key;
    const double *q = &twin_.q[row_ * D_], *k = &twin_.k[key * D_];
    if (!w_) {
      add(bounds_.dq, row_ * D_, k, D_, with_sum(per_query_), typical);
      add(bounds_.dk, key * D_, q, D_, with_sum(per_key_), typical);
      return;
    }
    const double all_terms = kUnit * static_cast<double>(n_.B * n_.T * n_.S + 12);
    for (size_t a = 0; a < D_; ++a) {
      const double t = std::tanh(q[a] + k[a]), g = w_[a] * (1 - t * t);
      const double g_error = 12 * kUnit * std::abs(w_[a]) * (size + error);
      add(bounds_.dq, row_ * D_ + a, &g, 1, with_sum(per_query_), typical);
      add(bounds_.dk, key * D_ + a, &g, 1, with_sum(per_key_), typical);
      bounds_.dq.worst[row_ * D_ + a] += g_error;
      bounds_.dk.worst[key * D_ + a] += g_error;
      bounds_.dw[static_cast<size_t>(place_[1]) * D_ + a] +=
          std::abs(t) * with_sum(all_terms) + 6 * kUnit * (size + error);
    }
  }

  // The element of bias that is broadcast to this pair.
  size_t bias_index(size_t s) const {
    const Dims<4>& shape = *x_.extras.bias;
    const auto& [b, h, t] = place_;
    const int64_t at[] = {b, h, t, static_cast<int64_t>(s)};
    int64_t index = 0;
    for (size_t i = 0; i < 4; ++i) index = index * shape[i] + (shape[i] == 1 ? 0 : at[i]);
    return static_cast<size_t>(index);
  }

  // A term factor_d * x is added to each element d, where x is wrong by `error` and about as large as `typical`.
  static void add(Bound& bound, size_t begin, const double* factor, size_t width, double error, double typical) {
    for (size_t d = 0; d < width; ++d) {
      bound.worst[begin + d] += std::abs(factor[d]) * error + 2 * kFlushed;
      bound.typical[begin + d] += factor[d] * factor[d] * typical * typical;
    }
  }

  const Instance& x_;
  const AttentionShape& n_;
  const Twin& twin_;
  Bounds& bounds_;
  const Dims<3> place_;  // b, h, t
  const double scale_ = x_.score_scale();
  const size_t D_ = static_cast<size_t>(n_.D), Dv_ = static_cast<size_t>(n_.Dv), S_ = static_cast<size_t>(n_.S);
  const double log_keys_ = std::log(static_cast<double>(n_.S + 1)), per_width_ = kUnit * static_cast<double>(n_.Dv + 4);
  size_t row_, first_key_;
  double gate_;
  const double* w_;
  double per_query_, per_key_;  // roundings in a sum over keys, and over the queries that share a key
  std::vector<Pair> pairs_;
  double normalizer_ = 0;
};

// What the gradients are added to takes part in every rounding of the sum.
inline Bound bound_of_gradient(size_t size, int64_t terms) {
  Bound bound;
  for (size_t i = 0; i < size; ++i) {
    const double beginning = std::abs(initial_gradient(static_cast<int64_t>(i)));
    bound.worst.push_back(beginning * kUnit * static_cast<double>(terms + 8));
    bound.typical.push_back(beginning * beginning);
  }
  return bound;
}

inline double root_mean_square(const std::vector<double>& numbers) {
  return std::sqrt(std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0) /
                   static_cast<double>(std::max<size_t>(1, numbers.size())));
}

inline Bounds error_bounds(const Problem& problem, const Twin& twin) {
  const Instance& x = problem.instance;
  const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
  Bounds bounds;
  bounds.out.worst.resize(twin.out.size());
  bounds.out.typical.resize(twin.out.size());
  bounds.dq = bound_of_gradient(twin.dq.size(), S);
  bounds.dk = bound_of_gradient(twin.dk.size(), T * x.group());
  bounds.dv = bound_of_gradient(twin.dv.size(), T * x.group());
  bounds.d_bias = bound_of_gradient(twin.d_bias.size(), B * Hq * T * S).worst;
  bounds.d_head_gate = bound_of_gradient(twin.d_head_gate.size(), B * T + S).worst;
  bounds.dw = bound_of_gradient(twin.dw.size(), B * T * S).worst;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      for (int64_t t = 0; t < T; ++t) RowBounds(problem, twin, bounds, b, h, t);
  bounds.logit = std::sqrt(bounds.logit / static_cast<double>(std::max<int64_t>(1, B * Hq * T)));
  for (Bound* bound : {&bounds.out, &bounds.dq, &bounds.dk, &bounds.dv})
    for (double& typical : bound->typical) typical = std::sqrt(typical);
  return bounds;
}

inline ::testing::AssertionResult within(const std::vector<float>& got, const std::vector<double>& want,
                                         const std::vector<double>& bound) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " numbers, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i)
    if (double{got[i]} != want[i] && !(std::abs(double{got[i]} - want[i]) <= bound[i]))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", expected " << want[i] << " +- " << bound[i];
  return ::testing::AssertionSuccess();
}

// Roundings are independent, so that n of them together are about sqrt(n) u of what they round, and those of the scores
// count as often as the scores are large (`logit`). Worst cases grow with n instead and could hide a wrong result.
inline void expect_small_mean_error(const Instance& x, const Results<float>& got, const Twin& twin,
                                    const Bounds& bounds, double logit) {
  const int64_t roundings = x.shape.D + x.shape.Dv + x.shape.S + x.shape.T * x.group() + 30;
  const double relative = kUnit * std::sqrt(static_cast<double>(roundings)) * (1 + logit);
  const auto expect = [&](const char* name, const auto& numbers, const auto& expected, const Bound& bound) {
    std::vector<double> error;
    for (size_t i = 0; i < numbers.size(); ++i) error.push_back(double{numbers[i]} - expected[i]);
    EXPECT_LE(root_mean_square(error), relative * root_mean_square(bound.typical)) << name << ", root mean square";
  };
  expect("out", got.out, twin.out, bounds.out);
  expect("dq", got.dq, twin.dq, bounds.dq);
  expect("dk", got.dk, twin.dk, bounds.dk);
  expect("dv", got.dv, twin.dv, bounds.dv);
}

// Each element in its worst-case bound and, at moderate logits, the whole tensor in the statistical one.
inline void expect_near_twin(const Instance& x, const Results<float>& got, const Twin& twin, const Bounds& bounds) {
  EXPECT_TRUE(within(got.out, twin.out, bounds.out.worst)) << "out";
  EXPECT_TRUE(within(got.lse, twin.lse, bounds.lse)) << "lse";
  EXPECT_TRUE(within(got.dq, twin.dq, bounds.dq.worst)) << "dq";
  EXPECT_TRUE(within(got.dk, twin.dk, bounds.dk.worst)) << "dk";
  EXPECT_TRUE(within(got.dv, twin.dv, bounds.dv.worst)) << "dv";
  EXPECT_TRUE(within(got.d_bias, twin.d_bias, bounds.d_bias)) << "d_bias";
  EXPECT_TRUE(within(got.d_head_gate, twin.d_head_gate, bounds.d_head_gate)) << "d_head_gate";
  EXPECT_TRUE(within(got.dw, twin.dw, bounds.dw)) << "dw";
  if (bounds.logit <= 4) expect_small_mean_error(x, got, twin, bounds, bounds.logit);
}

}  // namespace heed::kernels::attention_testing
