// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/recurrent.h"

#include <gtest/gtest.h>

#include "heed/kernels/recurrent_testing.h"
#include "heed/kernels/reference/recurrent.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;

RecurrentShape draw_shape(Rng& rng) {
  RecurrentShape n{.B = rng.below(4) ? between(rng, 1, 5) : between(rng, 6, 40), .T = between(rng, 0, 9)};
  n.I = draw_width(rng), n.H = draw_width(rng, false);
  if (n.B > 5) n.I = std::min<int64_t>(n.I, 40), n.H = std::min<int64_t>(n.H, 40);
  draw_options(rng, 20, n);
  return n;
}

// Forward and backward in a workspace of exactly the size that is needed, filled with NaN.
void run(RecurrentProblem<float>& problem, Parallel& parallel) {
  const RecurrentOptions& options = problem.n.options;
  const auto scratch = [](size_t bytes) {
    Workspace workspace(bytes);
    std::fill_n(workspace.data(), bytes, std::byte{0xFF});
    return workspace;
  };
  Workspace forward = scratch(recurrent_forward_bytes(problem.inputs(), options));
  recurrent_forward(problem.inputs(), problem.outputs(), options, forward, parallel);
  Workspace backward = scratch(recurrent_backward_bytes(problem.inputs(), options));
  recurrent_backward(problem.inputs(), problem.gradients(), options, backward, parallel);
}

std::vector<float> everything(RecurrentProblem<float>& problem) {
  std::vector<float> all;
  for (const auto& [name, numbers] : problem.results()) all.insert(all.end(), numbers->begin(), numbers->end());
  return all;
}

// Each number within `roundings` units of the largest of its kind: the most that follow each other on the way to it. A
// state is squashed and the weights keep errors from growing, so that those of earlier steps count no more than once.
void expect_near_twin(RecurrentProblem<float>& problem, RecurrentProblem<double>& twin) {
  const RecurrentShape& n = problem.n;
  const double sums = static_cast<double>(n.I + n.C + n.H + 20), gates = static_cast<double>(problem.GH);
  const double roundings = static_cast<double>(n.T + 1) * (2 * sums + gates) + static_cast<double>(n.B * n.T);
  const auto got = problem.results();
  const auto want = twin.results();
  for (size_t k = 0; k < got.size(); ++k) {
    double largest = 1;
    for (const double value : *want[k].second) largest = std::max(largest, std::abs(value));
    const std::vector<double> bound(got[k].second->size(), roundings * kUnit * largest);
    EXPECT_TRUE(within(*got[k].second, *want[k].second, bound)) << got[k].first;
  }
}

TEST(Recurrent, IsNearTheTwin) {
  for_draws(160, [](Rng& rng) {
    const RecurrentShape shape = draw_shape(rng);
    const uint64_t seed = rng.next_u64();
    SCOPED_TRACE(shape.text());
    RecurrentProblem<double> twin(shape, seed);
    reference::recurrent_forward(twin.inputs(), twin.outputs(), shape.options);
    reference::recurrent_backward(twin.inputs(), twin.gradients(), shape.options);
    for_targets([&] {
      RecurrentProblem<float> problem(shape, seed);
      Parallel parallel(2);
      run(problem, parallel);
      expect_near_twin(problem, twin);
    });
  });
}

// What observers see: near the twin, which computes the cell anew where the kernel finds it kept; and zero in padding.
TEST(Recurrent, TracesWhatTheCellsDid) {
  for_draws(60, [](Rng& rng) {
    const RecurrentShape n = draw_shape(rng);
    const uint64_t seed = rng.next_u64();
    SCOPED_TRACE(n.text());
    RecurrentProblem<float> problem(n, seed);
    RecurrentProblem<double> twin(n, seed);
    const int64_t G = gates_of(n.options.cell);
    const bool lstm = n.options.cell == Cell::lstm;
    std::vector<float> gates(static_cast<size_t>(n.B * n.T * G * n.H), kNaN), c(problem.h.size(), kNaN);
    std::vector<double> exact_gates(gates.size()), exact_c(c.size());
    const auto trace = [&](auto& all, auto& cells) {
      using T = std::remove_reference_t<decltype(all[0])>;
      RecurrentTrace<T> to{.gates = {all.data(), {n.B, n.T, G, n.H}}};
      if (lstm) to.c = {cells.data(), {n.B, n.T, n.H}};
      return to;
    };
    Parallel parallel(2);
    Workspace workspace(recurrent_forward_bytes(problem.inputs(), n.options));
    recurrent_forward(problem.inputs(), problem.outputs(), n.options, workspace, parallel);
    recurrent_trace(problem.inputs(), problem.outputs(), n.options, trace(gates, c), workspace);
    reference::recurrent_forward(twin.inputs(), twin.outputs(), n.options);
    reference::recurrent_trace(twin.inputs(), twin.outputs(), n.options, trace(exact_gates, exact_c));
    double largest = 1;
    for (const double value : exact_c) largest = std::max(largest, std::abs(value));
    const double sums = static_cast<double>(n.I + n.C + n.H + 20);
    const double bound = static_cast<double>(n.T + 1) * (2 * sums + static_cast<double>(problem.GH)) * kUnit;
    EXPECT_TRUE(within(gates, exact_gates, std::vector<double>(gates.size(), bound)));
    if (lstm) {
      EXPECT_TRUE(within(c, exact_c, std::vector<double>(c.size(), bound * largest)));
    }
    for (int64_t b = 0; b < n.B && !n.lengths.empty(); ++b) {
      for (int64_t i = n.lengths[static_cast<size_t>(b)] * n.H; lstm && i < n.T * n.H; ++i) {
        EXPECT_EQ(c[static_cast<size_t>(b * n.T * n.H + i)], 0);
      }
      for (int64_t i = n.lengths[static_cast<size_t>(b)] * G * n.H; i < n.T * G * n.H; ++i) {
        EXPECT_EQ(gates[static_cast<size_t>(b * n.T * G * n.H + i)], 0);
      }
    }
  });
}

TEST(Recurrent, WhatStandsInPaddingChangesNoBit) {
  for_draws(40, [](Rng& rng) {
    RecurrentShape shape = draw_shape(rng);
    if (shape.lengths.empty() || shape.C) return;
    SCOPED_TRACE(shape.text());
    Parallel parallel(2);
    RecurrentProblem<float> plain(shape, 5), padded(shape, 5);
    for (int64_t b = 0; b < shape.B; ++b) {
      const int64_t begin = b * shape.T + shape.lengths[static_cast<size_t>(b)], end = (b + 1) * shape.T;
      std::fill(padded.x.begin() + begin * shape.I, padded.x.begin() + end * shape.I, kNaN);
      std::fill(padded.d_h.begin() + begin * shape.H, padded.d_h.begin() + end * shape.H, kNaN);
    }
    run(plain, parallel);
    run(padded, parallel);
    EXPECT_TRUE(same_bits(everything(padded), everything(plain)));
    for (int64_t b = 0; b < shape.B; ++b) {
      for (int64_t t = shape.lengths[static_cast<size_t>(b)]; t < shape.T; ++t) {
        for (int64_t j = 0; j < shape.H; ++j) EXPECT_EQ(plain.h[(b * shape.T + t) * shape.H + j], 0.0f);
      }
    }
  });
}

TEST(Recurrent, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const Cell cell : {Cell::rnn, Cell::gru, Cell::lstm}) {
    for (const int64_t B : {1, 3, 37}) {
      for (const int64_t T : {2, 9}) {
        RecurrentShape shape{.B = B, .T = T, .I = 90, .H = 120};
        shape.options.cell = cell;
        for (int64_t b = 0; b < B; ++b) shape.lengths.push_back((b * 7 + 3) % (T + 1));
        SCOPED_TRACE(shape.text());
        expect_same_on_threads([&](Parallel& parallel) {
          RecurrentProblem<float> problem(shape, 6);
          run(problem, parallel);
          return everything(problem);
        });
      }
    }
  }
}

TEST(Recurrent, MakesOnlyTheGradientsThatAreWanted) {
  RecurrentShape shape{.B = 3, .T = 5, .I = 6, .H = 7};
  shape.peepholes = true;
  Parallel parallel(1);
  RecurrentProblem<float> all(shape, 7), some(shape, 7), none(shape, 7);
  run(all, parallel);
  Workspace workspace(recurrent_backward_bytes(some.inputs(), shape.options) +
                      recurrent_forward_bytes(some.inputs(), shape.options));
  recurrent_forward(some.inputs(), some.outputs(), shape.options, workspace, parallel);
  RecurrentGradients<float> grad = some.gradients();
  grad.dw_ih = {}, grad.db_hh = {}, grad.dh0 = {}, grad.d_peepholes = {};
  recurrent_backward(some.inputs(), grad, shape.options, workspace, parallel);
  EXPECT_TRUE(same_bits(some.dw_ih, none.dw_ih) && same_bits(some.db_hh, none.db_hh) && same_bits(some.dh0, none.dh0));
  EXPECT_TRUE(same_bits(some.d_peepholes, none.d_peepholes));
  EXPECT_TRUE(same_bits(some.dx, all.dx) && same_bits(some.dw_hh, all.dw_hh) && same_bits(some.db_ih, all.db_ih));
  EXPECT_TRUE(same_bits(some.dc0, all.dc0));
}

}  // namespace
}  // namespace heed::kernels
