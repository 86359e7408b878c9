// SPDX-License-Identifier: Apache-2.0
// Ring attention on ranks that are threads, against the twin over the whole sequence.
//
// The bounds are those of the kernels for one pass over the sequence (error_bounds.h). They count S + 12 roundings of a
// sum of S terms, in any order. In a ring a sum has at most S / 2 n terms of a chunk, and then up to 2 n merges of six
// roundings each: no more, from some sixty rows on.
#include "heed/dist/ring_attention.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <vector>

#include "heed/base/testing.h"
#include "heed/dist/testing.h"
#include "heed/kernels/attention/observe_testing.h"

namespace heed::dist {
namespace {

using heed::testing::error_of;
using heed::testing::seeded;
using namespace kernels::attention_testing;  // NOLINT(google-build-using-namespace)
using kernels::AttentionGradients;
using kernels::AttentionInputs;
using kernels::AttentionObservations;
using kernels::AttentionOptions;
using kernels::AttentionOutputs;
using kernels::AttentionShape;
using kernels::Causal;
using kernels::MaskAlignment;
using kernels::Window;

// Arrays that live as long as this does.
class Arrays {
 public:
  View<float, 4> floats(const Dims<4>& shape, bool heads_inside = false) {
    std::vector<float>& memory = floats_.emplace_back(static_cast<size_t>(element_count(shape)), -7.0f);
    if (!heads_inside) return {memory.data(), shape};
    return View<float, 4>(memory.data(), {shape[0], shape[2], shape[1], shape[3]}).transposed(1, 2);
  }
  View<float, 3> rows(const Dims<3>& shape) { return {floats({1, shape[0], shape[1], shape[2]}).data(), shape}; }
  View<int32_t, 4> keys(const Dims<4>& shape) {
    return {keys_.emplace_back(static_cast<size_t>(element_count(shape)), -7).data(), shape};
  }

 private:
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int32_t>> keys_;
};

// [B,H,T] as [B,H,T,1].
template <class T>
View<T, 4> with_width(const View<T, 3>& rows) {
  return {rows.data(), {rows.shape(0), rows.shape(1), rows.shape(2), 1}};
}

struct Setting {
  int ranks = 2, threads = 1;
  bool heads_inside = false;         // [B,T,H,D] in memory
  int64_t K = 3, M_each = 0, N = 0;  // strongest keys; rows of a map for each chunk of queries, and its columns
};

// Everything of the whole sequence, put together from what the ranks have.
struct Whole {
  Arrays arrays;
  AttentionOutputs out;
  AttentionGradients grad;
  AttentionObservations seen;
  std::vector<RingAttention::Costs> costs;

  Whole(const AttentionShape& n, const Setting& setting) : costs(static_cast<size_t>(setting.ranks)) {
    const Dims<3> rows{n.B, n.Hq, n.T};
    out = {.out = arrays.floats({n.B, n.Hq, n.T, n.Dv}),
           .lse = arrays.rows(rows),
           .stats = arrays.floats({n.B, n.Hq, n.T, 2}),
           .entropy = arrays.rows(rows),
           .top_weights = arrays.floats({n.B, n.Hq, n.T, setting.K}),
           .top_keys = arrays.keys({n.B, n.Hq, n.T, setting.K})};
    grad.dq = gradient({n.B, n.Hq, n.T, n.D});
    grad.dk = gradient({n.B, n.Hk, n.T, n.D});
    grad.dv = gradient({n.B, n.Hk, n.T, n.Dv});
    seen.received = arrays.rows(rows);
    const Dims<4> map{n.B, n.Hq, 2 * setting.ranks * setting.M_each, setting.N};
    seen.map_mean = arrays.floats(map), seen.map_max = arrays.floats(map);
  }

  View<float, 4> gradient(const Dims<4>& shape) {
    const View<float, 4> all = arrays.floats(shape);
    for (int64_t i = 0; i < all.size(); ++i) all.data()[i] = initial_gradient(i);
    return all;
  }

  Results<float> results() const {
    return {flatten(out.out),
            flatten(with_width(out.lse)),
            flatten(out.stats),
            flatten(grad.dq),
            flatten(grad.dk),
            flatten(grad.dv),
            {},
            {},
            {}};
  }
};

// One rank's part of a problem, in memory of its own.
class Part {
 public:
  Part(const Problem& problem, const Whole& whole, const Setting& setting, Communicator& communicator,
       Parallel& parallel)
      : problem_(problem),
        setting_(setting),
        n_(problem.instance.shape),
        rank_(communicator.rank()),
        ring_(communicator, n_.T, parallel),
        rows_(ring_.rows()) {
    in_ = {.q = take(problem.q), .k = take(problem.k), .v = take(problem.v)};
    out_ = {.out = floats(n_.Hq, n_.Dv),
            .lse = arrays_.rows({n_.B, n_.Hq, rows_}),
            .stats = arrays_.floats({n_.B, n_.Hq, rows_, 2}),
            .entropy = arrays_.rows({n_.B, n_.Hq, rows_}),
            .top_weights = arrays_.floats({n_.B, n_.Hq, rows_, setting.K}),
            .top_keys = arrays_.keys({n_.B, n_.Hq, rows_, setting.K})};
    grad_ = {.out = out_.out, .stats = out_.stats, .d_out = take(problem.d_out)};
    grad_.dq = take(whole.grad.dq), grad_.dk = take(whole.grad.dk), grad_.dv = take(whole.grad.dv);
  }

  void run(Whole& whole) {
    const AttentionOptions options = problem_.options();
    ring_.forward(in_, out_, options);
    ring_.backward(in_, grad_, options);
    AttentionObservations seen{.received = arrays_.rows({n_.B, n_.Hq, rows_})};
    if (setting_.M_each > 0) {
      seen.map_mean = arrays_.floats({n_.B, n_.Hq, 2 * setting_.M_each, setting_.N});
      seen.map_max = arrays_.floats({n_.B, n_.Hq, 2 * setting_.M_each, setting_.N});
      ring_.observe(in_, out_.stats, seen, options);
      const Placement cells(2 * setting_.ranks * setting_.M_each, setting_.ranks);
      put_rows<float>(cells, rank_, seen.map_mean, whole.seen.map_mean);
      put_rows<float>(cells, rank_, seen.map_max, whole.seen.map_max);
    } else {
      ring_.observe(in_, out_.stats, seen, options);
    }
    put(out_.out, whole.out.out), put(out_.stats, whole.out.stats), put(out_.top_weights, whole.out.top_weights);
    put(with_width(out_.lse), with_width(whole.out.lse));
    put(with_width(out_.entropy), with_width(whole.out.entropy));
    put(with_width(seen.received), with_width(whole.seen.received));
    put_rows<int32_t>(ring_.placement(), rank_, out_.top_keys, whole.out.top_keys);
    put(grad_.dq, whole.grad.dq), put(grad_.dk, whole.grad.dk), put(grad_.dv, whole.grad.dv);
    whole.costs[static_cast<size_t>(rank_)] = ring_.costs();
  }

 private:
  View<float, 4> floats(int64_t heads, int64_t width) {
    return arrays_.floats({n_.B, heads, rows_, width}, setting_.heads_inside);
  }
  View<float, 4> take(const View<float, 4>& whole) {
    const View<float, 4> own = floats(whole.shape(1), whole.shape(3));
    take_rows<float>(ring_.placement(), rank_, whole, own);
    return own;
  }
  void put(const View<float, 4>& own, const View<float, 4>& whole) {
    put_rows<float>(ring_.placement(), rank_, own, whole);
  }

  const Problem& problem_;
  const Setting& setting_;
  const AttentionShape& n_;
  int rank_;
  RingAttention ring_;
  int64_t rows_;
  Arrays arrays_;
  AttentionInputs in_;
  AttentionOutputs out_;
  AttentionGradients grad_;
};

void run_ring(const Problem& problem, const Setting& setting, Whole& whole) {
  testing::run_ranks(setting.ranks, [&](Communicator& communicator) {
    Parallel parallel(setting.threads);
    Part(problem, whole, setting, communicator, parallel).run(whole);
  });
}

void expect_observed(const Problem& problem, const Twin& twin, const Setting& setting, const Whole& whole) {
  const AttentionShape& n = problem.instance.shape;
  const PairErrors errors = pair_errors(problem, twin);
  const Questions ask{.M = 2 * setting.ranks * setting.M_each, .N = setting.N};
  const Answers<double> want = twin_answers(n, ask, twin.weights, twin.weights);
  Answers<double> bounds = twin_answers(n, ask, errors.weight, errors.weight);
  const auto add_roundings = [](std::vector<double>& bound, const std::vector<double>& sums, int64_t terms) {
    for (size_t i = 0; i < bound.size(); ++i) bound[i] += (sums[i] + bound[i]) * kUnit * static_cast<double>(terms + 8);
  };
  add_roundings(bounds.received, want.received, n.T);
  add_roundings(bounds.map_mean, want.map_mean, n.T + n.S);
  EXPECT_TRUE(within(flatten(with_width(whole.seen.received)), want.received, bounds.received)) << "received";
  if (setting.M_each > 0) {
    EXPECT_TRUE(within(flatten(whole.seen.map_mean), want.map_mean, bounds.map_mean)) << "map_mean";
    EXPECT_TRUE(within(flatten(whole.seen.map_max), want.map_max, bounds.map_max)) << "map_max";
  }
  for (int64_t row = 0; row < n.B * n.Hq * n.T; ++row) {
    const TwinRow expected(twin, errors, row, n.S);
    const auto K = static_cast<size_t>(setting.K), begin = static_cast<size_t>(row) * K;
    EXPECT_NEAR(whole.out.entropy.data()[row], expected.entropy(), expected.entropy_error()) << "row " << row;
    expect_top(expected, {whole.out.top_keys.data() + begin, K}, {whole.out.top_weights.data() + begin, K});
    if (::testing::Test::HasFailure()) return;
  }
}

void expect_whole(const Instance& x, const Setting& setting) {
  SCOPED_TRACE(x.describe() + " on " + std::to_string(setting.ranks) + " ranks");
  const Problem problem(x);
  const Twin twin = run_twin(problem);
  Whole whole(x.shape, setting);
  run_ring(problem, setting, whole);
  expect_near_twin(x, whole.results(), twin, error_bounds(problem, twin));
  expect_observed(problem, twin, setting, whole);
}

TEST(RingAttention, CausalEqualsOneProcess) {
  for (const int ranks : {1, 2, 3, 4}) {
    expect_whole({.shape = {1, 2, 2, 96, 96, 16, 16}, .mask = {.causal = Causal::top_left()}},
                 {.ranks = ranks, .M_each = 2, .N = 8 * ranks});
  }
}

TEST(RingAttention, FullEqualsOneProcess) {
  for (const int ranks : {2, 4}) expect_whole({.shape = {2, 2, 2, 80, 80, 8, 8}}, {.ranks = ranks});
}

TEST(RingAttention, GroupedHeadsAndOtherWidths) {
  expect_whole({.shape = {2, 6, 2, 72, 72, 24, 10}, .mask = {.causal = Causal::bottom_right()}},
               {.ranks = 3, .M_each = 3, .N = 12});
}

// Rows that no number of chunks divides, with heads inside of rows.
TEST(RingAttention, AnyLengthAndLayout) {
  for (const int64_t T : {67, 101}) {
    expect_whole({.shape = {1, 4, 2, T, T, 7, 9}, .mask = {.causal = Causal::top_left()}},
                 {.ranks = 4, .heads_inside = true});
  }
}

TEST(RingAttention, WindowsAndOffsets) {
  const AttentionShape n{1, 2, 1, 90, 90, 8, 8};
  expect_whole({.shape = n, .mask = {.window = Window::top_left(20, 3)}}, {.ranks = 3, .M_each = 5, .N = 18});
  expect_whole({.shape = n, .mask = {.causal = Causal::offset(-7)}}, {.ranks = 3});
  expect_whole({.shape = n, .mask = {.causal = Causal::offset(30), .window = Window::offset(2, 11, 40)}}, {.ranks = 2});
}

// The second sequence ends in the first chunk, the third has no keys.
TEST(RingAttention, Lengths) {
  expect_whole({.shape = {3, 2, 2, 64, 64, 8, 8},
                .mask = {.causal = Causal::top_left(), .lengths = std::vector<int64_t>{64, 5, 0}}},
               {.ranks = 4, .M_each = 1, .N = 8});
}

TEST(RingAttention, AlibiAndSoftcap) {
  expect_whole({.shape = {1, 4, 2, 70, 70, 8, 8},
                .mask = {.causal = Causal::top_left()},
                .extras = {.alibi = MaskAlignment{}, .softcap = 5}},
               {.ranks = 3});
}

TEST(RingAttention, RandomProblems) {
  for_draws(40, [](Rng& rng) {
    const int64_t T = 64 + static_cast<int64_t>(rng.below(60)), Hk = 1 + static_cast<int64_t>(rng.below(2));
    Instance x{.shape = {1, Hk * (1 + static_cast<int64_t>(rng.below(3))), Hk, T, T,
                         1 + static_cast<int64_t>(rng.below(20)), 1 + static_cast<int64_t>(rng.below(20))}};
    x.seed = rng.next_u64();
    if (rng.below(2)) x.mask.causal = Causal::offset(static_cast<int64_t>(rng.below(20)) - 10);
    if (rng.below(3) == 0) {
      x.mask.window = Window::offset(0, static_cast<int64_t>(rng.below(60)), static_cast<int64_t>(rng.below(60)));
    }
    if (rng.below(3) == 0) x.mask.lengths = std::vector<int64_t>{static_cast<int64_t>(rng.below(T + 1))};
    expect_whole(x, {.ranks = 1 + static_cast<int>(rng.below(4)), .heads_inside = rng.below(2) == 1});
  });
}

TEST(RingAttention, TheSameBitsForAnyNumberOfThreads) {
  const Problem problem({.shape = {1, 2, 1, 300, 300, 16, 16}, .mask = {.causal = Causal::top_left()}});
  const Setting alone{.ranks = 2}, together{.ranks = 2, .threads = 3};
  Whole a(problem.instance.shape, alone), b(problem.instance.shape, together);
  run_ring(problem, alone, a);
  run_ring(problem, together, b);
  expect_same_bits(a.results(), b.results());
  EXPECT_TRUE(same_bits(flatten(with_width(a.seen.received)), flatten(with_width(b.seen.received))));
}

// One rank has its own chunks merged, and all else as attention_forward has it.
TEST(RingAttention, CausalWorkAndMessagesAreTheSameOnEveryRank) {
  const int64_t T = 160;
  const Problem problem({.shape = {1, 2, 1, T, T, 8, 12}, .mask = {.causal = Causal::top_left()}});
  const Setting setting{.ranks = 4};
  Whole whole(problem.instance.shape, setting);
  run_ring(problem, setting, whole);
  const int64_t block = T / 4 * (8 + 12) * 4, keys = T / 4 * 8 * 4, received = T / 4 * 2 * 4;
  for (const RingAttention::Costs& costs : whole.costs) {
    EXPECT_EQ(costs.pairs, 3.0 * 2 * (T * (T + 1) / 2) / 4);  // three passes, two heads, a quarter of the pairs
    // Three blocks of keys and values in forward; as many, and four of their gradients, in backward; then keys alone.
    EXPECT_EQ(costs.bytes_sent, 3 * block + 3 * block + 4 * block + 3 * keys + 4 * received);
    EXPECT_GT(costs.bytes_held, static_cast<size_t>(5 * block));
  }
}

// Chunks longer than the queries that are worked on at once, against one pass in f32. A row sees 40 keys; roundings are
// as in merge_rows_test.cc, of scores below 20, and a wrong key would be an error as large as a value.
TEST(RingAttention, LongChunks) {
  const int64_t T = 9000, D = 8, seen = 40;
  const Instance x{.shape = {1, 2, 1, T, T, D, D}, .mask = {.window = Window::top_left(seen - 1, 0)}};
  Problem problem(x);
  Parallel one(1);
  const Results<float> expected = problem.run(one);
  const Setting setting{.ranks = 2};
  Whole whole(x.shape, setting);
  run_ring(problem, setting, whole);
  const Results<float> got = whole.results();
  const auto largest = [](const View<float, 4>& view) {
    float most = 0;
    for (const float f : flatten(view)) most = std::max(most, std::abs(f));
    return double{most};
  };
  const auto expect_near = [](const char* name, const std::vector<float>& a, const std::vector<float>& b,
                              double bound) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], bound) << name << " " << i;
  };
  const double merges = 4, error = (2 * ((D + 10) * 20 + 5) + 2 * seen + 20 + 6 * merges) * kUnit;
  const double v = largest(problem.v), d_out = largest(problem.d_out), keys = largest(problem.k);
  // dS = P (dP - delta), both of them below D v d_out: P is wrong by `error` of itself, and so are dP and delta.
  const double ds = 4 * error * D * v * d_out * x.score_scale();
  expect_near("out", got.out, expected.out, 2 * error * v);
  expect_near("lse", got.lse, expected.lse, 4 * error);
  expect_near("dq", got.dq, expected.dq, 2 * ds * keys);
  expect_near("dk", got.dk, expected.dk, 2 * ds * largest(problem.q) * 2 * seen);  // of two heads
  expect_near("dv", got.dv, expected.dv, 2 * error * d_out * 2 * seen);
}

// A row or two a chunk.
TEST(RingAttention, ShortSequences) {
  for (const int64_t T : {6, 7, 11}) {
    const Instance x{.shape = {1, 1, 1, T, T, 4, 4}, .mask = {.causal = Causal::top_left()}};
    const Problem problem(x);
    const Setting setting{.ranks = 3};
    Whole whole(x.shape, setting);
    run_ring(problem, setting, whole);
    const Twin twin = run_twin(problem);
    // Six merges of six roundings each are more than the bounds count for so few terms.
    Bounds bounds = error_bounds(problem, twin);
    for (size_t i = 0; i < twin.out.size(); ++i) bounds.out.worst[i] += 36 * kUnit * 8;  // values are below 8
    EXPECT_TRUE(within(whole.results().out, twin.out, bounds.out.worst));
  }
}

// What is not wanted need not be there.
TEST(RingAttention, OutputsAloneAndOneGradient) {
  const Instance x{.shape = {1, 2, 1, 64, 64, 8, 8}, .mask = {.causal = Causal::top_left()}};
  Problem problem(x);
  const Setting setting{.ranks = 2};
  Whole whole(x.shape, setting);
  run_ring(problem, setting, whole);
  testing::run_ranks(2, [&](Communicator& communicator) {
    Parallel parallel(1);
    RingAttention ring(communicator, 64, parallel);
    Arrays arrays;
    const auto take = [&](const View<float, 4>& of) {
      const View<float, 4> own = arrays.floats({1, of.shape(1), ring.rows(), of.shape(3)});
      take_rows<float>(ring.placement(), communicator.rank(), of, own);
      return own;
    };
    const AttentionInputs in{.q = take(problem.q), .k = take(problem.k), .v = take(problem.v)};
    const View<float, 4> out = arrays.floats({1, 2, ring.rows(), 8}), dv = take(Whole(x.shape, setting).grad.dv);
    const View<int32_t, 4> top_keys = arrays.keys({1, 2, ring.rows(), 3});
    ring.forward(in, {.out = out, .top_keys = top_keys}, problem.options());
    EXPECT_TRUE(same_bits(flatten(out), flatten(take(whole.out.out))));
    for (int64_t t = 0; t < 32; ++t) {
      EXPECT_EQ(top_keys(0, 1, t, 0),
                whole.out.top_keys(0, 1, ring.placement().chunk(communicator.rank()).begin + t, 0));
      if (t == 15) break;  // of the first chunk
    }
    ring.backward(in, {.out = out, .stats = take(whole.out.stats), .d_out = take(problem.d_out), .dv = dv},
                  problem.options());
    EXPECT_TRUE(same_bits(flatten(dv), flatten(take(whole.grad.dv))));
  });
}

// --- errors

struct Given {
  AttentionInputs in;
  AttentionOutputs out;
  AttentionOptions options;
  int64_t length = 16;
};

// The error of a forward pass on two ranks, of which `change` may make the arguments wrong.
std::string error_of_forward(const std::function<void(int rank, Given& given, Arrays& arrays)>& change) {
  return error_of([&] {
    testing::run_ranks(2, [&](Communicator& communicator) {
      Parallel parallel(1);
      Arrays arrays;
      Given given;
      given.in = {.q = arrays.floats({1, 2, 8, 4}), .k = arrays.floats({1, 2, 8, 4}), .v = arrays.floats({1, 2, 8, 4})};
      given.out.out = arrays.floats({1, 2, 8, 4});
      change(communicator.rank(), given, arrays);
      RingAttention(communicator, given.length, parallel).forward(given.in, given.out, given.options);
    });
  });
}

// Whichever rank was first: its number is not looked at.
void expect_error(const std::function<void(int rank, Given& given, Arrays& arrays)>& change, const std::string& text) {
  const std::string error = error_of_forward(change);
  EXPECT_NE(error.find(text), std::string::npos) << "got: " << error;
}

TEST(RingAttention, WrongArgumentsOfOneRankEndAll) {
  EXPECT_EQ(error_of_forward([](int, Given&, Arrays&) {}), "no error");
  expect_error(
      [](int rank, Given& given, Arrays& a) {
        if (rank == 1) given.in.q = a.floats({1, 2, 9, 4});
      },
      "ring attention: q has shape [1, 2, 9, 4], expected 8 rows (of rank 1, of a sequence of 16)");
  expect_error(
      [](int rank, Given& given, Arrays& a) {
        if (rank == 0) given.in.v = a.floats({1, 1, 8, 4});
      },
      "attention: v has shape [1, 1, 8, 4], expected [1, 2, 8, Dv]");
  expect_error(
      [](int, Given& given, Arrays& a) {
        given.length = 3;
        given.in = {.q = a.floats({1, 2, 1, 4}), .k = a.floats({1, 2, 1, 4}), .v = a.floats({1, 2, 1, 4})};
      },
      "ring attention: a sequence of 3 rows on 2 ranks, expected 4 rows or more");
  expect_error([](int, Given& given, Arrays&) { given.options.dropout.rate = 0.5f; },
               "ring attention: dropout.rate is 0.500000, expected 0");
  expect_error(
      [](int rank, Given& given, Arrays& a) {
        if (rank == 1) given.in.bias = a.floats({1, 1, 1, 1});
      },
      "ring attention: bias is given, expected none");
  expect_error(
      [](int, Given& given, Arrays&) {
        static const std::vector<int64_t> lengths{17};
        given.options.mask = kernels::Lengths{lengths};
      },
      "attention: lengths[0] is 17, expected 0 to 16 (S)");
}

TEST(RingAttention, RanksThatDifferAreNamed) {
  expect_error(
      [](int rank, Given& given, Arrays&) {
        if (rank == 1) given.options.mask = Causal::top_left();
      },
      "ranks differ: causal is 'none' on rank 0 and 'offset 0' on rank 1");
  expect_error(
      [](int rank, Given& given, Arrays&) {
        if (rank == 1) given.options.scale = 0.25f;
      },
      "ranks differ: scale is 'by D' on rank 0 and '0.25' on rank 1");
  expect_error(
      [](int rank, Given& given, Arrays& a) {
        if (rank == 1) given.in.v = a.floats({1, 2, 8, 6}), given.out.out = a.floats({1, 2, 8, 6});
      },
      "ranks differ: Dv is '4' on rank 0 and '6' on rank 1");
}

TEST(RingAttention, MapsOfOtherSizesAreNamed) {
  EXPECT_NE(
      error_of([] {
        testing::run_ranks(2, [](Communicator& communicator) {
          Parallel parallel(1);
          Arrays arrays;
          RingAttention ring(communicator, 16, parallel);
          const AttentionInputs in{
              .q = arrays.floats({1, 1, 8, 4}), .k = arrays.floats({1, 1, 8, 4}), .v = arrays.floats({1, 1, 8, 4})};
          ring.observe(in, arrays.floats({1, 1, 8, 2}), {.map_mean = arrays.floats({1, 1, 3, 4})});
        });
      })
          .find("a rank's rows of the map have shape [1, 1, 3, 4], of a sequence of 16: expected an even number of "
                "rows, and columns and a length that 4 divides"),
      std::string::npos);
}

}  // namespace
}  // namespace heed::dist
