#include "heed/kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/error.h"

namespace heed::kernels::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kAny = -1;

// `letter` is how the message calls the one extent that may be kAny.
template <class T, size_t Rank>
void check_shape(const char* name, const View<T, Rank>& view, const Dims<Rank>& expected, const char* letter = "") {
  bool same = true;
  std::string text;
  for (size_t i = 0; i < Rank; ++i) {
    same = same && (expected[i] == kAny || expected[i] == view.shape(i));
    text += (i ? ", " : "") + (expected[i] == kAny ? letter : std::to_string(expected[i]));
  }
  const std::string prefix = std::string("attention: ") + name;
  if (!same) throw Error(prefix + " has shape " + to_string(view.shape()) + ", expected [" + text + "]");
  if (view.empty() && view.size() > 0) throw Error(prefix + " has no data");
}

// An empty view means 'not wanted'.
template <class T, size_t Rank>
void check_if_wanted(const char* name, const View<T, Rank>& view, const Dims<Rank>& expected) {
  if (view) check_shape(name, view, expected);
}

// One call: its inputs, checked, and what follows from them and the options.
struct Call {
  Inputs in;
  AttentionShape n;
  double scale = 1;
  Visibility visibility;

  Call(const Inputs& inputs, const AttentionOptions& options) : in(inputs) {
    const auto& [q, k, v] = in;
    n = {q.shape(0), q.shape(1), k.shape(1), q.shape(2), k.shape(2), q.shape(3), v.shape(3)};
    check_shape("q", q, {kAny, n.Hq, n.T, n.D}, "B");
    if (n.D < 1) throw Error("attention: q has shape " + to_string(q.shape()) + ", expected D of 1 or more");
    check_shape("k", k, {n.B, n.Hk, kAny, n.D}, "S");
    if (n.Hk < 1) throw Error("attention: k has 0 heads, expected 1 or more");
    if (n.Hq % n.Hk != 0) {
      throw Error("attention: q has " + std::to_string(n.Hq) + " heads, expected a multiple of " +
                  std::to_string(n.Hk) + " (the heads of k)");
    }
    check_shape("v", v, {n.B, n.Hk, n.S, kAny}, "Dv");
    scale = options.scale ? double{*options.scale} : 1 / std::sqrt(static_cast<double>(n.D));
    visibility = Visibility(options.mask, n.B, n.T, n.S);
  }

  // Query heads share key heads in groups of Hq / Hk neighbours.
  int64_t key_head(int64_t h) const { return h / (n.Hq / n.Hk); }
};

// A key that a query sees. A row holds those, and no others: whatever stands at a hidden place is never touched.
struct Seen {
  int64_t key;
  double score;
  double weight = 0;
};
using Row = std::vector<Seen>;

// score_s = scale * sum_d q_d k_sd, for every key s that query t sees.
Row visible_scores(const Call& call, int64_t b, int64_t h, int64_t t) {
  const auto& [q, k, v] = call.in;
  const KeyRange keys = call.visibility.row(b, t);
  Row row;
  for (int64_t s = keys.begin; s < keys.end; ++s) {
    double dot = 0;
    for (int64_t d = 0; d < call.n.D; ++d) dot += q(b, h, t, d) * k(b, call.key_head(h), s, d);
    row.push_back({s, call.scale * dot});
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

template <class Body>
void for_each_query(const AttentionShape& n, Body body) {
  for (int64_t b = 0; b < n.B; ++b) {
    for (int64_t h = 0; h < n.Hq; ++h) {
      for (int64_t t = 0; t < n.T; ++t) body(b, h, t);
    }
  }
}

}  // namespace

void attention_forward(const Inputs& inputs, const Outputs& outputs, const AttentionOptions& options) {
  const Call call(inputs, options);
  const AttentionShape& n = call.n;
  const auto& [out, lse, weights] = outputs;
  check_shape("out", out, {n.B, n.Hq, n.T, n.Dv});
  check_if_wanted("lse", lse, {n.B, n.Hq, n.T});
  check_if_wanted("weights", weights, {n.B, n.Hq, n.T, n.S});

  for_each_query(n, [&](int64_t b, int64_t h, int64_t t) {
    Row row = visible_scores(call, b, h, t);
    const double log_sum = softmax(row);
    if (lse) lse(b, h, t) = log_sum;

    if (weights) {
      for (int64_t s = 0; s < n.S; ++s) weights(b, h, t, s) = 0;
      for (const Seen& seen : row) weights(b, h, t, seen.key) = seen.weight;
    }

    // out_e = sum_s weight_s v_se
    for (int64_t e = 0; e < n.Dv; ++e) {
      double sum = 0;
      for (const Seen& seen : row) sum += seen.weight * inputs.v(b, call.key_head(h), seen.key, e);
      out(b, h, t, e) = sum;
    }
  });
}

void attention_backward(const Inputs& inputs, const Gradients& gradients, const AttentionOptions& options) {
  const Call call(inputs, options);
  const AttentionShape& n = call.n;
  const auto& [q, k, v] = inputs;
  const auto& [d_out, dq, dk, dv] = gradients;
  check_shape("d_out", d_out, {n.B, n.Hq, n.T, n.Dv});
  check_if_wanted("dq", dq, q.shape());
  check_if_wanted("dk", dk, k.shape());
  check_if_wanted("dv", dv, v.shape());

  for_each_query(n, [&](int64_t b, int64_t h, int64_t t) {
    const int64_t g = call.key_head(h);
    Row row = visible_scores(call, b, h, t);
    softmax(row);

    // out_e = sum_s weight_s v_se:  d_weight_s = sum_e d_out_e v_se,  dv_se += weight_s d_out_e
    std::vector<double> d_weight;
    double mean = 0;  // of d_weight, by weight
    for (const auto& [s, score, weight] : row) {
      double dot = 0;
      for (int64_t e = 0; e < n.Dv; ++e) dot += d_out(b, h, t, e) * v(b, g, s, e);
      d_weight.push_back(dot);
      mean += weight * dot;
      for (int64_t e = 0; dv && e < n.Dv; ++e) dv(b, g, s, e) += weight * d_out(b, h, t, e);
    }

    // The softmax:                     d_score_s = weight_s (d_weight_s - sum_s' weight_s' d_weight_s')
    // score_s = scale sum_d q_d k_sd:  dq_d += scale d_score_s k_sd,  dk_sd += scale d_score_s q_d
    for (size_t i = 0; i < row.size(); ++i) {
      const int64_t s = row[i].key;
      const double d_dot = call.scale * row[i].weight * (d_weight[i] - mean);
      for (int64_t d = 0; dq && d < n.D; ++d) dq(b, h, t, d) += d_dot * k(b, g, s, d);
      for (int64_t d = 0; dk && d < n.D; ++d) dk(b, g, s, d) += d_dot * q(b, h, t, d);
    }
  });
}

}  // namespace heed::kernels::reference
