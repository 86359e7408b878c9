// SPDX-License-Identifier: Apache-2.0
// Attention at its edges: sizes, widths, NaN and infinity, large logits, thread counts, and what callers may leave out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/attention/error_bounds.h"
#include "heed/kernels/attention/testing.h"

namespace heed::kernels::attention_testing {
namespace {

using heed::testing::seeded;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<uint32_t, 5> kNans = {0x7fc00000, 0xffc00000, 0x7fc00001, 0xffc12345, 0x7fffffff};

void expect_near_twin_on_every_target(const Instance& x) {
  SCOPED_TRACE(x.describe());
  Parallel one(1);
  Problem problem(x);
  const Twin twin = run_twin(problem);
  const Bounds bounds = error_bounds(problem, twin);
  for_targets([&] { expect_near_twin(x, problem.run(one), twin, bounds); });
}

TEST(AttentionEdge, SizesOfZero) {
  for (const AttentionShape& shape :
       {AttentionShape{2, 4, 2, 0, 5, 3, 4}, AttentionShape{2, 4, 2, 5, 0, 3, 4}, AttentionShape{0, 4, 2, 5, 6, 3, 4},
        AttentionShape{1, 1, 1, 0, 0, 8, 8}, AttentionShape{2, 2, 1, 1, 0, 8, 8}}) {
    expect_near_twin_on_every_target({.shape = shape});
    expect_near_twin_on_every_target({.shape = shape, .mask = {.causal = Causal::bottom_right()}});
  }
}

TEST(AttentionEdge, NoKeysGiveZeros) {
  Parallel one(1);
  Problem problem({.shape = {2, 4, 2, 5, 0, 3, 4}});
  for_targets([&] {
    const auto got = problem.run(one);
    EXPECT_EQ(got.out, std::vector<float>(got.out.size(), 0));
    EXPECT_EQ(got.lse, std::vector<float>(got.lse.size(), -kInfinity));
    for (size_t i = 0; i < got.dq.size(); ++i) EXPECT_EQ(got.dq[i], initial_gradient(static_cast<int64_t>(i)));
  });
}

TEST(AttentionEdge, SizesAroundVectorsAndTiles) {
  constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64, 65, 95, 96, 97};
  for (int64_t n : kSizes)
    for (int64_t other : {int64_t{1}, int64_t{6}, int64_t{33}}) {
      const OwnedMask causal = {.causal = Causal::bottom_right()};
      expect_near_twin_on_every_target({.shape = {1, 1, 1, n, other, 5, 6}});
      expect_near_twin_on_every_target({.shape = {1, 1, 1, other, n, 5, 6}, .mask = causal});
    }
  for (int64_t T : {63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193})
    for (int64_t S : {31, 32, 33, 64, 129})
      expect_near_twin_on_every_target({.shape = {1, 1, 1, T, S, 4, 4}, .mask = {.causal = Causal::bottom_right()}});
}

TEST(AttentionEdge, EveryHeadWidth) {
  const int64_t step = effort() < 1 ? 9 : 1;  // all of them only where that takes seconds
  for (int64_t D = 1; D <= 256; D += step) {
    expect_near_twin_on_every_target({.shape = {1, 2, 1, 3, 9, D, 257 - D}});
    expect_near_twin_on_every_target({.shape = {1, 2, 1, 1, 17, D, 257 - D}});
  }
  for (int64_t D : {511, 512, 513, 1024, 2048}) {
    expect_near_twin_on_every_target({.shape = {1, 2, 1, 3, 70, D, 2049 - D}});
    expect_near_twin_on_every_target({.shape = {1, 1, 1, 1, 17, D, 2049 - D}});
    expect_near_twin_on_every_target({.shape = {1, 1, 1, 19, 33, 2049 - D, D}});
  }
}

// In every lane and at every place of a block: x86's max gives its second operand when either is NaN.
TEST(AttentionEdge, NanInAnyVisiblePlaceShows) {
  Parallel one(1);
  for (int64_t T : {1, 3, 9, 100}) {
    Problem problem({.shape = {1, 2, 1, T, 70, 5, 3}});
    SCOPED_TRACE("T=" + std::to_string(T));
    const auto expect_nan = [&](float& number, uint32_t bits, int64_t first, int64_t last, int64_t column) {
      const float before = std::exchange(number, from_bits(bits));
      problem.forward(one);
      number = before;
      for (int64_t t = 0; t < T; ++t)
        for (int64_t d = 0; d < 3; ++d) {
          const bool hit = first <= t && t <= last && (column < 0 || column == d);
          ASSERT_EQ(std::isnan(problem.out(0, 1, t, d)), hit) << "t=" << t << " d=" << d;
        }
    };
    for_targets([&] {
      for (int64_t s = 0; s < 70; ++s) {
        expect_nan(problem.k(0, 0, s, s % 5), kNans[static_cast<size_t>(s) % 5], 0, T - 1, -1);
        expect_nan(problem.v(0, 0, s, s % 3), kNans[static_cast<size_t>(s) % 5], 0, T - 1, s % 3);
      }
      for (int64_t t = 0; t < T; ++t)
        expect_nan(problem.q(0, 1, t, t % 5), kNans[static_cast<size_t>(t) % 5], t, t, -1);
    });
  }
}

// A weight that is too small for a float is still not nothing: 0 NaN is NaN.
TEST(AttentionEdge, NanShowsUnderAVanishingWeight) {
  Parallel one(1);
  for (int64_t T : {1, 20}) {
    Problem problem({.shape = {1, 1, 1, T, 70, 1, 4}});
    fill(problem.q, 1);
    fill(problem.k, 0);
    problem.k(0, 0, 3, 0) = 1000;
    problem.v(0, 0, 65, 2) = from_bits(0xffc12345);
    for_targets([&] {
      problem.forward(one);
      for (int64_t t = 0; t < T; ++t) {
        EXPECT_TRUE(std::isnan(problem.out(0, 0, t, 2))) << "T=" << T << " t=" << t;
        EXPECT_NEAR(problem.out(0, 0, t, 1) / problem.v(0, 0, 3, 1), 1, 8 * kUnit) << "T=" << T << " t=" << t;
      }
    });
  }
}

TEST(AttentionEdge, InfiniteScores) {
  Parallel one(1);
  for (int64_t T : {1, 3, 50}) {
    SCOPED_TRACE("T=" + std::to_string(T));
    const int64_t S = 70;
    Problem problem({.shape = {1, 1, 1, T, S, 3, 4}});
    for (int64_t t = 0; t < T; ++t) problem.q(0, 0, t, 0) = 1;
    Problem without({.shape = {1, 1, 1, T, S, 3, 4}, .mask = {.lengths = std::vector<int64_t>{S - 1}}});
    for (int64_t t = 0; t < T; ++t) without.q(0, 0, t, 0) = 1;
    const Twin twin = run_twin(without);
    const Bounds bounds = error_bounds(without, twin);
    for_targets([&] {
      for (int64_t s : {int64_t{0}, S / 2, S - 1}) {
        const float before = std::exchange(problem.k(0, 0, s, 0), kInfinity);
        problem.forward(one);
        problem.k(0, 0, s, 0) = before;
        for (float x : flatten(problem.out)) EXPECT_TRUE(std::isnan(x)) << "score +inf at key " << s;
      }
      const float before = std::exchange(problem.k(0, 0, S - 1, 0), -kInfinity);
      problem.forward(one);
      problem.k(0, 0, S - 1, 0) = before;
      EXPECT_TRUE(within(flatten(problem.out), twin.out, bounds.out.worst)) << "score -inf at the last key";
    });
  }
}

TEST(AttentionEdge, OnlyScoresOfMinusInfinityAreNothingToSee) {
  Parallel one(1);
  for (int64_t T : {1, 50}) {
    Problem problem({.shape = {1, 1, 1, T, 70, 1, 4}});
    fill(problem.q, 1);
    fill(problem.k, -kInfinity);
    for_targets([&] {
      problem.forward(one);
      for (float x : flatten(problem.out)) EXPECT_EQ(x, 0) << "T=" << T;
      for (int64_t t = 0; t < T; ++t) EXPECT_EQ(problem.lse(0, 0, t), -kInfinity) << "T=" << T;
    });
  }
}

TEST(AttentionEdge, LogitsOfTenThousand) {
  for (int64_t D : {1, 8, 64})
    for (int64_t T : {1, 40})
      expect_near_twin_on_every_target(
          {.shape = {1, 2, 1, T, 100, D, 9}, .mask = {.causal = Causal::bottom_right()}, .deviation = 100});
}

// Scores that f32 holds exactly: whole numbers, and scale log2(e) = 1 in f32. Near +-1e4 / ln 2 the softmax is then as
// precise as near 0, and so are the gradients, as long as nobody adds log2 of the sum to the maximum in f32. Beyond
// 2^21 the exponential goes another way.
TEST(AttentionEdge, LargeLogitsCostNoPrecision) {
  Parallel one(1);
  for (auto [side, first] : {std::pair(1.0f, 120.0f), {-1.0f, 120.0f}, {1.0f, 2000.0f}, {-1.0f, 2000.0f}}) {
    const Instance x = {.shape = {1, 1, 1, 60, 90, 4, 8}, .scale = std::numbers::ln2_v<float>};
    SCOPED_TRACE("scores near " + std::to_string(side * first * first));
    Problem problem(x);
    Rng rng(seeded(7));
    const auto fill_rows = [&](const View<float, 4>& view, auto first_of) {
      for (int64_t row = 0; row < view.shape(2); ++row)
        for (int64_t d = 0; d < 4; ++d)
          view(0, 0, row, d) = d == 0 ? first_of(row) : static_cast<float>(rng.below(5)) - 2;
    };
    fill_rows(problem.q, [&](int64_t) { return first; });
    fill_rows(problem.k, [&](int64_t s) { return side < 0 || s % 3 ? side * first : -first; });
    const Twin twin = run_twin(problem);
    ASSERT_NEAR(twin.lse[0], side * first * first * std::numbers::ln2, 50);
    const Bounds bounds = error_bounds(problem, twin);
    for_targets([&] { expect_small_mean_error(x, problem.run(one), twin, bounds, 0); });
  }
}

// Scores again exact, v the identity: out is the weights, and the first of them, 2^0, carries no error of its own. What
// is left is the polynomial for 2^x (2 u), two divisions by the sum, and scale log2(e), which is 1 - 0.2 u and not 1.
TEST(AttentionEdge, TheExponentialIsPrecise) {
  Parallel one(1);
  for (int64_t T : {1, 20}) {
    Problem problem({.shape = {1, 1, 1, T, 256, 1, 256}, .scale = std::numbers::ln2_v<float>});
    fill(problem.q, 1);
    fill(problem.v, 0);
    for (int64_t s = 0; s < 256; ++s) {
      problem.k(0, 0, s, 0) = static_cast<float>(-s) * (5.0f / 128);
      problem.v(0, 0, s, s) = 1;
    }
    for_targets([&] {
      problem.forward(one);
      for (int64_t t = 0; t < T; ++t)
        for (int64_t s = 0; s < 256; ++s) {
          const double ratio = double{problem.out(0, 0, t, s)} / problem.out(0, 0, t, 0);
          const double expected = std::exp2(problem.k(0, 0, s, 0));
          ASSERT_NEAR(ratio / expected, 1, (2 + 2 + 2) * kUnit) << "t=" << t << " s=" << s;
        }
    });
  }
}

TEST(AttentionEdge, StatsGiveTheWeights) {
  Parallel one(1);
  for (int64_t T : {1, 40})
    for (float deviation : {1.0f, 100.0f}) {
      const Instance x = {
          .shape = {2, 4, 2, T, 70, 9, 3}, .mask = {.causal = Causal::offset(20)}, .deviation = deviation};
      SCOPED_TRACE(x.describe());
      Problem problem(x);
      const Twin twin = run_twin(problem);
      const Bounds bounds = error_bounds(problem, twin);
      for_targets([&] {
        problem.forward(one);
        const auto got = problem.results();
        for (size_t i = 0; i < twin.lse.size(); ++i) {
          const double maximum = got.stats[2 * i], sum = got.stats[2 * i + 1];
          EXPECT_EQ(maximum, std::round(maximum)) << "row " << i;
          EXPECT_NEAR((maximum + std::log2(sum)) * std::numbers::ln2, twin.lse[i], bounds.normalizer[i]) << "row " << i;
        }
        EXPECT_TRUE(within(got.lse, twin.lse, bounds.lse));
      });
    }
}

TEST(AttentionEdge, LseAndStatsMayBeLeftOut) {
  Parallel one(1);
  for (int64_t T : {1, 40}) {
    Problem problem({.shape = {1, 2, 1, T, 70, 9, 3}});
    for_targets([&] {
      problem.forward(one);
      const auto both = problem.results();
      for (int wanted = 0; wanted < 3; ++wanted) {
        fill(problem.out, -1);
        AttentionOutputs outputs = {problem.out, {}, {}};
        if (wanted == 1) outputs.lse = problem.lse;
        if (wanted == 2) outputs.stats = problem.stats;
        Workspace scratch;
        attention_forward(problem.inputs(), outputs, problem.options(), scratch, one);
        expect_same_bits(problem.results(), both);
      }
    });
  }
}

TEST(AttentionEdge, AGateOfOneGivesTheBitsOfNone) {
  Parallel one(1);
  for (int64_t T : {1, 2, 40}) {
    Problem problem({.shape = {1, 2, 1, T, 70, 9, 3}});
    const std::vector<float> ones(2, 1.0f);
    for_targets([&] {
      problem.forward(one);
      const auto plain = problem.results();
      fill(problem.out, -1);
      AttentionInputs gated = problem.inputs();
      gated.head_gate = {ones.data(), {2}};
      Workspace scratch;
      attention_forward(gated, problem.outputs(), problem.options(), scratch, one);
      expect_same_bits(problem.results(), plain);
    });
  }
}

TEST(AttentionEdge, BackwardAddsToGradients) {
  Parallel one(1);
  const Instance x = {.shape = {1, 4, 2, 30, 40, 9, 5}};
  Problem problem(x);
  const Bounds bounds = error_bounds(problem, run_twin(problem));
  for_targets([&] {
    const auto once = problem.run(one);
    Workspace scratch;
    attention_backward(problem.inputs(), problem.gradients(), problem.options(), scratch, one);
    const auto twice = problem.results();
    // The second call's beginning is larger than the one that the bound knows of, by what the first has added.
    const auto expect = [](const auto& second, const auto& first, const Bound& bound, double roundings) {
      for (size_t i = 0; i < first.size(); ++i) {
        const double added = double{first[i]} - initial_gradient(static_cast<int64_t>(i));
        ASSERT_NEAR(second[i], first[i] + added, 2 * bound.worst[i] + roundings * kUnit * std::abs(added)) << i;
      }
    };
    expect(twice.dq, once.dq, bounds.dq, 40 + 8);
    expect(twice.dk, once.dk, bounds.dk, 60 + 8);
    expect(twice.dv, once.dv, bounds.dv, 60 + 8);
  });
}

TEST(AttentionEdge, GradientsMayBeLeftOut) {
  Parallel one(1);
  const Instance x = {.shape = {1, 4, 2, 100, 130, 9, 5}, .mask = {.causal = Causal::bottom_right()}};
  Problem problem(x);
  const Twin twin = run_twin(problem);
  const Bounds bounds = error_bounds(problem, twin);
  for_targets([&] {
    problem.run(one);
    for (int wanted = 0; wanted < 8; ++wanted) {
      SCOPED_TRACE("wanted: " + std::string(wanted & 1 ? " dq" : "") + (wanted & 2 ? " dk" : "") +
                   (wanted & 4 ? " dv" : ""));
      for (const auto& view : {problem.dq, problem.dk, problem.dv}) {
        int64_t i = 0;
        for (int64_t h = 0; h < view.shape(1); ++h)
          for (int64_t t = 0; t < view.shape(2); ++t)
            for (int64_t d = 0; d < view.shape(3); ++d) view(0, h, t, d) = initial_gradient(i++);
      }
      const auto before = problem.results();
      AttentionGradients gradients = problem.gradients();
      if (!(wanted & 1)) gradients.dq = {};
      if (!(wanted & 2)) gradients.dk = {};
      if (!(wanted & 4)) gradients.dv = {};
      Workspace scratch;
      attention_backward(problem.inputs(), gradients, problem.options(), scratch, one);
      const auto got = problem.results();
      EXPECT_TRUE(wanted & 1 ? within(got.dq, twin.dq, bounds.dq.worst) : same_bits(got.dq, before.dq)) << "dq";
      EXPECT_TRUE(wanted & 2 ? within(got.dk, twin.dk, bounds.dk.worst) : same_bits(got.dk, before.dk)) << "dk";
      EXPECT_TRUE(wanted & 4 ? within(got.dv, twin.dv, bounds.dv.worst) : same_bits(got.dv, before.dv)) << "dv";
    }
  });
}

// The first T queries and keys of a problem, as a problem for the kernel.
std::vector<float> forward_of(const AttentionInputs& inputs, int64_t Dv, const AttentionOptions& options) {
  Parallel one(1);
  Workspace scratch;
  const Dims<4> shape = {inputs.q.shape(0), inputs.q.shape(1), inputs.q.shape(2), Dv};
  std::vector<float> out(static_cast<size_t>(element_count(shape)), std::numeric_limits<float>::quiet_NaN());
  attention_forward(inputs, {{out.data(), shape}, {}, {}}, options, scratch, one);
  return out;
}

// Both passes are within the bound of the whole pass's twin: fewer keys are rounded less often.
TEST(AttentionEdge, CausalPassIsThePassesOverItsPrefixes) {
  Parallel one(1);
  const int64_t T = 200, Dv = 7;
  for (Layout layout : {Layout::bhtd, Layout::bthd, Layout::packed}) {
    const Instance x = {.shape = {1, 1, 1, T, T, 8, Dv}, .mask = {.causal = Causal::top_left()}, .inputs = layout};
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    const Bounds bounds = error_bounds(problem, run_twin(problem));
    for_targets([&] {
      problem.forward(one);
      const auto whole = flatten(problem.out);
      const auto expect_rows = [&](const std::vector<float>& got, int64_t first) {
        for (size_t i = 0; i < got.size(); ++i) {
          const size_t at = static_cast<size_t>(first * Dv) + i;
          ASSERT_NEAR(got[i], whole[at], 2 * bounds.out.worst[at]) << "t=" << at / Dv << " first=" << first;
        }
      };
      for (int64_t n = 1; n <= T; ++n) {
        const auto k = problem.k.slice(2, 0, n), v = problem.v.slice(2, 0, n);
        expect_rows(forward_of({problem.q.slice(2, 0, n), k, v}, Dv, problem.options()), 0);
        // The last row sees all of its prefix: no mask at all, through the tiles and as one step of decoding.
        const auto unmasked = forward_of({problem.q.slice(2, 0, n), k, v}, Dv, {});
        expect_rows({unmasked.end() - Dv, unmasked.end()}, n - 1);
        expect_rows(forward_of({problem.q.slice(2, n - 1, 1), k, v}, Dv, {}), n - 1);
      }
    });
  }
}

TEST(AttentionEdge, DecodeIsTheLastRowOfThePass) {
  for (int64_t S : {1, 2, 15, 16, 17, 64, 65, 500, 1100}) {
    const Instance x = {.shape = {2, 4, 2, S, S, 16, 9}, .mask = {.causal = Causal::bottom_right()}};
    Instance last = x;
    last.shape.T = 1;
    Problem problem(x), step(last);
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t h = 0; h < 4; ++h) std::copy_n(problem.q.at(b, h, S - 1), 16, step.q.at(b, h, 0));
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t s = 0; s < S; ++s) {
          std::copy_n(problem.k.at(b, h, s), 16, step.k.at(b, h, s));
          std::copy_n(problem.v.at(b, h, s), 9, step.v.at(b, h, s));
        }
    }
    const Bounds bounds = error_bounds(step, run_twin(step));
    for_targets([&] {
      const auto whole = forward_of(problem.inputs(), 9, problem.options());
      const auto decoded = forward_of(step.inputs(), 9, step.options());
      for (size_t i = 0; i < decoded.size(); ++i) {
        const size_t row = i / 9 * static_cast<size_t>(S) + static_cast<size_t>(S) - 1;
        ASSERT_NEAR(decoded[i], whole[row * 9 + i % 9], 2 * bounds.out.worst[i]) << "S=" << S << " element " << i;
      }
    });
  }
}

void expect_same_bits_on_any_threads(const Instance& x) {
  static Parallel one(1), two(2), three(3), five(5);
  SCOPED_TRACE(x.describe());
  Problem problem(x);
  const auto serial = problem.run(one);
  for (Parallel* parallel : {&two, &three, &five}) {
    SCOPED_TRACE(std::to_string(parallel->threads()) + " threads");
    expect_same_bits(problem.run(*parallel), serial);
  }
}

TEST(AttentionThreads, BitsDoNotDependOnThreads) {
  for_targets([&] {
    for (const OwnedMask& mask :
         {OwnedMask{}, OwnedMask{.causal = Causal::bottom_right()}, OwnedMask{.window = Window::top_left(40, 3)}}) {
      expect_same_bits_on_any_threads({.shape = {2, 4, 2, 200, 230, 17, 9}, .mask = mask});
      expect_same_bits_on_any_threads({.shape = {1, 1, 1, 500, 500, 8, 8}, .mask = mask, .inputs = Layout::packed});
      expect_same_bits_on_any_threads({.shape = {3, 8, 2, 1, 300, 16, 16}, .mask = mask, .inputs = Layout::bthd});
    }
  });
}

// One head: the keys themselves have to be shared out, and partial sums put together.
TEST(AttentionThreads, BitsDoNotDependOnThreadsOverLongKeys) {
  for (const OwnedMask& mask : {OwnedMask{}, OwnedMask{.causal = Causal::bottom_right()}}) {
    expect_same_bits_on_any_threads({.shape = {1, 1, 1, 2100, 2100, 4, 4}, .mask = mask});
    expect_same_bits_on_any_threads({.shape = {1, 2, 1, 300, 3000, 5, 3}, .mask = mask});
    expect_same_bits_on_any_threads({.shape = {1, 2, 1, 1, 3000, 16, 16}, .mask = mask});
    expect_same_bits_on_any_threads({.shape = {1, 8, 8, 1, 3000, 8, 8}, .mask = mask, .inputs = Layout::bthd});
    expect_same_bits_on_any_threads({.shape = {1, 1, 1, 5, 3000, 8, 8}, .mask = mask});
  }
  // One block of queries that sees the first and the last keys, and none of those between.
  const OwnedMask far_apart{.window = Window::bottom_right(9, 0),
                            .packed_queries = std::vector<int64_t>{0, 40, 80},
                            .packed_keys = std::vector<int64_t>{0, 90, 1900}};
  expect_same_bits_on_any_threads({.shape = {1, 1, 1, 80, 1900, 8, 8}, .mask = far_apart});
}

// Keys in chunks, tasks in turn: what is summed over tasks is the gradient of bias, gate and w.
std::vector<Instance> long_instances_with_extras() {
  std::vector<Instance> all;
  const AttentionShape shape{2, 4, 2, 70, 1100, 5, 3};
  const auto& [B, H, Hk, T, S, D, Dv] = shape;
  for (const Dims<4>& bias : {Dims<4>{B, H, T, S}, Dims<4>{1, H, T, S}, Dims<4>{1, 1, T, S}, Dims<4>{B, 1, 1, S},
                              Dims<4>{1, H, 1, S}, Dims<4>{1, H, T, 1}, Dims<4>{1, 1, 1, 1}}) {
    all.push_back({.shape = shape, .extras = {.bias = bias, .hidden = 0.2f, .dropout = {0.3f, 7}, .gate = true}});
  }
  all.push_back(
      {.shape = shape,
       .mask = {.causal = Causal::bottom_right()},
       .extras = {.alibi = MaskAlignment{MaskAlignment::Kind::bottom_right, 0}, .softcap = 3, .additive = true}});
  return all;
}

TEST(AttentionThreads, BitsDoNotDependOnThreadsWithExtras) {
  for (const Instance& x : long_instances_with_extras()) expect_same_bits_on_any_threads(x);
}

TEST(AttentionEdge, LongKeysWithExtrasAreNearTheTwin) {
  const std::vector<Instance> all = long_instances_with_extras();
  const size_t step = effort() < 1 ? all.size() - 1 : 1;  // the first and the last, where the twin is slow: a sanitizer
  for (size_t i = 0; i < all.size(); i += step) expect_near_twin_on_every_target(all[i]);
}

// One query, many keys: decode has stages of its own.
TEST(AttentionEdge, DecodeWithExtrasIsNearTheTwin) {
  const AttentionShape shape{2, 4, 2, 1, 1300, 20, 11};
  const auto& [B, H, Hk, T, S, D, Dv] = shape;
  for (const bool additive : {false, true}) {
    const MaskAlignment last{MaskAlignment::Kind::bottom_right, 0};
    expect_near_twin_on_every_target({.shape = shape, .extras = {.alibi = last, .softcap = 5, .additive = additive}});
    expect_near_twin_on_every_target({.shape = shape,
                                      .mask = {.window = Window::bottom_right(900, 0)},
                                      .extras = {.dense = Dims<4>{B, 1, 1, S},
                                                 .bias = Dims<4>{1, H, 1, S},
                                                 .hidden = 0.3f,
                                                 .dropout = {0.5f, 3},
                                                 .gate = true,
                                                 .additive = additive}});
  }
}

TEST(AttentionThreads, BitsDoNotDependOnThreadsForRandomInstances) {
  for_draws(100, [](Rng& rng) { expect_same_bits_on_any_threads(draw_instance(rng, 1e6)); });
}

// A weight that fades with distance passes through the denormal numbers, which are slow; they become zero. Values are
// the identity, so that outputs are the weights.
TEST(AttentionEdge, FadingWeightsAreNormalOrZero) {
  constexpr int64_t T = 300, D = 8;
  const std::vector<float> zeros(T * D, 0.0f), slope = {0.5f};
  std::vector<float> identity(T * T, 0.0f), out(T * T);
  for (int64_t i = 0; i < T; ++i) identity[static_cast<size_t>(i * T + i)] = 1;
  const View<const float, 4> x(zeros.data(), {1, 1, T, D}), v(identity.data(), {1, 1, T, T});
  const AttentionInputs in{.q = x, .k = x, .v = v};
  const AttentionOutputs to{.out = {out.data(), {1, 1, T, T}}, .lse = {}, .stats = {}};
  const AttentionOptions options{.mask = {Alibi::top_left(slope)}};
  Parallel one(1);
  for_targets([&] {
    Workspace workspace;
    attention_forward(in, to, options, workspace, one);
    const auto kind = [](int which) { return [which](float w) { return std::fpclassify(w) == which; }; };
    EXPECT_EQ(std::count_if(out.begin(), out.end(), kind(FP_SUBNORMAL)), 0);
    EXPECT_GT(std::count_if(out.begin(), out.end(), kind(FP_ZERO)), 0);
    EXPECT_GT(*std::min_element(out.begin(), out.begin() + 150), 0);  // of the first query, far above that
  });
}

TEST(AttentionEdge, TheCallerKeepsItsDenormalNumbers) {
  Parallel one(1);
  Problem({.shape = {1, 2, 2, 5, 7, 8, 8}}).run(one);
  volatile float small = std::numeric_limits<float>::min();
  EXPECT_GT(small * 0.5f, 0.0f);
}

// Partial sums against the twin: long keys are where they are.
TEST(AttentionEdge, LongKeysAreNearTheTwin) {
  expect_near_twin_on_every_target({.shape = {1, 2, 1, 1, 3000, 16, 16}});
  expect_near_twin_on_every_target({.shape = {1, 8, 8, 1, 3000, 8, 8}, .inputs = Layout::bthd});
  expect_near_twin_on_every_target({.shape = {1, 1, 1, 300, 3000, 4, 4}, .mask = {.causal = Causal::bottom_right()}});
  expect_near_twin_on_every_target(
      {.shape = {1, 1, 1, 2100, 2100, 4, 4}, .mask = {.window = Window::top_left(100, 0)}});
}

}  // namespace
}  // namespace heed::kernels::attention_testing
