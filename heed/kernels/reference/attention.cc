// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/kernels/attention/visibility.h"
#include "heed/kernels/reference/check.h"

namespace heed::kernels::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Query t of head h in batch b.
struct Query {
  int64_t b, h, t;
};

// The element of (query, s) in an array that broadcasts to [B,Hq,T,S].
template <class T>
T& broadcast_at(const View<T, 4>& view, const Query& i, int64_t s) {
  const auto index = [&view](size_t dim, int64_t whole) { return view.shape(dim) == 1 ? 0 : whole; };
  return view(index(0, i.b), index(1, i.h), index(2, i.t), index(3, s));
}

void check_options(const AttentionOptions& options, const AttentionShape& n) {
  const Mask& mask = options.mask;
  const float softcap = options.softcap, rate = options.dropout.rate;
  if (mask.dense) check_broadcast("dense.visible", mask.dense->visible, {n.B, n.Hq, n.T, n.S});
  if (mask.alibi && std::ssize(mask.alibi->slopes) != n.Hq) {
    throw Error("attention: alibi.slopes has " + std::to_string(mask.alibi->slopes.size()) + " entries, expected " +
                std::to_string(n.Hq) + " (Hq)");
  }
  if (!(softcap >= 0 && std::isfinite(softcap))) {
    throw Error("attention: softcap is " + std::to_string(softcap) + ", expected a finite number, 0 or more");
  }
  if (!(rate >= 0 && rate < 1)) {
    throw Error("attention: dropout.rate is " + std::to_string(rate) + ", expected at least 0 and below 1");
  }
}

AttentionShape check_inputs(const Inputs& in) {
  const auto& [q, k, v, bias, head_gate, w] = in;
  const AttentionShape n{q.shape(0), q.shape(1), k.shape(1), q.shape(2), k.shape(2), q.shape(3), v.shape(3)};
  check_shape("q", q, {kAny, n.Hq, n.T, n.D}, "B");
  if (n.D < 1) throw Error("attention: q has shape " + to_string(q.shape()) + ", expected D of 1 or more");
  check_shape("k", k, {n.B, n.Hk, kAny, n.D}, "S");
  if (n.Hk < 1) throw Error("attention: k has 0 heads, expected 1 or more");
  if (n.Hq % n.Hk != 0) {
    throw Error("attention: q has " + std::to_string(n.Hq) + " heads, expected a multiple of " + std::to_string(n.Hk) +
                " (the heads of k)");
  }
  check_shape("v", v, {n.B, n.Hk, n.S, kAny}, "Dv");
  if (bias) check_broadcast("bias", bias, {n.B, n.Hq, n.T, n.S});
  check_if_wanted("head_gate", head_gate, {n.Hq});
  check_if_wanted("w", w, {n.Hq, n.D});
  return n;
}

// One call: its inputs and options, checked, and the formula for one pair of query and key.
struct Call {
  Inputs in;
  AttentionOptions options;
  AttentionShape n;
  Visibility visibility;
  double scale, softcap, keep_scale;

  Call(const Inputs& inputs, const AttentionOptions& given)
      : in(inputs), options(given), n(check_inputs(inputs)), visibility(given.mask, n.B, n.T, n.S) {
    check_options(options, n);
    const double default_scale = in.w ? 1 : 1 / std::sqrt(static_cast<double>(n.D));
    scale = options.scale ? double{*options.scale} : default_scale;
    softcap = options.softcap;
    keep_scale = options.dropout.on() ? 65536.0 / (65536 - options.dropout.threshold()) : 1;
  }

  // Query heads share key heads in groups of Hq / Hk neighbours.
  int64_t key_head(int64_t h) const { return h / (n.Hq / n.Hk); }

  double gate(const Query& i) const { return in.head_gate ? in.head_gate(i.h) : 1; }

  // scale * f(q, k_s), where f is sum_d q_d k_sd, or sum_d w_d tanh(q_d + k_sd).
  double raw(const Query& i, int64_t s) const {
    const int64_t g = key_head(i.h);
    double f = 0;
    for (int64_t d = 0; d < n.D; ++d) {
      const double q = in.q(i.b, i.h, i.t, d), k = in.k(i.b, g, s, d);
      f += in.w ? in.w(i.h, d) * std::tanh(q + k) : q * k;
    }
    return scale * f;
  }

  // c tanh(score / c)
  double capped(double score) const { return softcap > 0 ? softcap * std::tanh(score / softcap) : score; }

  // Whether a Dense mask or a bias of -inf masks a key that Visibility leaves visible.
  bool hidden(const Query& i, int64_t s) const {
    return (options.mask.dense && !broadcast_at(options.mask.dense->visible, i, s)) || bias(i, s) == -kInfinity;
  }

  // -slope_h |p - s|, for a query at position p among the keys. In double, where no difference overflows.
  double alibi(const Query& i, int64_t s) const {
    if (!options.mask.alibi) return 0;
    const double distance = std::abs(static_cast<double>(visibility.position(i.b, i.t)) - static_cast<double>(s));
    return -double{options.mask.alibi->slopes[static_cast<size_t>(i.h)]} * distance;
  }

  double bias(const Query& i, int64_t s) const { return in.bias ? broadcast_at(in.bias, i, s) : 0; }

  // Dropout multiplies a weight by this.
  double keep(const Query& i, int64_t s) const {
    return options.dropout.keeps(i.b * n.Hq + i.h, i.t, s) ? keep_scale : 0;
  }
};

// A key that a query sees. A row holds those, and no others: masked keys are never read.
struct Seen {
  int64_t key;
  double capped;
  double score;  // capped, with ALiBi and bias
  double weight = 0;
  double keep = 1;
};
using Row = std::vector<Seen>;

Row visible_scores(const Call& call, const Query& i) {
  const KeyRange keys = call.visibility.row(i.b, i.t);
  Row row;
  for (int64_t s = keys.begin; s < keys.end; ++s) {
    if (call.hidden(i, s)) continue;
    const double capped = call.capped(call.raw(i, s));
    row.push_back({s, capped, capped + call.alibi(i, s) + call.bias(i, s)});
  }
  return row;
}

// weight_s = exp(score_s) / sum_s' exp(score_s'); gives back the log of that sum. The maximum is subtracted from every
// score, which changes no weight, so that exp stays in range. A row with nothing above -inf sees nothing: it is
// emptied. A score of +inf gives exp(inf - inf) = NaN, and it or a NaN makes the sum, and so the row, NaN.
double softmax(Row& row) {
  if (std::all_of(row.begin(), row.end(), [](const Seen& seen) { return seen.score == -kInfinity; })) {
    row.clear();
    return -kInfinity;
  }
  double max = -kInfinity;
  for (const Seen& seen : row) max = std::max(max, seen.score);
  double sum = 0;
  for (Seen& seen : row) {
    seen.weight = std::exp(seen.score - max);
    sum += seen.weight;
  }
  for (Seen& seen : row) seen.weight /= sum;
  return max + std::log(sum);
}

void draw_dropout(const Call& call, const Query& i, Row& row) {
  for (Seen& seen : row) seen.keep = call.keep(i, seen.key);
}

template <class Body>
void for_each_query(const AttentionShape& n, Body body) {
  for (int64_t b = 0; b < n.B; ++b) {
    for (int64_t h = 0; h < n.Hq; ++h) {
      for (int64_t t = 0; t < n.T; ++t) body(Query{b, h, t});
    }
  }
}

// Writes the first three stages of a query, where wanted: raw and capped of every pair, masked ones too.
void show_scores(const Call& call, const Query& i, const Row& row, const Outputs& outputs) {
  const auto& [b, h, t] = i;
  for (int64_t s = 0; s < call.n.S; ++s) {
    if (outputs.raw) outputs.raw(b, h, t, s) = call.raw(i, s);
    if (outputs.capped) outputs.capped(b, h, t, s) = call.capped(call.raw(i, s));
    if (outputs.masked) outputs.masked(b, h, t, s) = -kInfinity;
  }
  if (!outputs.masked) return;
  for (const Seen& seen : row) outputs.masked(b, h, t, seen.key) = seen.score;
}

void show_weights(const Call& call, const Query& i, const Row& row, const Outputs& outputs) {
  if (!outputs.weights) return;
  for (int64_t s = 0; s < call.n.S; ++s) outputs.weights(i.b, i.h, i.t, s) = 0;
  for (const Seen& seen : row) outputs.weights(i.b, i.h, i.t, seen.key) = seen.weight;
}

// From d_score_s, the gradient of a score after ALiBi and bias, to those of bias, q, k and w.
void add_score_gradient(const Call& call, const Query& i, const Seen& seen, double d_score, const Gradients& to) {
  const auto& [b, h, t] = i;
  const int64_t s = seen.key, g = call.key_head(h);
  if (to.d_bias) broadcast_at(to.d_bias, i, s) += d_score;

  // capped = c tanh(raw / c):  d_raw = d_capped (1 - (capped / c)^2);  raw = scale f:  d_f = scale d_raw
  const double tanh_raw = call.softcap > 0 ? seen.capped / call.softcap : 0;
  const double d_f = call.scale * (1 - tanh_raw * tanh_raw) * d_score;

  for (int64_t d = 0; d < call.n.D; ++d) {
    const double q = call.in.q(b, h, t, d), k = call.in.k(b, g, s, d);
    double df_dq = k, df_dk = q;  // of f = sum_d q_d k_sd
    if (call.in.w) {              // of f = sum_d w_d tanh(q_d + k_sd)
      const double y = std::tanh(q + k);
      df_dq = df_dk = call.in.w(h, d) * (1 - y * y);
      if (to.dw) to.dw(h, d) += d_f * y;
    }
    if (to.dq) to.dq(b, h, t, d) += d_f * df_dq;
    if (to.dk) to.dk(b, g, s, d) += d_f * df_dk;
  }
}

void check_gradients(const Call& call, const Gradients& gradients) {
  const auto& [q, k, v, bias, head_gate, w] = call.in;
  const auto& [d_out, dq, dk, dv, d_bias, d_head_gate, dw] = gradients;
  const auto check_of_optional = [](const char* name, const auto& gradient, const char* of, const auto& input) {
    if (gradient && !input) throw Error(std::string("attention: ") + name + " is wanted, but there is no " + of);
    check_if_wanted(name, gradient, input.shape());
  };
  check_shape("d_out", d_out, {call.n.B, call.n.Hq, call.n.T, call.n.Dv});
  check_if_wanted("dq", dq, q.shape());
  check_if_wanted("dk", dk, k.shape());
  check_if_wanted("dv", dv, v.shape());
  check_of_optional("d_bias", d_bias, "bias", bias);
  check_of_optional("d_head_gate", d_head_gate, "head_gate", head_gate);
  check_of_optional("dw", dw, "w", w);
}

}  // namespace

void attention_forward(const Inputs& inputs, const Outputs& outputs, const AttentionOptions& options) {
  const Call call(inputs, options);
  const AttentionShape& n = call.n;
  const Dims<4> pairs{n.B, n.Hq, n.T, n.S};
  check_shape("out", outputs.out, {n.B, n.Hq, n.T, n.Dv});
  check_if_wanted("lse", outputs.lse, {n.B, n.Hq, n.T});
  check_if_wanted("raw", outputs.raw, pairs);
  check_if_wanted("capped", outputs.capped, pairs);
  check_if_wanted("masked", outputs.masked, pairs);
  check_if_wanted("weights", outputs.weights, pairs);

  for_each_query(n, [&](const Query& i) {
    Row row = visible_scores(call, i);
    show_scores(call, i, row, outputs);
    const double log_sum = softmax(row);
    if (outputs.lse) outputs.lse(i.b, i.h, i.t) = log_sum;
    show_weights(call, i, row, outputs);
    draw_dropout(call, i, row);

    // out_e = gate sum_s keep_s weight_s v_se; zero where nothing is seen, whatever the gate
    for (int64_t e = 0; e < n.Dv; ++e) {
      double sum = 0;
      for (const Seen& seen : row) sum += seen.keep * seen.weight * inputs.v(i.b, call.key_head(i.h), seen.key, e);
      outputs.out(i.b, i.h, i.t, e) = row.empty() ? 0 : call.gate(i) * sum;
    }
  });
}

void attention_backward(const Inputs& inputs, const Gradients& gradients, const AttentionOptions& options) {
  const Call call(inputs, options);
  check_gradients(call, gradients);
  const View<const double, 4>& d_out = gradients.d_out;

  for_each_query(call.n, [&](const Query& i) {
    const int64_t g = call.key_head(i.h);
    const double gate = call.gate(i);
    Row row = visible_scores(call, i);
    softmax(row);
    draw_dropout(call, i, row);

    // out_e = gate sum_s keep_s weight_s v_se:
    //   dv_se += gate keep_s weight_s d_out_e
    //   d_gate += sum_s keep_s weight_s sum_e d_out_e v_se
    //   d_weight_s = gate keep_s sum_e d_out_e v_se
    std::vector<double> d_weight;
    double mean = 0;  // of d_weight, by weight
    for (const Seen& seen : row) {
      const double kept = seen.keep * seen.weight;
      double dot = 0;
      for (int64_t e = 0; e < call.n.Dv; ++e) {
        dot += d_out(i.b, i.h, i.t, e) * inputs.v(i.b, g, seen.key, e);
        if (gradients.dv) gradients.dv(i.b, g, seen.key, e) += gate * kept * d_out(i.b, i.h, i.t, e);
      }
      if (gradients.d_head_gate) gradients.d_head_gate(i.h) += kept * dot;
      d_weight.push_back(gate * seen.keep * dot);
      mean += seen.weight * d_weight.back();
    }

    // The softmax:  d_score_s = weight_s (d_weight_s - sum_s' weight_s' d_weight_s')
    for (size_t j = 0; j < row.size(); ++j) {
      add_score_gradient(call, i, row[j], row[j].weight * (d_weight[j] - mean), gradients);
    }
  });
}

}  // namespace heed::kernels::reference
