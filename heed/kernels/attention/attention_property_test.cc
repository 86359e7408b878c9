// SPDX-License-Identifier: Apache-2.0
// Attention on random shapes, strides, masks and numbers, on every SIMD target: near the twin, and with the properties
// that the formula has.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "heed/kernels/attention/error_bounds.h"
#include "heed/kernels/attention/testing.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::kernels::attention_testing {
namespace {

// Mostly a millisecond or two of the twin's time; now and then more, so that large sizes meet.
double draw_work(Rng& rng) {
  const float luck = rng.uniform();
  return luck < 0.9f ? 2e5 : luck < 0.99f ? 2e6 : 1e7;
}

// The twin reads its mask through Visibility, as the kernels do. That could be wrong for both at once.
void expect_mask_as_defined(const Problem& problem, const Twin& twin) {
  const Instance& x = problem.instance;
  const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
  const Visibility visibility(x.mask.borrow(), B, T, S);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t) {
      const auto [begin, end] = visibility.row(b, t);
      for (int64_t s = 0; s < S; ++s) {
        ASSERT_EQ(begin <= s && s < end, x.visible(b, t, s)) << "b=" << b << " t=" << t << " s=" << s;
        for (int64_t h = 0; h < Hq; ++h) {
          const auto i = static_cast<size_t>(((b * Hq + h) * T + t) * S + s);
          ASSERT_TRUE(twin.seen[i] || twin.weights[i] == 0) << "b=" << b << " h=" << h << " t=" << t << " s=" << s;
        }
      }
    }
}

// Exactly, not nearly: such rows and keys take no part in any arithmetic.
void expect_unseen_untouched(const Instance& x, const Results<float>& got, const Twin& twin) {
  const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
  const auto unchanged = [](const std::vector<float>& gradient, int64_t row, int64_t width) {
    for (int64_t i = row * width; i < (row + 1) * width; ++i)
      if (gradient[static_cast<size_t>(i)] != initial_gradient(i)) return false;
    return true;
  };
  std::vector<char> key_seen(static_cast<size_t>(B * Hk * S), 0);
  for (int64_t i = 0; i < B * Hq * T; ++i) {
    const int64_t first_key = i / T / x.group() * S;
    const auto row = std::span(twin.seen).subspan(static_cast<size_t>(i * S), static_cast<size_t>(S));
    for (size_t s = 0; s < row.size(); ++s) key_seen[static_cast<size_t>(first_key) + s] |= row[s];
    if (std::find(row.begin(), row.end(), 1) != row.end()) continue;
    const auto out = std::span(got.out).subspan(static_cast<size_t>(i * Dv), static_cast<size_t>(Dv));
    ASSERT_TRUE(std::all_of(out.begin(), out.end(), [](float e) { return e == 0; })) << "out of row " << i;
    ASSERT_EQ(got.lse[static_cast<size_t>(i)], -std::numeric_limits<float>::infinity()) << "row " << i;
    ASSERT_TRUE(unchanged(got.dq, i, D)) << "dq of row " << i;
  }
  for (int64_t i = 0; i < B * Hk * S; ++i)
    if (!key_seen[static_cast<size_t>(i)]) {
      ASSERT_TRUE(unchanged(got.dk, i, D)) << "dk of key " << i;
      ASSERT_TRUE(unchanged(got.dv, i, Dv)) << "dv of key " << i;
    }
}

TEST(AttentionProperty, ForwardAndGradientsAreNearTheTwin) {
  Parallel one(1);
  for_draws(4000, [&](Rng& rng) {
    const Instance x = draw_instance(rng, draw_work(rng));
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    const Twin twin = run_twin(problem);
    const Bounds bounds = error_bounds(problem, twin);
    expect_mask_as_defined(problem, twin);
    for_targets([&] {
      const Results<float> got = problem.run(one);
      expect_near_twin(x, got, twin, bounds);
      expect_unseen_untouched(x, got, twin);
    });
  });
}

// What comes after the softmax.
Instance without_dropout_and_gate(Instance x) {
  x.extras.dropout = {};
  x.extras.gate = false;
  return x;
}

// With v all ones, out is a sum of weights over the same sum: each of the two is rounded at most S + 4 times, whatever
// the scores are.
TEST(AttentionProperty, WeightsOfARowSumToOne) {
  Parallel one(1);
  for_draws(500, [&](Rng& rng) {
    const Instance x = without_dropout_and_gate(draw_instance(rng, 1e6));
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    fill(problem.v, 1);
    const auto sees = [&](int64_t b, int64_t h, int64_t t) {
      for (int64_t s = 0; s < x.shape.S; ++s)
        if (problem.visible(b, h, t, s)) return true;
      return false;
    };
    for_targets([&] {
      problem.forward(one);
      for (int64_t b = 0; b < x.shape.B; ++b)
        for (int64_t h = 0; h < x.shape.Hq; ++h)
          for (int64_t t = 0; t < x.shape.T; ++t)
            for (int64_t d = 0; d < x.shape.Dv; ++d)
              ASSERT_NEAR(problem.out(b, h, t, d), sees(b, h, t) ? 1 : 0,
                          2 * static_cast<double>(x.shape.S + 4) * kUnit)
                  << "b=" << b << " h=" << h << " t=" << t << " d=" << d;
    });
  });
}

// With v the identity, out is the weights themselves.
TEST(AttentionProperty, WeightsAreTheTwins) {
  Parallel one(1);
  for_draws(500, [&](Rng& rng) {
    Instance x = without_dropout_and_gate(draw_instance(rng, 1e5));
    if (x.shape.S == 0) return;
    x.shape.Dv = x.shape.S;
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    fill(problem.v, 0);
    for (int64_t b = 0; b < x.shape.B; ++b)
      for (int64_t h = 0; h < x.shape.Hk; ++h)
        for (int64_t s = 0; s < x.shape.S; ++s) problem.v(b, h, s, s) = 1;
    const Twin twin = run_twin(problem);
    const Bounds bounds = error_bounds(problem, twin);
    for_targets([&] {
      problem.forward(one);
      EXPECT_TRUE(within(flatten(problem.out), twin.weights, bounds.out.worst));
    });
  });
}

void permute(const View<float, 4>& to, const View<float, 4>& from, const std::vector<int64_t>& order) {
  for (int64_t b = 0; b < to.shape(0); ++b)
    for (int64_t h = 0; h < to.shape(1); ++h)
      for (int64_t t = 0; t < to.shape(2); ++t)
        std::copy_n(from.at(b, h, order[static_cast<size_t>(t)]), to.shape(3), to.at(b, h, t));
}

std::vector<int64_t> draw_order(Rng& rng, int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

// Both runs are within their bound of the same number; the twin and its bounds are permuted with the rest.
TEST(AttentionProperty, PermutingQueriesAndKeysPermutesResults) {
  Parallel one(1);
  for_draws(500, [&](Rng& rng) {
    Instance x = draw_instance(rng, 2e5);
    x.mask = {};
    x.extras = {.softcap = x.extras.softcap, .gate = x.extras.gate, .additive = x.extras.additive};
    SCOPED_TRACE(x.describe());
    Problem plain(x), permuted(x);
    const auto queries = draw_order(rng, x.shape.T), keys = draw_order(rng, x.shape.S);
    permute(permuted.q, plain.q, queries);
    permute(permuted.d_out, plain.d_out, queries);
    permute(permuted.k, plain.k, keys);
    permute(permuted.v, plain.v, keys);
    const Bounds bounds = error_bounds(plain, run_twin(plain));
    for_targets([&] {
      // What gradients are added to is not permuted: both are compared as what was added, and that is rounded twice.
      const auto expect = [&](const View<float, 4>& got, const View<float, 4>& want, const Bound& bound,
                              const std::vector<int64_t>& order, bool added) {
        int64_t i = 0;
        for (int64_t b = 0; b < got.shape(0); ++b)
          for (int64_t h = 0; h < got.shape(1); ++h)
            for (int64_t t = 0; t < got.shape(2); ++t)
              for (int64_t d = 0; d < got.shape(3); ++d, ++i) {
                const int64_t from = order[static_cast<size_t>(t)];
                const int64_t j = ((b * got.shape(1) + h) * got.shape(2) + from) * got.shape(3) + d;
                const double a = got(b, h, t, d) - (added ? double{initial_gradient(i)} : 0.0);
                const double e = want(b, h, from, d) - (added ? double{initial_gradient(j)} : 0.0);
                const double terms = added ? kUnit * static_cast<double>(x.shape.S + x.shape.T * x.group() + 8) : 0;
                ASSERT_NEAR(a, e, 2 * bound.worst[static_cast<size_t>(j)] + terms) << "element " << i;
              }
      };
      plain.run(one);
      permuted.run(one);
      expect(permuted.out, plain.out, bounds.out, queries, false);
      expect(permuted.dq, plain.dq, bounds.dq, queries, true);
      expect(permuted.dk, plain.dk, bounds.dk, keys, true);
      expect(permuted.dv, plain.dv, bounds.dv, keys, true);
    });
  });
}

// What one poisoned number reaches. Rows are (b, h, t), keys (b, h, s); each is empty of marks, marked in one column,
// or marked as a whole.
enum class Where { q, k, v, d_out };
constexpr int64_t kNowhere = -1, kEverywhere = -2;

struct Reach {
  std::vector<int64_t> out, lse, dq, dk, dv;  // of each row or key: kNowhere, kEverywhere or a column
};

Reach reach_of(const Instance& x, const Twin& twin, Where where, const Dims<4>& place) {
  const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
  const auto [b, h, row, column] = place;
  const auto rows = static_cast<size_t>(B * Hq * T), keys = static_cast<size_t>(B * Hk * S);
  const auto nowhere = [](size_t n) { return std::vector<int64_t>(n, kNowhere); };
  Reach reach = {nowhere(rows), nowhere(rows), nowhere(rows), nowhere(keys), nowhere(keys)};
  const bool is_key = where == Where::k || where == Where::v;
  const int64_t key_head = is_key ? h : h / x.group();
  for (int64_t g = 0; g < x.group(); ++g)
    for (int64_t t = 0; t < T; ++t) {
      const int64_t head = key_head * x.group() + g;
      const auto seen = [&](int64_t query, int64_t s) {
        return twin.seen[static_cast<size_t>(((place[0] * x.shape.Hq + head) * x.shape.T + query) * x.shape.S + s)] !=
               0;
      };
      const bool own_row = !is_key && head == h && t == row;
      for (int64_t s = 0; s < S; ++s) {
        if (!seen(t, s) || !(is_key ? seen(t, row) : own_row)) continue;
        const auto i = static_cast<size_t>((b * Hq + head) * T + t),
                   j = static_cast<size_t>((b * Hk + key_head) * S + s);
        const bool weights = where == Where::q || where == Where::k;
        if (weights) reach.out[i] = reach.lse[i] = reach.dv[j] = kEverywhere;
        if (where == Where::v) reach.out[i] = column;
        if (where == Where::d_out) reach.dv[j] = column;
        reach.dq[i] = reach.dk[j] = kEverywhere;
      }
    }
  return reach;
}

// Where the poison reaches, NaN must show; everywhere else the bits are those of the clean run.
::testing::AssertionResult reached(const std::vector<float>& got, const std::vector<float>& clean,
                                   const std::vector<int64_t>& reach, bool nan) {
  const size_t width = reach.empty() ? 0 : got.size() / reach.size();
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t at = reach[i / width];
    const bool hit = at == kEverywhere || at == static_cast<int64_t>(i % width);
    if (hit && nan && !std::isnan(got[i]))
      return ::testing::AssertionFailure() << "element " << i << " is " << got[i] << ", expected NaN";
    if (!hit && std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(clean[i]))
      return ::testing::AssertionFailure() << "element " << i << " is " << got[i] << ", without poison " << clean[i];
  }
  return ::testing::AssertionSuccess();
}

TEST(AttentionProperty, PoisonReachesWhatSeesItAndNothingElse) {
  constexpr uint32_t kPoisons[] = {0x7fc00000, 0xffc00000, 0x7fc00001, 0xffc12345, 0x7fffffff, 0x7f800000, 0xff800000};
  Parallel one(1);
  for_draws(3000, [&](Rng& rng) {
    Instance x = draw_instance(rng, 1e5);
    if (x.shape.B * x.shape.T * x.shape.S == 0) return;
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    const auto where = static_cast<Where>(rng.below(4));
    const View<float, 4> views[] = {problem.q, problem.k, problem.v, problem.d_out};
    const View<float, 4>& poisoned = views[static_cast<size_t>(where)];
    Dims<4> place;
    for (size_t i = 0; i < 4; ++i) place[i] = static_cast<int64_t>(rng.below(static_cast<uint64_t>(poisoned.shape(i))));
    float& number = poisoned(place[0], place[1], place[2], place[3]);
    const float poison = from_bits(kPoisons[rng.below(std::size(kPoisons))]);
    constexpr const char* kNames[] = {"q", "k", "v", "d_out"};
    SCOPED_TRACE("poison " + std::to_string(poison) + " in " + kNames[static_cast<size_t>(where)] + to_string(place));
    number = 0;
    const Reach reach = reach_of(x, run_twin(problem), where, place);
    for_targets([&] {
      number = 0;
      const Results<float> clean = problem.run(one);
      number = poison;
      const Results<float> got = problem.run(one);
      const bool nan = std::isnan(poison);
      EXPECT_TRUE(reached(got.out, clean.out, reach.out, nan)) << "out";
      EXPECT_TRUE(reached(got.lse, clean.lse, reach.lse, nan)) << "lse";
      EXPECT_TRUE(reached(got.dq, clean.dq, reach.dq, nan)) << "dq";
      EXPECT_TRUE(reached(got.dk, clean.dk, reach.dk, nan)) << "dk";
      EXPECT_TRUE(reached(got.dv, clean.dv, reach.dv, nan)) << "dv";
    });
  });
}

// The same with every hidden number poisoned at once: keys that nobody sees and queries that see nothing.
TEST(AttentionProperty, NothingHiddenHasInfluence) {
  Parallel one(1);
  for_draws(1000, [&](Rng& rng) {
    Instance x = draw_instance(rng, 2e5);
    SCOPED_TRACE(x.describe());
    Problem problem(x);
    const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
    const auto set_hidden = [&](auto number) {
      std::vector<char> seen(static_cast<size_t>(B * Hk * S), 0);
      for (int64_t b = 0; b < B; ++b)
        for (int64_t h = 0; h < Hq; ++h)
          for (int64_t t = 0; t < T; ++t) {
            bool any = false;
            for (int64_t s = 0; s < S; ++s) {
              if (!problem.visible(b, h, t, s)) continue;
              any = true;
              seen[static_cast<size_t>((b * Hk + h / x.group()) * S + s)] = 1;
            }
            if (any) continue;
            std::generate_n(problem.q.at(b, h, t), D, number);
            std::generate_n(problem.d_out.at(b, h, t), Dv, number);
          }
      for (int64_t b = 0; b < B; ++b)
        for (int64_t h = 0; h < Hk; ++h)
          for (int64_t s = 0; s < S; ++s) {
            if (seen[static_cast<size_t>((b * Hk + h) * S + s)]) continue;
            std::generate_n(problem.k.at(b, h, s), D, number);
            std::generate_n(problem.v.at(b, h, s), Dv, number);
          }
    };
    for_targets([&] {
      set_hidden([] { return 0.0f; });
      const Results<float> clean = problem.run(one);
      set_hidden([&] {
        return from_bits(std::array{0x7fc00001u, 0xffc12345u, 0x7f800000u, 0xff800000u}[rng.below(4)]);
      });
      expect_same_bits(problem.run(one), clean);
    });
  });
}

}  // namespace
}  // namespace heed::kernels::attention_testing
