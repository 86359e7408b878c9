// SPDX-License-Identifier: Apache-2.0
// Observers at the edges: no queries, no keys, large maps, NaN, storage in 16 bits and in pages, wrong arguments.
#include "heed/kernels/attention/observe.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/kernels/attention/observe_testing.h"

namespace heed::kernels::attention_testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

std::vector<int64_t> all_queries(int64_t T) {
  std::vector<int64_t> queries(static_cast<size_t>(T));
  std::iota(queries.begin(), queries.end(), 0);
  return queries;
}

TEST(Observe, WithoutQueriesOrKeysEverythingIsZero) {
  Parallel one(1);
  for (const AttentionShape& shape : {AttentionShape{2, 2, 1, 0, 5, 3, 3}, AttentionShape{2, 2, 1, 5, 0, 3, 3}}) {
    Problem problem({.shape = shape});
    problem.forward(one);
    const Answers<float> got = observe(problem, {.queries = all_queries(shape.T), .M = 3, .N = 4}, one);
    const std::vector<float> map(2 * 2 * 3 * 4, 0.0f), received(static_cast<size_t>(4 * shape.S), 0.0f);
    EXPECT_EQ(got.map_mean, map);
    EXPECT_EQ(got.map_max, map);
    EXPECT_EQ(got.received, received);
    EXPECT_TRUE(got.rows.empty());
  }
}

TEST(Observe, OneQueryGivesAllItsWeightToOneKey) {
  Parallel one(1);
  for_targets([&] {
    Problem problem({.shape = {1, 1, 1, 1, 1, 3, 3}});
    problem.forward(one);
    const Answers<float> got = observe(problem, {.queries = {0, 0}, .M = 2, .N = 3}, one);
    EXPECT_EQ(got.rows, std::vector<float>(2, 1.0f));
    EXPECT_EQ(got.received, std::vector<float>(1, 1.0f));
    EXPECT_EQ(got.map_mean, std::vector<float>(6, 1.0f));
    EXPECT_EQ(got.map_max, std::vector<float>(6, 1.0f));
  });
}

// Equal scores: query t of a causal pass gives 1 / (t + 1) to each of its keys, exactly where that is a power of two.
TEST(Observe, PoolsWhatIsEasyToAddUp) {
  Parallel one(1);
  for_targets([&] {
    Problem problem({.shape = {1, 1, 1, 4, 4, 2, 2}, .mask = {.causal = Causal::top_left()}});
    fill(problem.q, 0);
    problem.forward(one);
    const float third = 1.0f / 3;
    const Answers<float> got = observe(problem, {.queries = {3, 1}, .M = 2, .N = 2}, one);
    EXPECT_EQ(got.rows, (std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f, 0.5f, 0.5f, 0, 0}));
    EXPECT_EQ(got.map_max, (std::vector<float>{1, 0, third, third}));
    EXPECT_EQ(got.map_mean[0], 0.5f);
    EXPECT_EQ(got.map_mean[1], 0.0f);
    EXPECT_FLOAT_EQ(got.map_mean[2], (2 * third + 0.5f) / 4);
    EXPECT_FLOAT_EQ(got.map_mean[3], (third + 0.5f) / 4);
    EXPECT_FLOAT_EQ(got.received[0], 1.75f + third);
    EXPECT_EQ(got.received[3], 0.25f);
  });
}

// Every way to a weight is the same arithmetic.
TEST(Observe, AMapOfFullSizeIsTheWeightsAndALargerOneRepeatsThem) {
  Parallel one(1);
  for_targets([&] {
    for (const auto& [T, S] : {std::pair<int64_t, int64_t>{37, 70}, {130, 9}, {1, 600}}) {
      Problem problem({.shape = {1, 2, 1, T, S, 5, 5}, .mask = {.window = Window::bottom_right(40, 3)}});
      problem.forward(one);
      const Answers<float> full = observe(problem, {.queries = all_queries(T), .M = T, .N = S}, one);
      EXPECT_TRUE(same_bits(full.map_max, full.rows));
      EXPECT_TRUE(same_bits(full.map_mean, full.rows));
      for (const auto& [M, N] : {std::pair<int64_t, int64_t>{2 * T + 1, 3 * S}, {T, S + 1}, {T + 5, S}}) {
        const Answers<float> large = observe(problem, {.M = M, .N = N}, one);
        std::vector<float> expected;
        for (int64_t i = 0; i < 2 * M * N; ++i) {
          const int64_t h = i / N / M, t = i / N % M * T / M, s = i % N * S / N;
          expected.push_back(full.rows[static_cast<size_t>((h * T + t) * S + s)]);
        }
        EXPECT_TRUE(same_bits(large.map_max, expected)) << M << " x " << N;
        EXPECT_TRUE(same_bits(large.map_mean, expected)) << M << " x " << N;
      }
    }
  });
}

// NaN or an infinite logit in a visible place makes the weights of its row NaN where the query sees, and 0 elsewhere.
TEST(Observe, NanReachesWhatItTouchesAndNothingElse) {
  Parallel one(1);
  const AttentionShape shape{1, 2, 2, 40, 90, 8, 8};
  Instance plain{.shape = shape, .mask = {.window = Window::bottom_right(20, 2)}};
  Instance staged = plain;
  staged.extras.bias = Dims<4>{1, 2, 40, 90};
  staged.extras.hidden = 0.3f;
  for (const Instance& x : {plain, staged}) {
    for (const float bad : {kNan, kInfinity}) {
      Problem problem(x);
      problem.q(0, 0, 7, 3) = bad;
      problem.k(0, 1, 70, 3) = bad;
      const Twin twin = run_twin(problem);
      const Questions ask{.queries = all_queries(shape.T), .M = 13, .N = 30};
      const Answers<double> want = twin_answers(shape, ask, twin.weights, twin.weights);
      for_targets([&] {
        problem.forward(one);
        const Answers<float> got = observe(problem, ask, one);
        const auto expect_same_nans = [](const char* name, const std::vector<float>& a, const std::vector<double>& b) {
          int64_t nans = 0;
          for (size_t i = 0; i < a.size(); ++i) {
            ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << name << ", element " << i;
            nans += std::isnan(a[i]);
          }
          EXPECT_GT(nans, 0) << name;
        };
        expect_same_nans("rows", got.rows, want.rows);
        expect_same_nans("received", got.received, want.received);
        expect_same_nans("map_mean", got.map_mean, want.map_mean);
        expect_same_nans("map_max", got.map_max, want.map_max);
      });
    }
  }
}

// f32 keys, and the same numbers stored in another way.
struct Observed {
  std::vector<float> rows, received, map;
};
Observed observe_keys(const Problem& problem, const KvView& k, const KvView& v) {
  const AttentionShape& n = problem.instance.shape;
  const std::vector<int64_t> queries = all_queries(n.T);
  Observed o{std::vector<float>(static_cast<size_t>(n.B * n.Hq * n.T * n.S)),
             std::vector<float>(static_cast<size_t>(n.B * n.Hq * n.S)),
             std::vector<float>(static_cast<size_t>(n.B * n.Hq * 5 * 6))};
  AttentionInputs in = problem.inputs();
  in.k = k, in.v = v;
  Workspace workspace;
  Parallel two(2);
  attention_observe(in, problem.stats,
                    {.queries = queries,
                     .rows = {o.rows.data(), {n.B, n.Hq, n.T, n.S}},
                     .received = {o.received.data(), {n.B, n.Hq, n.S}},
                     .map_mean = {o.map.data(), {n.B, n.Hq, 5, 6}}},
                    problem.options(), workspace, two);
  return o;
}

// Numbers that all storages hold exactly.
void round_to_bf16(const View<float, 4>& view) {
  for (int64_t i = 0; i < view.size(); ++i) {
    float& x = view.data()[i];  // row-major
    x = static_cast<float>(Float16::from(static_cast<float>(BFloat16::from(x))));
  }
}
template <class T>
std::vector<T> stored_as(const View<float, 4>& view) {
  std::vector<T> narrow;
  for (int64_t i = 0; i < view.size(); ++i) narrow.push_back(T::from(view.data()[i]));
  return narrow;
}

// [B,Hk,S,D] in blocks of `n` rows, the last first, with a table that finds them.
struct Pages {
  std::vector<float> pool;
  std::vector<int32_t> table;
  KvView view;

  Pages(const View<float, 4>& rows, int64_t n) {
    const auto& [B, H, S, D] = rows.shape();
    const int64_t each = (S + n - 1) / n, blocks = B * each;
    pool.assign(static_cast<size_t>(blocks * H * n * D), kNan);
    for (int64_t i = 0; i < blocks; ++i) table.push_back(static_cast<int32_t>(blocks - 1 - i));
    const View<float, 4> to(pool.data(), {blocks, H, n, D});
    for (int64_t i = 0; i < rows.size(); ++i) {
      const int64_t d = i % D, s = i / D % S, h = i / D / S % H, b = i / D / S / H;
      to(table[static_cast<size_t>(b * each + s / n)], h, s % n, d) = rows(b, h, s, d);
    }
    view = KvView::paged(to, {table.data(), {B, each}}, S);
  }
};

TEST(Observe, KeysInSixteenBitsOrInPagesGiveTheBitsOfF32) {
  Parallel one(1);
  for_targets([&] {
    for (const int64_t T : {1, 30, 100}) {
      Instance x{.shape = {2, 4, 2, T, 75, 12, 8}, .mask = {.causal = Causal::bottom_right()}};
      Problem problem(x);
      round_to_bf16(problem.k);
      round_to_bf16(problem.v);
      problem.forward(one);  // not of each storage: a decode kernel may add up another way
      const Observed wide = observe_keys(problem, problem.k, problem.v);
      const auto expect_same = [&](const KvView& k, const KvView& v) {
        const Observed other = observe_keys(problem, k, v);
        EXPECT_TRUE(same_bits(other.rows, wide.rows));
        EXPECT_TRUE(same_bits(other.received, wide.received));
        EXPECT_TRUE(same_bits(other.map, wide.map));
      };
      const auto kb = stored_as<BFloat16>(problem.k), vb = stored_as<BFloat16>(problem.v);
      expect_same(View<const BFloat16, 4>(kb.data(), problem.k.shape()),
                  View<const BFloat16, 4>(vb.data(), problem.v.shape()));
      const auto kh = stored_as<Float16>(problem.k), vh = stored_as<Float16>(problem.v);
      expect_same(View<const Float16, 4>(kh.data(), problem.k.shape()),
                  View<const Float16, 4>(vh.data(), problem.v.shape()));
      const Pages pages_k(problem.k, 16), pages_v(problem.v, 16);
      expect_same(pages_k.view, pages_v.view);
    }
  });
}

TEST(Observe, GivesWhatIsWantedAndScoresNeedNoStatistics) {
  Problem problem({.shape = {1, 1, 1, 20, 30, 4, 4}});
  Parallel one(1);
  problem.forward(one);
  const Answers<float> all = observe(problem, {.queries = {4}, .stage = AttentionStage::raw, .M = 3, .N = 4}, one);
  Workspace workspace;
  std::vector<float> numbers(30);
  const std::vector<int64_t> queries = {4};
  attention_observe(
      problem.inputs(), {},
      {.queries = queries, .stage = AttentionStage::raw, .rows = View<float, 4>(numbers.data(), {1, 1, 1, 30})}, {},
      workspace, one);
  EXPECT_TRUE(same_bits(numbers, all.rows));
  attention_observe(problem.inputs(), problem.stats, {.received = {numbers.data(), {1, 1, 30}}}, {}, workspace, one);
  EXPECT_TRUE(same_bits(numbers, all.received));
  numbers.resize(12);
  attention_observe(problem.inputs(), problem.stats, {.map_mean = {numbers.data(), {1, 1, 3, 4}}}, {}, workspace, one);
  EXPECT_TRUE(same_bits(numbers, all.map_mean));
  attention_observe(problem.inputs(), problem.stats, {.map_max = {numbers.data(), {1, 1, 3, 4}}}, {}, workspace, one);
  EXPECT_TRUE(same_bits(numbers, all.map_max));
}

// No data is read to make a plan: a view may be of memory that nobody has.
TEST(Observe, ScratchDoesNotGrowWithTheSequence) {
  const auto bytes = [](int64_t T) {
    float nothing = 0;
    const View<float, 4> x(&nothing, {1, 1, T, 64});
    const AttentionObservations to{.received = {&nothing, {1, 1, T}}, .map_mean = {&nothing, {1, 1, 256, 256}}};
    return ObservationPlan::make({.q = x, .k = x, .v = x}, View<float, 4>(&nothing, {1, 1, T, 2}), to)
        .workspace_bytes(1);
  };
  EXPECT_EQ(bytes(1 << 20), bytes(1 << 12));
  EXPECT_LT(bytes(1 << 20), 200u << 10);
}

std::string error_of(const AttentionObservations& to, bool with_stats = true) {
  std::vector<float> numbers(4096);
  const View<float, 4> x(numbers.data(), {2, 2, 16, 4}), stats(numbers.data(), {2, 2, 16, 2});
  try {
    ObservationPlan::make({.q = x, .k = x, .v = x}, with_stats ? stats : View<float, 4>{}, to);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Observe, ErrorsNameTheArgument) {
  std::vector<float> numbers(4096);
  float* p = numbers.data();
  const std::vector<int64_t> two = {3, 15}, beyond = {0, 1, 2, 17}, below = {-1};
  EXPECT_EQ(error_of({.queries = two, .rows = {p, {2, 2, 2, 16}}}), "no error");
  EXPECT_EQ(error_of({.queries = beyond, .rows = {p, {2, 2, 4, 16}}}),
            "attention: observe: queries[3] is 17, expected 0 to 15 (T - 1)");
  EXPECT_EQ(error_of({.queries = below, .rows = {p, {2, 2, 1, 16}}}),
            "attention: observe: queries[0] is -1, expected 0 to 15 (T - 1)");
  EXPECT_EQ(error_of({.queries = two, .rows = {p, {2, 2, 3, 16}}}),
            "attention: observe: rows has shape [2, 2, 3, 16], expected [2, 2, 2, 16]");
  EXPECT_EQ(error_of({.queries = two}), "attention: observe: rows has shape [0, 0, 0, 0], expected [2, 2, 2, 16]");
  EXPECT_EQ(error_of({.received = {p, {2, 2, 15}}}),
            "attention: observe: received has shape [2, 2, 15], expected [2, 2, 16]");
  EXPECT_EQ(error_of({.received = {p, {2, 2, 16}, {32, 0, 1}}}),
            "attention: observe: received has shape [2, 2, 16] and strides [32, 0, 1], expected strides that keep its "
            "elements apart");
  EXPECT_EQ(error_of({.map_mean = {p, {2, 1, 4, 4}}}),
            "attention: observe: map_mean has shape [2, 1, 4, 4], expected [2, 2, 4, 4]");
  EXPECT_EQ(error_of({.map_mean = {p, {2, 2, 4, 4}}, .map_max = {p, {2, 2, 4, 5}}}),
            "attention: observe: map_max has shape [2, 2, 4, 5], expected [2, 2, 4, 4]");
  EXPECT_EQ(error_of({.map_max = {p, {2, 2, 4, 4}, {64, 32, 8, 2}}}),
            "attention: observe: map_max has strides [64, 32, 8, 2], expected a last stride of 1");
  EXPECT_EQ(error_of({.received = {p, {2, 2, 16}}}, false),
            "attention: observe: stats has shape [0, 0, 0, 0], expected [2, 2, 16, 2]");
  EXPECT_EQ(error_of({.queries = two, .stage = AttentionStage::masked, .rows = {p, {2, 2, 2, 16}}}, false), "no error");
}

}  // namespace
}  // namespace heed::kernels::attention_testing
