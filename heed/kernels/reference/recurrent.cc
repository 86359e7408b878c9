// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace heed::kernels::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The order of tokens in either direction: step s of row b is its token at(b, s).
struct Walk {
  const RecurrentInputs<double>& in;
  const RecurrentOptions& options;
  int64_t B = in.x.shape(0), T = in.x.shape(1), I = in.x.shape(2), H = in.w_hh.shape(1);
  int64_t G = gates_of(options.cell), C = in.w_ih.shape(1) - I;

  int64_t length(int64_t b) const { return in.lengths.empty() ? T : in.lengths[static_cast<size_t>(b)]; }
  int64_t at(int64_t b, int64_t s) const { return options.reverse ? length(b) - 1 - s : s; }
};

// What is saved of one token.
struct Token {
  int64_t b, t;
  double *gates, *before, *extra;  // [G H]: after their activations; h' [H]; c', q_n or r h' [H]

  Token(const Walk& walk, const View<double, 2>& saved, int64_t row, int64_t position)
      : b(row), t(position), gates(saved.at(b * walk.T + t)), before(gates + walk.G * walk.H), extra(before + walk.H) {}
};

// p = [x, context] w_ih^T + b_ih, of gate row j.
double input_sum(const Walk& walk, const double* x, const double* context, int64_t j) {
  double sum = walk.in.b_ih ? walk.in.b_ih(j) : 0;
  for (int64_t i = 0; i < walk.I; ++i) sum += x[i] * walk.in.w_ih(j, i);
  for (int64_t i = 0; i < walk.C; ++i) sum += context[i] * walk.in.w_ih(j, walk.I + i);
  return sum;
}

// q = state w_hh^T + b_hh, of gate row j.
double state_sum(const Walk& walk, const double* state, int64_t j) {
  double sum = walk.in.b_hh ? walk.in.b_hh(j) : 0;
  for (int64_t i = 0; i < walk.H; ++i) sum += state[i] * walk.in.w_hh(j, i);
  return sum;
}

struct States {
  std::vector<double> h, c;
};

void rnn(const Walk& walk, const Token& token, States& state) {
  for (int64_t j = 0; j < walk.H; ++j) {
    token.gates[j] = std::tanh(token.gates[j] + state_sum(walk, token.before, j));
    state.h[j] = token.gates[j];
  }
}

void gru(const Walk& walk, const Token& token, States& state) {
  const int64_t H = walk.H;
  for (int64_t j = 0; j < 2 * H; ++j) token.gates[j] = sigmoid(token.gates[j] + state_sum(walk, token.before, j));
  const double *r = token.gates, *z = r + H;
  for (int64_t j = 0; j < H; ++j) {
    token.extra[j] = walk.options.reset_before ? r[j] * token.before[j] : state_sum(walk, token.before, 2 * H + j);
  }
  for (int64_t j = 0; j < H; ++j) {
    double& n = token.gates[2 * H + j];
    n = std::tanh(n + (walk.options.reset_before ? state_sum(walk, token.extra, 2 * H + j) : r[j] * token.extra[j]));
    state.h[j] = (1 - z[j]) * n + z[j] * token.before[j];
  }
}

void lstm(const Walk& walk, const Token& token, States& state) {
  const int64_t H = walk.H;
  const View<const double, 2>& peep = walk.in.peepholes;
  std::copy_n(state.c.data(), H, token.extra);
  for (int64_t j = 0; j < H; ++j) {
    double sums[4];
    for (int64_t k = 0; k < 4; ++k) sums[k] = token.gates[k * H + j] + state_sum(walk, token.before, k * H + j);
    const double before = token.extra[j];
    const double i = sigmoid(sums[0] + (peep ? peep(0, j) * before : 0));
    const double f = sigmoid(sums[1] + (peep ? peep(1, j) * before : 0));
    const double g = std::tanh(sums[2]), c = f * before + i * g;
    const double o = sigmoid(sums[3] + (peep ? peep(2, j) * c : 0));
    for (int64_t k = 0; k < 4; ++k) token.gates[k * H + j] = k == 0 ? i : k == 1 ? f : k == 2 ? g : o;
    state.c[j] = c;
    state.h[j] = o * std::tanh(c);
  }
}

// Gradients at a token: dh and dc of the states after it become those of the states before it; dp and dq are those of p
// and q.
struct Gradients {
  std::vector<double> dh, dc, dp, dq;
};

void rnn_backward(const Walk& walk, const Token& token, Gradients& grads) {
  for (int64_t j = 0; j < walk.H; ++j) {
    grads.dp[j] = grads.dq[j] = grads.dh[j] * (1 - token.gates[j] * token.gates[j]);
    grads.dh[j] = 0;
  }
}

void gru_backward(const Walk& walk, const Token& token, Gradients& grads) {
  const int64_t H = walk.H;
  const double *r = token.gates, *z = r + H, *n = z + H;
  for (int64_t j = 0; j < H; ++j) {
    const double dn = grads.dh[j] * (1 - z[j]) * (1 - n[j] * n[j]);
    const double dz = grads.dh[j] * (token.before[j] - n[j]) * z[j] * (1 - z[j]);
    grads.dp[H + j] = grads.dq[H + j] = dz;
    grads.dp[2 * H + j] = dn;
    grads.dq[2 * H + j] = walk.options.reset_before ? dn : dn * r[j];
    grads.dh[j] *= z[j];
  }
  for (int64_t j = 0; j < H; ++j) {
    double dr = grads.dp[2 * H + j] * token.extra[j];
    if (walk.options.reset_before) {
      double through = 0;  // of r h', through the product
      for (int64_t k = 0; k < H; ++k) through += grads.dq[2 * H + k] * walk.in.w_hh(2 * H + k, j);
      dr = through * token.before[j];
      grads.dh[j] += through * r[j];
    }
    grads.dp[j] = grads.dq[j] = dr * r[j] * (1 - r[j]);
  }
}

void lstm_backward(const Walk& walk, const Token& token, const View<double, 2>& d_peep, Gradients& grads) {
  const int64_t H = walk.H;
  const View<const double, 2>& peep = walk.in.peepholes;
  for (int64_t j = 0; j < H; ++j) {
    const double i = token.gates[j], f = token.gates[H + j], g = token.gates[2 * H + j], o = token.gates[3 * H + j];
    const double before = token.extra[j], c = f * before + i * g, squashed = std::tanh(c);
    const double d_o = grads.dh[j] * squashed * o * (1 - o);
    const double dc = grads.dc[j] + grads.dh[j] * o * (1 - squashed * squashed) + (peep ? d_o * peep(2, j) : 0);
    const double d_i = dc * g * i * (1 - i), d_f = dc * before * f * (1 - f), d_g = dc * i * (1 - g * g);
    const double all[4] = {d_i, d_f, d_g, d_o};
    for (int64_t k = 0; k < 4; ++k) grads.dp[k * H + j] = grads.dq[k * H + j] = all[k];
    grads.dc[j] = dc * f + (peep ? d_i * peep(0, j) + d_f * peep(1, j) : 0);
    grads.dh[j] = 0;
    if (!d_peep) continue;
    d_peep(0, j) += d_i * before, d_peep(1, j) += d_f * before, d_peep(2, j) += d_o * c;
  }
}

// From dp and dq of a token to everything that p and q are computed from: the weights, x, the state before, the
// context.
void sums_backward(const Walk& walk, const Token& token, const RecurrentGradients<double>& grad, Gradients& grads,
                   double* d_context) {
  const auto& in = walk.in;
  const int64_t b = token.b, t = token.t;
  for (int64_t j = 0; j < walk.G * walk.H; ++j) {
    const double dp = grads.dp[j], dq = grads.dq[j];
    const bool reset = walk.options.cell == Cell::gru && walk.options.reset_before && j >= 2 * walk.H;
    const double* state = reset ? token.extra : token.before;
    if (grad.db_ih) grad.db_ih(j) += dp;
    if (grad.db_hh) grad.db_hh(j) += dq;
    for (int64_t i = 0; i < walk.I; ++i) {
      if (grad.dx) grad.dx(b, t, i) += dp * in.w_ih(j, i);
      if (grad.dw_ih) grad.dw_ih(j, i) += dp * in.x(b, t, i);
    }
    for (int64_t i = 0; i < walk.C; ++i) {
      d_context[i] += dp * in.w_ih(j, walk.I + i);
      if (grad.dw_ih) grad.dw_ih(j, walk.I + i) += dp * grad.context(b, t, i);
    }
    for (int64_t i = 0; i < walk.H; ++i) {
      if (!reset) grads.dh[i] += dq * in.w_hh(j, i);
      if (grad.dw_hh) grad.dw_hh(j, i) += dq * state[i];
    }
  }
}

std::vector<double> row_or_zero(const View<const double, 2>& view, int64_t b, int64_t H) {
  return view ? std::vector<double>(view.at(b), view.at(b) + H) : std::vector<double>(static_cast<size_t>(H), 0.0);
}

void store(const View<double, 2>& to, int64_t b, const std::vector<double>& row) {
  if (to) std::copy(row.begin(), row.end(), to.at(b));
}

}  // namespace

void recurrent_forward(const RecurrentInputs<double>& in, const RecurrentOutputs<double>& out,
                       const RecurrentOptions& options) {
  const Walk walk{in, options};
  std::vector<States> state;
  for (int64_t b = 0; b < walk.B; ++b) {
    state.push_back({row_or_zero(in.h0, b, walk.H), row_or_zero(in.c0, b, walk.H)});
    for (int64_t t = walk.length(b); t < walk.T; ++t) std::fill_n(out.h.at(b, t), walk.H, 0.0);
  }
  for (int64_t s = 0; s < walk.T; ++s) {
    if (in.feedback) {
      std::vector<double> before;
      for (const States& one : state) before.insert(before.end(), one.h.begin(), one.h.end());
      const View<double, 2> context(out.context.at(0, s), {walk.B, walk.C}, {out.context.stride(0), 1});
      in.feedback->forward(s, View<const double, 2>(before.data(), {walk.B, walk.H}), context);
    }
    for (int64_t b = 0; b < walk.B; ++b) {
      if (s >= walk.length(b)) continue;
      const int64_t t = walk.at(b, s);
      const Token token(walk, out.saved, b, t);
      States& one = state[static_cast<size_t>(b)];
      std::copy(one.h.begin(), one.h.end(), token.before);
      const double* context = in.feedback ? out.context.at(b, t) : nullptr;
      for (int64_t j = 0; j < walk.G * walk.H; ++j) token.gates[j] = input_sum(walk, in.x.at(b, t), context, j);
      if (options.cell == Cell::rnn) rnn(walk, token, one);
      if (options.cell == Cell::gru) gru(walk, token, one);
      if (options.cell == Cell::lstm) lstm(walk, token, one);
      std::copy(one.h.begin(), one.h.end(), out.h.at(b, t));
    }
  }
  for (int64_t b = 0; b < walk.B; ++b) {
    store(out.last_h, b, state[static_cast<size_t>(b)].h);
    store(out.last_c, b, state[static_cast<size_t>(b)].c);
  }
}

void recurrent_backward(const RecurrentInputs<double>& in, const RecurrentGradients<double>& grad,
                        const RecurrentOptions& options) {
  const Walk walk{in, options};
  const View<double, 2> saved(const_cast<double*>(grad.saved.data()), grad.saved.shape(), grad.saved.strides());
  std::vector<Gradients> all;
  all.reserve(static_cast<size_t>(walk.B));
  const std::vector<double> sums(static_cast<size_t>(walk.G * walk.H));
  for (int64_t b = 0; b < walk.B; ++b) {
    all.push_back({row_or_zero(grad.d_last_h, b, walk.H), row_or_zero(grad.d_last_c, b, walk.H), sums, sums});
  }
  std::vector<double> d_context(static_cast<size_t>(walk.B * walk.C)), dh(static_cast<size_t>(walk.B * walk.H));
  for (int64_t s = walk.T - 1; s >= 0; --s) {
    std::fill(d_context.begin(), d_context.end(), 0.0);
    for (int64_t b = 0; b < walk.B; ++b) {
      if (s >= walk.length(b)) continue;
      const int64_t t = walk.at(b, s);
      const Token token(walk, saved, b, t);
      Gradients& grads = all[static_cast<size_t>(b)];
      for (int64_t j = 0; grad.d_h && j < walk.H; ++j) grads.dh[j] += grad.d_h(b, t, j);
      if (options.cell == Cell::rnn) rnn_backward(walk, token, grads);
      if (options.cell == Cell::gru) gru_backward(walk, token, grads);
      if (options.cell == Cell::lstm) lstm_backward(walk, token, grad.d_peepholes, grads);
      sums_backward(walk, token, grad, grads, d_context.data() + b * walk.C);
      for (int64_t i = 0; grad.d_context && i < walk.C; ++i) d_context[b * walk.C + i] += grad.d_context(b, t, i);
    }
    if (!in.feedback) continue;
    std::fill(dh.begin(), dh.end(), 0.0);
    in.feedback->backward(s, View<const double, 2>(d_context.data(), {walk.B, walk.C}),
                          View<double, 2>(dh.data(), {walk.B, walk.H}));
    for (int64_t b = 0; b < walk.B; ++b) {
      for (int64_t j = 0; j < walk.H; ++j) all[static_cast<size_t>(b)].dh[j] += dh[b * walk.H + j];
    }
  }
  for (int64_t b = 0; b < walk.B; ++b) {
    for (int64_t j = 0; j < walk.H; ++j) {
      if (grad.dh0) grad.dh0(b, j) += all[static_cast<size_t>(b)].dh[j];
      if (grad.dc0) grad.dc0(b, j) += all[static_cast<size_t>(b)].dc[j];
    }
  }
}

void recurrent_trace(const RecurrentInputs<double>& in, const RecurrentOutputs<double>& out,
                     const RecurrentOptions& options, const RecurrentTrace<double>& to) {
  const Walk walk{in, options};
  for (int64_t b = 0; b < walk.B; ++b) {
    for (int64_t t = walk.length(b); t < walk.T; ++t) {
      if (to.gates) std::fill_n(to.gates.at(b, t), walk.G * walk.H, 0.0);
      if (to.c) std::fill_n(to.c.at(b, t), walk.H, 0.0);
    }
    for (int64_t s = 0; s < walk.length(b); ++s) {
      const int64_t t = walk.at(b, s);
      const Token token(walk, out.saved, b, t);
      if (to.gates) std::copy_n(token.gates, walk.G * walk.H, to.gates.at(b, t));
      for (int64_t j = 0; to.c && j < walk.H; ++j) {  // c = f c' + i g
        to.c(b, t, j) = token.gates[walk.H + j] * token.extra[j] + token.gates[j] * token.gates[2 * walk.H + j];
      }
    }
  }
}

}  // namespace heed::kernels::reference
