// SPDX-License-Identifier: Apache-2.0
// What a plan throws, in the words a user reads, and what it promises.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "heed/base/allocator.h"
#include "heed/base/error.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/targets.h"

namespace heed::kernels {
namespace {

// Views over one buffer that is never touched: planning reads shapes and strides only.
float memory[1];

View<float, 4> view(const Dims<4>& shape) { return {memory, shape}; }

struct Call {
  AttentionInputs in{view({2, 8, 16, 64}), view({2, 4, 32, 64}), view({2, 4, 32, 48})};
  AttentionOutputs out{.out = view({2, 8, 16, 48})};
  AttentionGradients grad{.out = view({2, 8, 16, 48}), .stats = view({2, 8, 16, 2}), .d_out = view({2, 8, 16, 48})};
  AttentionOptions options;

  AttentionPlan forward() const { return AttentionPlan::forward(in, out, options); }
  AttentionPlan backward() const { return AttentionPlan::backward(in, grad, options); }
};

template <class Plan>
std::string error_of(const Plan& plan) {
  try {
    plan();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string forward_error(const Call& call) {
  return error_of([&] { return call.forward(); });
}
std::string backward_error(const Call& call) {
  return error_of([&] { return call.backward(); });
}

TEST(AttentionPlan, TakesWhatFits) {
  EXPECT_EQ(forward_error(Call{}), "no error");
  EXPECT_EQ(backward_error(Call{}), "no error");
}

TEST(AttentionPlan, NamesAWrongShape) {
  Call c;
  c.in.k = view({2, 4, 32, 32});
  EXPECT_EQ(forward_error(c), "attention: k has shape [2, 4, 32, 32], expected [2, Hk, S, 64]");
  c = Call{};
  c.in.k = view({3, 4, 32, 64});
  EXPECT_EQ(forward_error(c), "attention: k has shape [3, 4, 32, 64], expected [2, Hk, S, 64]");
  c = Call{};
  c.in.k = view({2, 3, 32, 64});
  EXPECT_EQ(forward_error(c), "attention: k has 3 heads, expected a divisor of q's 8");
  c = Call{};
  c.in.k = view({2, 0, 32, 64});
  EXPECT_EQ(forward_error(c), "attention: k has 0 heads, expected a divisor of q's 8");
  c = Call{};
  c.in.v = view({2, 4, 31, 48});
  EXPECT_EQ(forward_error(c), "attention: v has shape [2, 4, 31, 48], expected [2, 4, 32, Dv]");
  c = Call{};
  c.in.q = view({2, 8, -1, 64});
  EXPECT_EQ(forward_error(c), "attention: q has shape [2, 8, -1, 64], expected no negative extent");
  c = Call{};
  c.out.out = view({2, 8, 16, 64});
  EXPECT_EQ(forward_error(c), "attention: out has shape [2, 8, 16, 64], expected [2, 8, 16, 48]");
  c = Call{};
  c.out.lse = {memory, {2, 8, 17}};
  EXPECT_EQ(forward_error(c), "attention: lse has shape [2, 8, 17], expected [2, 8, 16]");
  c = Call{};
  c.out.stats = view({2, 8, 16, 1});
  EXPECT_EQ(forward_error(c), "attention: stats has shape [2, 8, 16, 1], expected [2, 8, 16, 2]");
}

TEST(AttentionPlan, NamesAWrongWidth) {
  Call c;
  c.in.q = view({2, 8, 16, 0});
  EXPECT_EQ(forward_error(c), "attention: q has shape [2, 8, 16, 0], expected a head width D from 1 to 2048");
  c.in.q = view({2, 8, 16, 2049});
  EXPECT_EQ(forward_error(c), "attention: q has shape [2, 8, 16, 2049], expected a head width D from 1 to 2048");
  c = Call{};
  c.in.v = view({2, 4, 32, 3000});
  EXPECT_EQ(forward_error(c), "attention: v has shape [2, 4, 32, 3000], expected a head width Dv from 1 to 2048");
  c = Call{};
  c.in.k = view({2, 4, (1 << 24) + 1, 64});
  EXPECT_EQ(forward_error(c), "attention: k has shape [2, 4, 16777217, 64], expected 0 to 16777216 keys");
}

TEST(AttentionPlan, NamesAWrongStride) {
  Call c;
  c.in.q = {memory, {2, 8, 16, 64}, {8192, 1024, 64, 2}};
  EXPECT_EQ(forward_error(c), "attention: q has strides [8192, 1024, 64, 2], expected a last stride of 1");
  c = Call{};
  c.in.k = View<const float, 4>{memory, {2, 4, 32, 64}, {8192, 2048, 1, 32}};
  EXPECT_EQ(forward_error(c), "attention: k has strides [8192, 2048, 1, 32], expected a last stride of 1");
  c = Call{};
  c.out.out = {memory, {2, 8, 16, 48}, {0, 768, 48, 1}};
  EXPECT_EQ(forward_error(c),
            "attention: out has shape [2, 8, 16, 48] and strides [0, 768, 48, 1], expected strides that keep its "
            "elements apart");
  c.out.out = {memory, {2, 8, 16, 48}, {8 * 752, 752, 47, 1}};
  EXPECT_EQ(forward_error(c),
            "attention: out has shape [2, 8, 16, 48] and strides [6016, 752, 47, 1], expected strides that keep its "
            "elements apart");
}

TEST(AttentionPlan, TakesInputsThatRepeat) {
  Call c;  // one sentence's keys for both batches
  c.in.k = View<const float, 4>{memory, {2, 4, 32, 64}, {0, 2048, 64, 1}};
  EXPECT_EQ(forward_error(c), "no error");
}

TEST(AttentionPlan, NamesAMissingView) {
  Call c;
  c.in.v = View<const float, 4>{nullptr, {2, 4, 32, 48}};
  EXPECT_EQ(forward_error(c), "attention: v is an empty view");
  c = Call{};
  c.out.out = {};
  EXPECT_EQ(forward_error(c), "attention: out has shape [0, 0, 0, 0], expected [2, 8, 16, 48]");
  c = Call{};
  c.grad.stats = {};
  EXPECT_EQ(backward_error(c), "attention: stats has shape [0, 0, 0, 0], expected [2, 8, 16, 2]");
}

TEST(AttentionPlan, NamesAWrongDtype) {
  Call c;
  BFloat16 half[1];
  c.in.v = View<const BFloat16, 4>{half, {2, 4, 32, 48}};
  EXPECT_EQ(forward_error(c), "attention: v is bf16, expected f32 as k");
  c.in.k = View<const BFloat16, 4>{half, {2, 4, 32, 64}};
  EXPECT_EQ(forward_error(c), "no error");
  EXPECT_EQ(c.forward().bytes(), 4.0 * 2 * 8 * 16 * (64 + 48) + 2.0 * 2 * 4 * 32 * (64 + 48));
}

TEST(AttentionPlan, NamesAWrongGradient) {
  Call c;
  c.grad.d_out = view({2, 8, 15, 48});
  EXPECT_EQ(backward_error(c), "attention: d_out has shape [2, 8, 15, 48], expected [2, 8, 16, 48]");
  c = Call{};
  c.grad.dq = view({2, 8, 16, 48});
  EXPECT_EQ(backward_error(c), "attention: dq has shape [2, 8, 16, 48], expected [2, 8, 16, 64]");
  c = Call{};
  c.grad.dk = view({2, 8, 32, 64});
  EXPECT_EQ(backward_error(c), "attention: dk has shape [2, 8, 32, 64], expected [2, 4, 32, 64]");
  c = Call{};
  c.grad.dv = {memory, {2, 4, 32, 48}, {0, 0, 48, 1}};
  EXPECT_EQ(backward_error(c),
            "attention: dv has shape [2, 4, 32, 48] and strides [0, 0, 48, 1], expected strides that keep its elements "
            "apart");
}

TEST(AttentionPlan, NamesAWrongOption) {
  Call c;
  c.options.scale = std::numeric_limits<float>::infinity();
  EXPECT_EQ(forward_error(c), "attention: scale is inf, expected a finite number");
  const int64_t lengths[] = {32, 33};
  c = Call{};
  c.options.mask = Mask{Lengths{lengths}};
  EXPECT_EQ(forward_error(c), "attention: lengths[1] is 33, expected 0 to 32 (S)");
  EXPECT_EQ(backward_error(c), "attention: lengths[1] is 33, expected 0 to 32 (S)");
}

TEST(AttentionPlan, CountsFlopsOfWhatIsVisible) {
  Call c;
  EXPECT_EQ(c.forward().flops(), 2.0 * 8 * 16 * 32 * (2 * 64 + 2 * 48));
  EXPECT_EQ(c.backward().flops(), 2.0 * 8 * 16 * 32 * (6 * 64 + 4 * 48));
  c.options.mask = Mask{Causal::top_left()};
  EXPECT_EQ(c.forward().flops(), 2.0 * 8 * (16 * 17 / 2) * (2 * 64 + 2 * 48));
}

TEST(AttentionPlan, ChoosesByShape) {
  Call c;
  EXPECT_EQ(c.forward().kernel(), AttentionPlan::Kernel::tiles);
  EXPECT_EQ(c.backward().kernel(), AttentionPlan::Kernel::backward);
  EXPECT_EQ(c.forward().describe(),
            "attention tiles (queries in lanes): B=2 Hq=8 Hk=4 T=16 S=32 D=64 Dv=48, 32 queries a block");
  c.in.q = view({2, 8, 1, 64});
  c.out.out = view({2, 8, 1, 48});
  EXPECT_EQ(c.forward().kernel(), AttentionPlan::Kernel::decode);
  EXPECT_EQ(c.forward().scale(), 0.125f);
}

TEST(AttentionPlan, SaysWhatItIsOf) {
  Call c;
  c.options.scale = 0.5f;
  const AttentionPlan plan = c.backward();
  EXPECT_EQ(plan.shape().Hk, 4);
  EXPECT_EQ(plan.scale(), 0.5f);
  EXPECT_EQ(plan.kv_dtype(), DType::f32);
}

TEST(AttentionPlan, IsOfNothingByDefault) {
  const AttentionPlan plan;
  EXPECT_EQ(plan.shape().B, 0);
  EXPECT_EQ(plan.flops(), 0);
}

// Moving is copying, so that no plan is left without what was settled.
TEST(AttentionPlan, CopiesShareWhatWasSettled) {
  AttentionPlan plan = Call{}.forward();
  const AttentionPlan copy = plan, moved = std::move(plan);
  EXPECT_EQ(&copy.details(), &moved.details());
  EXPECT_EQ(&copy.details(), &plan.details());  // NOLINT(bugprone-use-after-move)
  plan = Call{}.backward();
  EXPECT_EQ(plan.kernel(), AttentionPlan::Kernel::backward);
  EXPECT_EQ(copy.kernel(), AttentionPlan::Kernel::tiles);
}

// An op makes a plan at every call: the second allocates nothing.
TEST(AttentionPlan, ComesFromTheCache) {
  const float slopes[] = {1, 2, 3, 4, 5, 6, 7, 8};
  Call c;
  c.options.mask = Mask{Causal::top_left(), Alibi::top_left(slopes)};
  c.forward(), c.backward();
  const int64_t fresh = allocator_stats().fresh;
  c.forward(), c.backward();
  EXPECT_EQ(allocator_stats().fresh, fresh);
}

TEST(SimdTargets, AreNamedAndChosen) {
  const std::vector<std::string> targets = simd_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(simd_target(), targets.front());
  for (const std::string& name : targets) {
    use_simd_target(name);
    EXPECT_EQ(simd_target(), name);
    EXPECT_EQ(simd_targets(), targets);
  }
  use_simd_target("");
  EXPECT_EQ(simd_target(), targets.front());
  EXPECT_EQ(error_of([] { use_simd_target("MMX"); }).find("simd target is 'MMX', expected one of "), 0u);
}

}  // namespace
}  // namespace heed::kernels
