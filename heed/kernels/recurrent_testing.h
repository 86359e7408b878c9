// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of recurrences share: a problem with its numbers, the same for the kernel and for the twin.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/rng.h"
#include "heed/kernels/recurrent.h"

namespace heed::kernels::testing {

struct RecurrentShape {
  int64_t B = 1, T = 1, I = 1, H = 1, C = 0;
  RecurrentOptions options{};
  bool biases = true, peepholes = false, begins = true;  // begins: with states of its own
  std::vector<int64_t> lengths{};                        // empty: all T

  std::string text() const {
    std::string of;
    for (const int64_t length : lengths) of += " " + std::to_string(length);
    return std::string(name_of(options.cell)) + (options.reverse ? " reverse" : "") +
           (options.reset_before ? " reset before" : "") + (peepholes ? " peepholes" : "") + (biases ? " biases" : "") +
           (begins ? " states" : "") + " B=" + std::to_string(B) + " T=" + std::to_string(T) +
           " I=" + std::to_string(I) + " H=" + std::to_string(H) + " C=" + std::to_string(C) + " lengths" + of;
  }
};

inline int64_t between(Rng& rng, int64_t low, int64_t high) {  // both included
  return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
}

// A cell and its options: one in four with a context of up to `most_context` columns, the others in either direction,
// with or without lengths. B and T have been drawn.
inline void draw_options(Rng& rng, int64_t most_context, RecurrentShape& n) {
  n.options.cell = static_cast<Cell>(rng.below(3));
  n.options.reset_before = rng.below(2);
  n.biases = rng.below(4), n.begins = rng.below(3);
  n.peepholes = n.options.cell == Cell::lstm && rng.below(2);
  if (rng.below(4) == 0) {
    n.C = between(rng, 1, most_context);
    return;
  }
  n.options.reverse = rng.below(2);
  if (rng.below(2) == 0) return;
  for (int64_t b = 0; b < n.B; ++b) n.lengths.push_back(between(rng, 0, n.T));
}

// Contexts that are the first C numbers of the state times a factor of the step, where the state has them.
template <class T>
class Echo final : public Feedback<T> {
 public:
  void forward(int64_t step, const View<const T, 2>& h, const View<T, 2>& context) noexcept override {
    for (int64_t b = 0; b < h.shape(0); ++b) {
      for (int64_t i = 0; i < context.shape(1); ++i) context(b, i) = i < h.shape(1) ? factor(step) * h(b, i) : T{1};
    }
  }
  void backward(int64_t step, const View<const T, 2>& d_context, const View<T, 2>& dh) noexcept override {
    for (int64_t b = 0; b < dh.shape(0); ++b) {
      for (int64_t i = 0; i < std::min(d_context.shape(1), dh.shape(1)); ++i)
        dh(b, i) += factor(step) * d_context(b, i);
    }
  }

 private:
  static T factor(int64_t step) { return static_cast<T>(step % 3) - T{0.5}; }
};

// Weights are about 1 / sqrt of the terms of a sum, so that rounding errors do not grow from step to step.
template <class T>
struct RecurrentProblem {
  RecurrentShape n;
  int64_t GH = gates_of(n.options.cell) * n.H;
  std::vector<T> x, w_ih, w_hh, b_ih, b_hh, peepholes, h0, c0;
  std::vector<T> h, last_h, last_c, context, saved;
  std::vector<T> d_h, d_context, d_last_h, d_last_c;
  std::vector<T> dx, dw_ih, dw_hh, db_ih, db_hh, d_peepholes, dh0, dc0;
  Echo<T> echo{};

  RecurrentProblem(const RecurrentShape& shape, uint64_t seed) : n(shape) {
    Rng rng(seed, 9);
    const auto draw = [&](int64_t count, double size) {
      std::vector<T> drawn(static_cast<size_t>(count));
      for (T& value : drawn) value = static_cast<T>(static_cast<float>(size) * rng.normal());
      return drawn;
    };
    const double in = 1 / std::sqrt(1.0 + static_cast<double>(n.I + n.C)),
                 out = 0.7 / std::sqrt(1.0 + static_cast<double>(n.H));
    x = draw(n.B * n.T * n.I, 1), w_ih = draw(GH * (n.I + n.C), in), w_hh = draw(GH * n.H, out);
    b_ih = draw(GH, 0.3), b_hh = draw(GH, 0.3), peepholes = draw(3 * n.H, 0.3);
    h0 = draw(n.B * n.H, 0.5), c0 = draw(n.B * n.H, 0.5);
    d_h = draw(n.B * n.T * n.H, 1), d_context = draw(n.B * n.T * n.C, 1);
    d_last_h = draw(n.B * n.H, 1), d_last_c = draw(n.B * n.H, 1);
    dx = draw(x.size(), 1), dw_ih = draw(w_ih.size(), 1), dw_hh = draw(w_hh.size(), 1), db_ih = draw(GH, 1);
    db_hh = draw(GH, 1), d_peepholes = draw(3 * n.H, 1), dh0 = draw(h0.size(), 1), dc0 = draw(c0.size(), 1);
    const T nan = std::numeric_limits<T>::quiet_NaN();
    h.assign(d_h.size(), nan), last_h.assign(h0.size(), nan), last_c.assign(h0.size(), nan);
    context.assign(d_context.size(), nan);
    saved.assign(static_cast<size_t>(n.B * n.T * saved_width(n.options.cell, n.H)), nan);
  }
  RecurrentProblem(const RecurrentProblem&) = delete;
  RecurrentProblem& operator=(const RecurrentProblem&) = delete;

  RecurrentInputs<T> inputs() {
    RecurrentInputs<T> in{.x = {x.data(), {n.B, n.T, n.I}},
                          .w_ih = {w_ih.data(), {GH, n.I + n.C}},
                          .w_hh = {w_hh.data(), {GH, n.H}},
                          .lengths = n.lengths,
                          .feedback = n.C ? &echo : nullptr};
    if (n.biases) in.b_ih = {b_ih.data(), {GH}}, in.b_hh = {b_hh.data(), {GH}};
    if (n.peepholes) in.peepholes = {peepholes.data(), {3, n.H}};
    if (n.begins) in.h0 = {h0.data(), {n.B, n.H}}, in.c0 = {c0.data(), {n.B, n.H}};
    if (n.options.cell != Cell::lstm) in.c0 = {};
    return in;
  }
  RecurrentOutputs<T> outputs() {
    RecurrentOutputs<T> out{.h = {h.data(), {n.B, n.T, n.H}}, .last_h = {last_h.data(), {n.B, n.H}}};
    if (n.options.cell == Cell::lstm) out.last_c = {last_c.data(), {n.B, n.H}};
    if (n.C) out.context = {context.data(), {n.B, n.T, n.C}};
    out.saved = {saved.data(), {n.B * n.T, saved_width(n.options.cell, n.H)}};
    return out;
  }
  RecurrentGradients<T> gradients() {
    const RecurrentOutputs<T> out = outputs();
    RecurrentGradients<T> grad{.saved = out.saved,
                               .context = out.context,
                               .d_h = {d_h.data(), {n.B, n.T, n.H}},
                               .d_last_h = {d_last_h.data(), {n.B, n.H}},
                               .dx = {dx.data(), {n.B, n.T, n.I}},
                               .dw_ih = {dw_ih.data(), {GH, n.I + n.C}},
                               .dw_hh = {dw_hh.data(), {GH, n.H}},
                               .db_ih = {db_ih.data(), {GH}},
                               .db_hh = {db_hh.data(), {GH}},
                               .dh0 = {dh0.data(), {n.B, n.H}}};
    if (n.C) grad.d_context = {d_context.data(), {n.B, n.T, n.C}};
    if (n.peepholes) grad.d_peepholes = {d_peepholes.data(), {3, n.H}};
    if (n.options.cell != Cell::lstm) return grad;
    grad.d_last_c = {d_last_c.data(), {n.B, n.H}};
    grad.dc0 = {dc0.data(), {n.B, n.H}};
    return grad;
  }
  // What was computed, each with its name.
  std::vector<std::pair<const char*, std::vector<T>*>> results() {
    std::vector<std::pair<const char*, std::vector<T>*>> all{{"h", &h},         {"last_h", &last_h}, {"dx", &dx},
                                                             {"dw_ih", &dw_ih}, {"dw_hh", &dw_hh},   {"db_ih", &db_ih},
                                                             {"db_hh", &db_hh}, {"dh0", &dh0}};
    if (n.options.cell == Cell::lstm) all.insert(all.end(), {{"last_c", &last_c}, {"dc0", &dc0}});
    if (n.peepholes) all.emplace_back("d_peepholes", &d_peepholes);
    if (n.C) all.emplace_back("context", &context);
    return all;
  }
};

}  // namespace heed::kernels::testing
