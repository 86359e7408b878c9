// SPDX-License-Identifier: Apache-2.0
#include "heed/train/gradient_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/dist/testing.h"

namespace heed::train {
namespace {

using heed::testing::error_of, heed::testing::seeded;

struct Module {
  Parameter a{.value = Tensor::zeros({7, 13})}, b{.value = Tensor::zeros({5})}, c{.value = Tensor::zeros({31, 3})};
  void visit(auto&& each) { each("a", a), each("b", b), each("c", c); }
};

// Numbers of very different sizes: another order would give other bits.
std::vector<float> gradients_of(int64_t m, int64_t n, uint64_t seed) {
  Rng rng(seed, static_cast<uint64_t>(m));
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& number : numbers) number = rng.normal() * std::exp2(rng.uniform(-12, 12));
  return numbers;
}

std::vector<float> sum_of(const SumNode& node, const std::vector<std::vector<float>>& all) {
  if (node.single()) return all[static_cast<size_t>(node.begin)];
  std::vector<float> left = sum_of(node.left(), all);
  const std::vector<float> right = sum_of(node.right(), all);
  for (size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

// One rank's steps, of which it gives the sums.
std::vector<std::vector<float>> steps(const GradientSumOptions& options, dist::Communicator& communicator,
                                      uint64_t seed, bool overlapped) {
  Module module;
  const ParameterStore store(module);
  Parallel parallel(1);
  GradientSum sum(store, options, communicator, parallel);
  const std::span<float> gradients = store.gradients().span<float>();
  std::vector<std::vector<float>> sums;
  for (uint64_t step = 0; step < 2; ++step) {
    store.clear_gradients();
    for (int64_t m = sum.mine().begin; m < sum.mine().end; ++m) {
      const std::vector<float> mine = gradients_of(m, store.gradients().size(), seed + step);
      for (size_t i = 0; i < mine.size(); ++i) gradients[i] += mine[i];
      if (overlapped && m + 1 == sum.mine().end) {
        for (const size_t entry : {2, 0, 1}) sum.whole(store.entries()[entry].gradient), sum.op_done();
      }
      sum.computed(m);
    }
    sum.finish();
    sums.emplace_back(gradients.begin(), gradients.end());
  }
  return sums;
}

TEST(SumTree, DependsOnTheNumberOfMicroBatchesAlone) {
  EXPECT_EQ((SumNode{0, 7}.middle()), 4);
  EXPECT_EQ((SumNode{4, 7}.middle()), 6);
  EXPECT_EQ((SumNode{0, 8}.middle()), 4);
  EXPECT_EQ(roots_of(8, {2, 5}), (std::vector<SumNode>{{2, 4}, {4, 5}}));
  EXPECT_EQ(roots_of(8, {4, 8}), (std::vector<SumNode>{{4, 8}}));
  EXPECT_EQ(parent_of({6, 7}, {0, 7}), (SumNode{4, 7}));
  EXPECT_EQ(parent_of({0, 4}, {0, 7}), (SumNode{0, 7}));
  for (int ranks = 1; ranks <= 8; ++ranks) {
    int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const SumNode& root : roots_of(11, share_of_rank(11, rank, ranks))) {
        EXPECT_EQ(std::exchange(next, root.end), root.begin) << "a gap between roots";
      }
    }
    EXPECT_EQ(next, 11);
  }
}

TEST(GradientSum, IsTheSameBitsOnAnyNumberOfRanks) {
  const uint64_t seed = seeded(1);
  Module module;
  const int64_t n = ParameterStore(module).gradients().size();
  for (const int64_t micro_batches : {1, 2, 3, 4, 5, 7, 8, 9}) {
    std::vector<std::vector<float>> expected;
    for (uint64_t step = 0; step < 2; ++step) {
      std::vector<std::vector<float>> all;
      for (int64_t m = 0; m < micro_batches; ++m) all.push_back(gradients_of(m, n, seed + step));
      expected.push_back(sum_of({0, micro_batches}, all));
    }
    for (int ranks = 1; ranks <= std::min<int64_t>(micro_batches, 5); ++ranks) {
      for (const int64_t bucket : {1, 10, 64, 1 << 20}) {
        dist::testing::run_ranks(ranks, [&](dist::Communicator& communicator) {
          for (const bool overlapped : {false, true}) {
            const GradientSumOptions options{.micro_batches = micro_batches, .bucket = bucket};
            EXPECT_EQ(steps(options, communicator, seed, overlapped), expected)
                << micro_batches << " micro-batches, " << ranks << " ranks, buckets of " << bucket;
          }
        });
      }
    }
  }
}

// Any order adds the same numbers, each sum with an error of its own: below the sum of sizes times a rounding for each.
TEST(GradientSum, AnyOrderIsTheSameToRounding) {
  const uint64_t seed = seeded(2);
  constexpr int64_t kMicroBatches = 6;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    dist::testing::run_ranks(ranks, [&](dist::Communicator& communicator) {
      const auto sums =
          steps({.order = SumOrder::any, .micro_batches = kMicroBatches, .bucket = 50}, communicator, seed, true);
      for (uint64_t step = 0; step < sums.size(); ++step) {
        const std::vector<float>& sum = sums[step];
        std::vector<double> exact(sum.size()), sizes(sum.size());
        for (int64_t m = 0; m < kMicroBatches; ++m) {
          const std::vector<float> one = gradients_of(m, std::ssize(sum), seed + step);
          for (size_t i = 0; i < sum.size(); ++i) exact[i] += one[i], sizes[i] += std::abs(one[i]);
        }
        for (size_t i = 0; i < sum.size(); ++i) {
          ASSERT_NEAR(sum[i], exact[i], kMicroBatches * 0x1p-24 * sizes[i]) << i << " on " << ranks << " ranks";
        }
      }
    });
  }
}

TEST(GradientSum, WantsAMicroBatchForEachRank) {
  const std::string error = error_of([&] {
    dist::testing::run_ranks(
        3, [&](dist::Communicator& communicator) { steps({.micro_batches = 2}, communicator, 1, false); });
  });
  EXPECT_EQ(error.substr(error.find(": ") + 2),
            "train: accumulate is 2 with 3 ranks, expected a batch for each of them, or more");
}

}  // namespace
}  // namespace heed::train
