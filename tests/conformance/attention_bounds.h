// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far attention computed with rounding may be from the formula, element by element, for any unit u of rounding
// (half an ulp of 1).
//
//   raw      size = scale sum_d |q_d k_d|. A sum of D products, and a few factors on the way: (D + 8) u size.
//   capped   tanh(x) / x falls, so that a relative error of x is none larger in tanh(x); tanh itself and its factors
//            add 8 u size.
//   masked   the bias is scaled and added: 2 u (size + |bias|).
//   weight   the logarithm of a weight before division is wrong by what the masked score is, and by u (distance from
//            the largest + 6) for the subtraction and the exponential; that of the sum by the most that any of its
//            terms is, and by (S + 8) u for adding them. Both together make a factor e^x.
//   out      each weight times value has that factor, and another e^((S + 8) u) for the sum.
//
// A weight below 2^-126 of the largest may be anything as small: kTiny.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/conformance/attention_node.h"

namespace heed::conformance {

class AttentionBounds {
 public:
  // `masked` and `weights` [B,Hq,T,S] from the twin: what is hidden is -inf in the one and 0 in the other.
  AttentionBounds(const AttentionNode<double>& node, const View<const double, 4>& masked,
                  const View<const double, 4>& weights)
      : node_(node), masked_(masked), weights_(weights) {}

  std::vector<double> scores(kernels::AttentionStage stage, double unit) const {
    std::vector<double> bounds(static_cast<size_t>(element_count(node_.pairs())));
    const View<double, 4> to(bounds.data(), node_.pairs());
    for_each_row([&](int64_t b, int64_t h, int64_t t) {
      const double log_error = stage == kernels::AttentionStage::weight ? unit * weight_roundings(b, h, t) : 0;
      for (int64_t s = 0; s < masked_.shape(3); ++s) {
        to(b, h, t, s) = stage == kernels::AttentionStage::weight
                             ? seen(b, h, t, s) * (weights_(b, h, t, s) * std::expm1(log_error) + kTiny)
                             : unit * score_roundings(stage, b, h, t, s);
      }
    });
    return bounds;
  }

  // As Y lies in memory.
  std::vector<double> out(double unit) const {
    std::vector<double> bounds;
    const View<double, 4> to = node_.out_in(bounds);
    const int64_t S = masked_.shape(3);
    for_each_row([&](int64_t b, int64_t h, int64_t t) {
      const double log_error = unit * (weight_roundings(b, h, t) + static_cast<double>(S + 8));
      for (int64_t e = 0; e < to.shape(3); ++e) {
        double sum = 0;
        for (int64_t s = 0; s < S; ++s) {
          if (!seen(b, h, t, s)) continue;
          sum += (weights_(b, h, t, s) * std::expm1(log_error) + kTiny) * std::abs(node_.v(b, h / node_.group(), s, e));
        }
        to(b, h, t, e) = sum;
      }
    });
    return bounds;
  }

 private:
  static constexpr double kTiny = 0x1p-120;

  template <class Body>
  void for_each_row(Body body) const {
    const auto [B, H, T, S] = node_.pairs();
    for (int64_t row = 0; row < B * H * T; ++row) body(row / (H * T), row / T % H, row % T);
  }

  bool seen(int64_t b, int64_t h, int64_t t, int64_t s) const { return !std::isinf(masked_(b, h, t, s)); }

  // As multiples of the unit.
  double score_roundings(kernels::AttentionStage stage, int64_t b, int64_t h, int64_t t, int64_t s) const {
    const int64_t D = node_.q.shape(3);
    const double default_scale = 1 / std::sqrt(static_cast<double>(D));
    const double scale = node_.options.scale ? double{*node_.options.scale} : default_scale;
    double size = 0;
    for (int64_t d = 0; d < D; ++d) size += scale * std::abs(node_.q(b, h, t, d) * node_.k(b, h / node_.group(), s, d));
    double roundings = static_cast<double>(D + 8) * size;
    if (stage == kernels::AttentionStage::raw) return roundings;
    if (node_.options.softcap > 0) roundings += 8 * size;
    if (stage == kernels::AttentionStage::capped || !seen(b, h, t, s)) return roundings;
    // |masked| <= size + |bias|, and |bias| <= size + |masked|
    return roundings + 2 * (2 * size + std::abs(masked_(b, h, t, s)));
  }

  // Of the logarithm of any weight of a row.
  double weight_roundings(int64_t b, int64_t h, int64_t t) const {
    const int64_t S = masked_.shape(3);
    double roundings = 0, largest = -std::numeric_limits<double>::infinity(), least = -largest;
    for (int64_t s = 0; s < S; ++s) {
      if (!seen(b, h, t, s)) continue;
      roundings = std::max(roundings, score_roundings(kernels::AttentionStage::masked, b, h, t, s));
      largest = std::max(largest, masked_(b, h, t, s));
      least = std::min(least, masked_(b, h, t, s));
    }
    return 2 * (roundings + largest - least + 6) + static_cast<double>(S + 8);
  }

  const AttentionNode<double>& node_;
  View<const double, 4> masked_, weights_;
};

}  // namespace heed::conformance
