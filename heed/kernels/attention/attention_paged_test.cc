// SPDX-License-Identifier: Apache-2.0
// Paged keys and values: the bits are those of the same rows in contiguous memory, whatever the order of the blocks,
// and blocks that are not in the table are never read.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/error_bounds.h"
#include "heed/kernels/attention/testing.h"

namespace heed::kernels::attention_testing {
namespace {

// The rows of a [B,H,S,D] tensor in blocks of `rows`, shuffled, with some blocks of NaN between them.
struct Pages {
  std::vector<float> pool;
  std::vector<int32_t> table;
  Dims<4> pool_shape;
  int64_t blocks_a_batch, S;

  Pages(const View<float, 4>& from, int64_t rows, Rng& rng) : S(from.shape(2)) {
    blocks_a_batch = (S + rows - 1) / rows;
    const int64_t used = from.shape(0) * blocks_a_batch, spare = 3;
    pool_shape = {used + spare, from.shape(1), rows, from.shape(3)};
    pool.assign(static_cast<size_t>(element_count(pool_shape)), std::numeric_limits<float>::quiet_NaN());
    std::vector<int32_t> order(static_cast<size_t>(used + spare));
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    table.assign(order.begin(), order.begin() + used);
    const View<float, 4> to(pool.data(), pool_shape);
    for (int64_t b = 0; b < from.shape(0); ++b)
      for (int64_t h = 0; h < from.shape(1); ++h)
        for (int64_t s = 0; s < S; ++s) {
          const int32_t block = table[static_cast<size_t>(b * blocks_a_batch + s / rows)];
          std::copy_n(from.at(b, h, s), from.shape(3), to.at(block, h, s % rows));
        }
  }

  KvView view(int64_t B) const {
    return KvView::paged(View<const float, 4>(pool.data(), pool_shape), {table.data(), {B, blocks_a_batch}}, S);
  }
};

struct Ran {
  std::vector<float> out, dq, dk, dv;
  bool operator==(const Ran&) const = default;
};

Ran run(const Problem& problem, const AttentionInputs& in) {
  Parallel two(2);
  Workspace scratch;
  const auto& [B, Hq, Hk, T, S, D, Dv] = problem.instance.shape;
  const auto zeros = [](const Dims<4>& shape) { return std::vector<float>(static_cast<size_t>(element_count(shape))); };
  const Dims<4> q{B, Hq, T, D}, k{B, Hk, S, D}, v{B, Hk, S, Dv}, out{B, Hq, T, Dv};
  Ran r{zeros(out), zeros(q), zeros(k), zeros(v)};
  std::vector<float> stats = zeros({B, Hq, T, 2});
  const View<float, 4> out_view(r.out.data(), out), stats_view(stats.data(), {B, Hq, T, 2});
  attention_forward(in, {.out = out_view, .stats = stats_view}, problem.options(), scratch, two);
  attention_backward(in,
                     {.out = out_view,
                      .stats = stats_view,
                      .d_out = problem.d_out,
                      .dq = {r.dq.data(), q},
                      .dk = {r.dk.data(), k},
                      .dv = {r.dv.data(), v}},
                     problem.options(), scratch, two);
  return r;
}

TEST(AttentionPaged, GivesTheBitsOfOnePiece) {
  for_draws(300, [](Rng& rng) {
    Instance x = draw_instance(rng, 1e6);
    if (x.shape.B == 0) return;
    x.inputs = Layout::bthd;
    SCOPED_TRACE(x.describe());
    const Problem problem(x);
    const Pages k(problem.k, static_cast<int64_t>(1 + rng.below(40)), rng);
    const Pages v(problem.v, static_cast<int64_t>(1 + rng.below(40)), rng);
    // One block a batch holds everything, in order: cut as the others are, and so rounded in the same places.
    const Pages whole_k(problem.k, std::max<int64_t>(1, x.shape.S), rng);
    const Pages whole_v(problem.v, std::max<int64_t>(1, x.shape.S), rng);
    const Twin twin = run_twin(problem);
    const Bounds bounds = error_bounds(problem, twin);
    for_targets([&] {
      AttentionInputs paged = problem.inputs(), whole = problem.inputs();
      paged.k = k.view(x.shape.B), paged.v = v.view(x.shape.B);
      whole.k = whole_k.view(x.shape.B), whole.v = whole_v.view(x.shape.B);
      const Ran got = run(problem, paged);
      if (x.shape.T != 1) {
        EXPECT_TRUE(got == run(problem, whole));
      } else {  // a step of decoding goes from block to block, and rounds there
        EXPECT_TRUE(within(got.out, twin.out, bounds.out.worst));
      }
    });
  });
}

TEST(AttentionPaged, PlanNamesWhatIsWrong) {
  std::vector<float> numbers(1000);
  const View<const float, 4> q(numbers.data(), {1, 1, 2, 4}), pool(numbers.data(), {3, 1, 8, 4});
  const View<float, 4> out(numbers.data(), {1, 1, 2, 4});
  const auto message = [&](std::vector<int32_t> table, int64_t S) -> std::string {
    const KvView kv = KvView::paged(pool, {table.data(), {1, static_cast<int64_t>(table.size())}}, S);
    try {
      AttentionPlan::forward({q, kv, kv}, {.out = out});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({0, 2}, 16), "");
  EXPECT_EQ(message({0, 2, -1}, 16), "");  // an entry that no key needs
  EXPECT_EQ(message({0, 3}, 16), "attention: k.table(0, 1) is 3, expected a block of the pool's 3");
  EXPECT_EQ(message({-1, 0}, 9), "attention: k.table(0, 0) is -1, expected a block of the pool's 3");
  EXPECT_EQ(message({0, 1}, 17), "attention: k.table has shape [1, 2], expected at least 3 blocks of 8 for 17 keys");
}

}  // namespace
}  // namespace heed::kernels::attention_testing
