// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/recurrent_cells.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/recurrent_cells.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/exp-inl.h"
#include "heed/kernels/rows-inl.h"
#include "heed/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// 1 / (1 + e^-x). Below -88 it stays at what it is there, 6e-39.
template <int N>
HWY_INLINE void sigmoid(F d, V (&x)[N]) {
  const V one = hn::Set(d, 1.0f);
  for (V& v : x) v = min_keep_nan(d, hn::Set(d, 88.0f), hn::Neg(v));
  exp(d, x);
  for (V& v : x) v = hn::Div(one, hn::Add(one, v));
}

// dy s (1 - s), where s = sigmoid(x), and dy (1 - s^2), where s = tanh(x).
HWY_INLINE V sigmoid_slope(V s, V dy) { return hn::Mul(hn::NegMulAdd(s, s, s), dy); }
HWY_INLINE V tanh_slope(F d, V s, V dy) { return hn::Mul(hn::NegMulAdd(s, s, hn::Set(d, 1.0f)), dy); }

// N vectors of a row from `at` on; the last one may be partial.
struct Span {
  F d;
  int64_t at, left;

  template <int N>
  HWY_INLINE void load(const float* from, V (&v)[N]) const {
    load_vectors(d, from + at, left, v);
  }
  // The sum of two.
  template <int N>
  HWY_INLINE void load(const float* from, const float* more, V (&v)[N]) const {
    V w[N];
    load(from, v);
    load(more, w);
    for (int i = 0; i < N; ++i) v[i] = hn::Add(v[i], w[i]);
  }
  template <int N>
  HWY_INLINE void store(const V (&v)[N], float* to) const {
    store_vectors(d, v, to + at, left);
  }
};

// body<N>(span). Two vectors at a time: the gates of a cell are independent chains enough, and more would spill.
template <class Body>
HWY_INLINE void for_spans(int64_t n, const Body& body) {
  const F d;
  int64_t at = 0;
  for (; at + 2 * kLanes <= n; at += 2 * kLanes) body.template operator()<2>(Span{d, at, kLanes});
  for (; at < n; at += kLanes) body.template operator()<1>(Span{d, at, std::min(kLanes, n - at)});
}

void rnn(float* gates, const float* q, float* h, int64_t H) {
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V v[N];
    span.load(gates, q, v);
    tanh(span.d, v);
    span.store(v, gates);
    span.store(v, h);
  });
}

void rnn_backward(const float* gates, const float* dh, float* d_gates, int64_t H) {
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V v[N], g[N];
    span.load(gates, v);
    span.load(dh, g);
    for (int i = 0; i < N; ++i) v[i] = tanh_slope(span.d, v[i], g[i]);
    span.store(v, d_gates);
  });
}

void reset(float* gates, const float* q, const float* before, float* to, int64_t H) {
  for_spans(2 * H, [&]<int N>(const Span& span) HWY_ATTR {
    V v[N];
    span.load(gates, q, v);
    sigmoid(span.d, v);
    span.store(v, gates);
  });
  if (!to) return;
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V r[N], b[N];
    span.load(gates, r);
    span.load(before, b);
    for (int i = 0; i < N; ++i) r[i] = hn::Mul(r[i], b[i]);
    span.store(r, to);
  });
}

void gru(const GruRow& row, float* h, int64_t H) {
  float* gates = row.gates;
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V n[N], other[N];
    if (row.reset_before) {
      span.load(gates + 2 * H, row.q, n);
    } else {
      V r[N];
      span.load(gates + 2 * H, n);
      span.load(row.q, other);
      span.load(gates, r);
      for (int i = 0; i < N; ++i) n[i] = hn::MulAdd(r[i], other[i], n[i]);
    }
    tanh(span.d, n);
    span.store(n, gates + 2 * H);
    V z[N];
    span.load(gates + H, z);
    span.load(row.before, other);
    // n + z (h' - n)
    for (int i = 0; i < N; ++i) n[i] = hn::MulAdd(z[i], hn::Sub(other[i], n[i]), n[i]);
    span.store(n, h);
  });
}

void gru_backward(const GruBackward& row, const float* q, int64_t H) {
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V z[N], n[N], dh[N], v[N];
    span.load(row.gates + H, z);
    span.load(row.gates + 2 * H, n);
    span.load(row.dh, dh);
    span.load(row.before, v);
    for (int i = 0; i < N; ++i) v[i] = sigmoid_slope(z[i], hn::Mul(dh[i], hn::Sub(v[i], n[i])));
    span.store(v, row.d_gates + H);
    for (int i = 0; i < N; ++i) v[i] = hn::Mul(dh[i], z[i]);
    span.store(v, row.dh);
    for (int i = 0; i < N; ++i) n[i] = tanh_slope(span.d, n[i], hn::NegMulAdd(dh[i], z[i], dh[i]));
    span.store(n, row.d_gates + 2 * H);
    if (!q) return;
    V r[N];
    span.load(row.gates, r);
    for (int i = 0; i < N; ++i) v[i] = hn::Mul(n[i], r[i]);
    span.store(v, row.d_gates + 3 * H);
    span.load(q, v);
    for (int i = 0; i < N; ++i) v[i] = sigmoid_slope(r[i], hn::Mul(n[i], v[i]));
    span.store(v, row.d_gates);
  });
}

void reset_backward(const GruBackward& row, const float* d_reset, int64_t H) {
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V r[N], dr[N], v[N];
    span.load(row.gates, r);
    span.load(d_reset, dr);
    span.load(row.dh, v);
    for (int i = 0; i < N; ++i) v[i] = hn::MulAdd(dr[i], r[i], v[i]);
    span.store(v, row.dh);
    span.load(row.before, v);
    for (int i = 0; i < N; ++i) v[i] = sigmoid_slope(r[i], hn::Mul(dr[i], v[i]));
    span.store(v, row.d_gates);
  });
}

// x += u c, where there are peepholes.
template <int N>
HWY_INLINE void peep(const Span& span, const float* peepholes, const V (&c)[N], V (&x)[N]) {
  if (!peepholes) return;
  V u[N];
  span.load(peepholes, u);
  for (int i = 0; i < N; ++i) x[i] = hn::MulAdd(u[i], c[i], x[i]);
}

void lstm(const LstmRow& row, const float* q, float* c_to, float* h, int64_t H) {
  const float* peepholes = row.peepholes;
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V c[N], v[N], g[N];
    span.load(row.before, c);
    span.load(row.gates + 2 * H, q + 2 * H, g);
    tanh(span.d, g);
    span.store(g, row.gates + 2 * H);
    span.load(row.gates, q, v);
    peep(span, peepholes, c, v);
    sigmoid(span.d, v);
    span.store(v, row.gates);
    for (int i = 0; i < N; ++i) g[i] = hn::Mul(v[i], g[i]);
    span.load(row.gates + H, q + H, v);
    peep(span, peepholes ? peepholes + H : nullptr, c, v);
    sigmoid(span.d, v);
    span.store(v, row.gates + H);
    for (int i = 0; i < N; ++i) c[i] = hn::MulAdd(v[i], c[i], g[i]);
    span.store(c, c_to);
    span.load(row.gates + 3 * H, q + 3 * H, v);
    peep(span, peepholes ? peepholes + 2 * H : nullptr, c, v);
    sigmoid(span.d, v);
    span.store(v, row.gates + 3 * H);
    tanh(span.d, c);
    for (int i = 0; i < N; ++i) c[i] = hn::Mul(v[i], c[i]);
    span.store(c, h);
  });
}

void lstm_backward(const LstmBackward& row, const float* dh_from, float* dc_of, float* d_gates, int64_t H) {
  const float* peepholes = row.peepholes;
  for_spans(H, [&]<int N>(const Span& span) HWY_ATTR {
    V v[N], c[N], g[N], f[N], dc[N];
    span.load(row.gates, v);
    span.load(row.gates + 2 * H, g);
    span.load(row.gates + H, f);
    span.load(row.before, c);
    for (int i = 0; i < N; ++i) c[i] = hn::MulAdd(f[i], c[i], hn::Mul(v[i], g[i]));
    tanh(span.d, c);
    {
      V dh[N], d_o[N];
      span.load(row.gates + 3 * H, v);
      span.load(dh_from, dh);
      span.load(dc_of, dc);
      for (int i = 0; i < N; ++i) d_o[i] = sigmoid_slope(v[i], hn::Mul(dh[i], c[i]));
      span.store(d_o, d_gates + 3 * H);
      for (int i = 0; i < N; ++i) dc[i] = hn::Add(dc[i], tanh_slope(span.d, c[i], hn::Mul(dh[i], v[i])));
      peep(span, peepholes ? peepholes + 2 * H : nullptr, d_o, dc);
    }
    span.load(row.gates, v);
    for (int i = 0; i < N; ++i) c[i] = tanh_slope(span.d, g[i], hn::Mul(dc[i], v[i]));
    span.store(c, d_gates + 2 * H);
    for (int i = 0; i < N; ++i) v[i] = sigmoid_slope(v[i], hn::Mul(dc[i], g[i]));
    span.store(v, d_gates);
    span.load(row.before, c);
    for (int i = 0; i < N; ++i) c[i] = sigmoid_slope(f[i], hn::Mul(dc[i], c[i]));
    span.store(c, d_gates + H);
    for (int i = 0; i < N; ++i) dc[i] = hn::Mul(dc[i], f[i]);
    peep(span, peepholes, v, dc);
    peep(span, peepholes ? peepholes + H : nullptr, c, dc);
    span.store(dc, dc_of);
  });
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(rnn);
HWY_EXPORT(rnn_backward);
HWY_EXPORT(reset);
HWY_EXPORT(gru);
HWY_EXPORT(gru_backward);
HWY_EXPORT(reset_backward);
HWY_EXPORT(lstm);
HWY_EXPORT(lstm_backward);

void rnn_cell(float* gates, const float* q, float* h, int64_t H) noexcept { HWY_DYNAMIC_DISPATCH(rnn)(gates, q, h, H); }
void rnn_cell_backward(const float* gates, const float* dh, float* d_gates, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(rnn_backward)(gates, dh, d_gates, H);
}
void gru_reset(float* gates, const float* q, const float* before, float* to, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(reset)(gates, q, before, to, H);
}
void gru_cell(const GruRow& row, float* h, int64_t H) noexcept { HWY_DYNAMIC_DISPATCH(gru)(row, h, H); }
void gru_cell_backward(const GruBackward& row, const float* q, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(gru_backward)(row, q, H);
}
void gru_reset_backward(const GruBackward& row, const float* d_reset, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(reset_backward)(row, d_reset, H);
}
void lstm_cell(const LstmRow& row, const float* q, float* c, float* h, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(lstm)(row, q, c, h, H);
}
void lstm_cell_backward(const LstmBackward& row, const float* dh, float* dc, float* d_gates, int64_t H) noexcept {
  HWY_DYNAMIC_DISPATCH(lstm_backward)(row, dh, dc, d_gates, H);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
