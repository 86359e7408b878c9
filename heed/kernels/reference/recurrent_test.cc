// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heed/base/testing.h"
#include "heed/kernels/recurrent_testing.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

using heed::testing::seeded;
using testing::between, testing::RecurrentProblem, testing::RecurrentShape;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One row of two tokens, one number wide, worked out below with the formulas of the header.
struct Tiny {
  Array<3> x{{1, 2, 1}, {0.5, -1}};
  Array<2> w_ih, w_hh, h0{{1, 1}, {0.25}}, c0{{1, 1}, {-0.5}};
  Array<1> b_ih, b_hh;
  Array<3> h{{1, 2, 1}, kNaN};
  Array<2> last_h{{1, 1}, kNaN}, last_c{{1, 1}, kNaN}, saved;

  explicit Tiny(const RecurrentOptions& options)
      : w_ih(shape(options)),
        w_hh(shape(options)),
        b_ih({shape(options)[0]}),
        b_hh({shape(options)[0]}),
        saved({2, saved_width(options.cell, 1)}) {
    for (size_t g = 0; g < b_ih.data.size(); ++g) {
      w_ih.data[g] = 1 + static_cast<double>(g), w_hh.data[g] = 2 - static_cast<double>(g);
      b_ih.data[g] = 0.1 * static_cast<double>(g), b_hh.data[g] = 0.2;
    }
  }
  static Dims<2> shape(const RecurrentOptions& options) { return {gates_of(options.cell), 1}; }
  double p(int64_t g, double token) const { return w_ih.data[g] * token + b_ih.data[g]; }
  double q(int64_t g, double state) const { return w_hh.data[g] * state + b_hh.data[g]; }
  void run(const RecurrentOptions& options, const View<const double, 2>& peepholes = {}) {
    RecurrentInputs<double> in{.x = x.view(), .w_ih = w_ih.view(), .w_hh = w_hh.view(), .b_ih = b_ih.view()};
    in.b_hh = b_hh.view(), in.peepholes = peepholes, in.h0 = h0.view();
    if (options.cell == Cell::lstm) in.c0 = c0.view();
    recurrent_forward(in, {.h = h.view(), .last_h = last_h.view(), .last_c = last_c.view(), .saved = saved.view()},
                      options);
  }
};

TEST(ReferenceRecurrent, RnnIsTheFormula) {
  Tiny tiny({.cell = Cell::rnn});
  tiny.run({.cell = Cell::rnn});
  const double first = std::tanh(0.5 + 2 * 0.25 + 0.2), second = std::tanh(-1 + 2 * first + 0.2);
  expect_near(tiny.h.data, {first, second});
  expect_near(tiny.last_h.data, {second});
  tiny.run({.cell = Cell::rnn, .reverse = true});
  const double last = std::tanh(-1 + 2 * 0.25 + 0.2);
  expect_near(tiny.h.data, {std::tanh(0.5 + 2 * last + 0.2), last});
}

TEST(ReferenceRecurrent, GruIsTheFormula) {
  for (const bool before : {false, true}) {
    const RecurrentOptions options{.cell = Cell::gru, .reset_before = before};
    Tiny tiny(options);
    tiny.run(options);
    double h = 0.25;
    std::vector<double> expected;
    for (const double token : {0.5, -1.0}) {
      const double r = sigmoid(tiny.p(0, token) + tiny.q(0, h)), z = sigmoid(tiny.p(1, token) + tiny.q(1, h));
      const double n = std::tanh(tiny.p(2, token) + (before ? tiny.q(2, r * h) : r * tiny.q(2, h)));
      expected.push_back(h = (1 - z) * n + z * h);
    }
    expect_near(tiny.h.data, expected);
  }
}

TEST(ReferenceRecurrent, LstmIsTheFormula) {
  const Array<2> peepholes({3, 1}, {0.5, -0.25, 2});
  for (const bool peeps : {false, true}) {
    const RecurrentOptions options{.cell = Cell::lstm};
    Tiny tiny(options);
    tiny.run(options, peeps ? peepholes.view() : View<const double, 2>());
    double h = 0.25, c = -0.5;
    const auto peep = [&](size_t gate) { return peeps ? peepholes.data[gate] * c : 0; };
    std::vector<double> expected;
    for (const double token : {0.5, -1.0}) {
      const auto sum = [&](int64_t g) { return tiny.p(g, token) + tiny.q(g, h); };
      const double i = sigmoid(sum(0) + peep(0)), f = sigmoid(sum(1) + peep(1)), g = std::tanh(sum(2));
      c = f * c + i * g;
      const double o = sigmoid(sum(3) + peep(2));
      expected.push_back(h = o * std::tanh(c));
    }
    expect_near(tiny.h.data, expected);
    expect_near(tiny.last_c.data, {c});
  }
}

RecurrentShape draw_shape(Rng& rng) {
  RecurrentShape n{.B = between(rng, 1, 3), .T = between(rng, 1, 4), .I = between(rng, 1, 3), .H = between(rng, 1, 3)};
  draw_options(rng, 3, n);
  return n;
}

// sum(d_h h) + sum(d_last_h last_h) + ..., whose gradients are those that backward gives.
double functional(RecurrentProblem<double>& problem) {
  recurrent_forward(problem.inputs(), problem.outputs(), problem.n.options);
  double sum = 0;
  const auto add = [&](const std::vector<double>& d, const std::vector<double>& value) {
    for (size_t i = 0; i < d.size(); ++i) sum += d[i] * value[i];
  };
  add(problem.d_h, problem.h), add(problem.d_last_h, problem.last_h);
  if (problem.n.options.cell == Cell::lstm) add(problem.d_last_c, problem.last_c);
  if (problem.n.C) add(problem.d_context, problem.context);
  return sum;
}

// Against differences of fourth order.
TEST(ReferenceRecurrent, GradientsAreThoseOfForward) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng(seeded(seed));
    RecurrentProblem<double> problem(draw_shape(rng), seeded(seed));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.n.text());
    functional(problem);
    auto& p = problem;
    const std::vector<std::pair<std::vector<double>*, std::vector<double>*>> pairs{
        {&p.x, &p.dx},       {&p.w_ih, &p.dw_ih}, {&p.w_hh, &p.dw_hh}, {&p.b_ih, &p.db_ih},
        {&p.b_hh, &p.db_hh}, {&p.h0, &p.dh0},     {&p.c0, &p.dc0},     {&p.peepholes, &p.d_peepholes}};
    for (const auto& [value, gradient] : pairs) std::fill(gradient->begin(), gradient->end(), 1.0);  // it adds
    recurrent_backward(p.inputs(), p.gradients(), p.n.options);
    double error = 0, largest = 0;
    for (size_t k = 0; k < pairs.size(); ++k) {
      const bool there = k == 3 || k == 4 ? p.n.biases : k == 5 ? p.n.begins : k == 6 ? p.n.begins : true;
      if (!there || (k == 6 && p.n.options.cell != Cell::lstm) || (k == 7 && !p.n.peepholes)) continue;
      std::vector<double>&value = *pairs[k].first, &gradient = *pairs[k].second;
      for (size_t i = 0; i < value.size(); ++i) {
        const double middle = value[i], step = 1e-3;
        const auto at = [&](double moved) {
          value[i] = middle + moved;
          return functional(p);
        };
        const double slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
        value[i] = middle;
        error = std::max(error, std::abs(slope - (gradient[i] - 1)));
        largest = std::max(largest, std::abs(gradient[i] - 1));
      }
    }
    EXPECT_LE(error, 1e-7 * std::max(largest, 1e-3));
  }
}

}  // namespace
}  // namespace heed::kernels::reference
