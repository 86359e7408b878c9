// SPDX-License-Identifier: Apache-2.0
// The baseline has to be right before it is worth being faster than: against the twin, within the same error bounds.
#include "bench/unfused.h"

#include <gtest/gtest.h>

#include "heed/kernels/attention/error_bounds.h"
#include "heed/kernels/attention/testing.h"

namespace heed::bench {
namespace {

namespace at = kernels::attention_testing;

void begin_gradient(const View<float, 4>& x) {
  int64_t index = 0;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t)
        for (int64_t d = 0; d < x.shape(3); ++d) x(b, h, t, d) = at::initial_gradient(index++);
}

void expect_unfused_near_twin(const at::Instance& instance, int threads) {
  SCOPED_TRACE(instance.describe() + ", threads " + std::to_string(threads));
  const at::Problem problem(instance);
  const auto& [B, Hq, Hk, T, S, D, Dv] = instance.shape;
  const at::Twin twin = at::run_twin(problem);
  const at::Bounds bounds = at::error_bounds(problem, twin);
  const kernels::Visibility visibility(instance.mask.borrow(), B, T, S);
  Parallel parallel(threads);
  Unfused unfused({problem.q, problem.k, problem.v, problem.out, problem.d_out, problem.dq, problem.dk, problem.dv},
                  visibility, parallel);
  unfused.forward();
  EXPECT_TRUE(at::within(at::flatten(problem.out), twin.out, bounds.out.worst)) << "out";
  at::fill(problem.out, 0);
  unfused.forward_keeping();
  EXPECT_TRUE(at::within(at::flatten(problem.out), twin.out, bounds.out.worst)) << "out, keeping the weights";
  for (const View<float, 4>& gradient : {problem.dq, problem.dk, problem.dv}) begin_gradient(gradient);
  unfused.backward();
  EXPECT_TRUE(at::within(at::flatten(problem.dq), twin.dq, bounds.dq.worst)) << "dq";
  EXPECT_TRUE(at::within(at::flatten(problem.dk), twin.dk, bounds.dk.worst)) << "dk";
  EXPECT_TRUE(at::within(at::flatten(problem.dv), twin.dv, bounds.dv.worst)) << "dv";
}

TEST(Unfused, IsAttentionInEveryLayout) {
  for (at::Layout layout : {at::Layout::bhtd, at::Layout::bthd, at::Layout::packed, at::Layout::padded}) {
    at::Instance instance{.shape = {.B = 2, .Hq = 4, .Hk = 2, .T = 37, .S = 37, .D = 16, .Dv = 16}};
    instance.inputs = instance.gradients = layout;
    instance.out = instance.d_out = layout == at::Layout::packed ? at::Layout::bthd : layout;
    for (int threads : {1, 2}) expect_unfused_near_twin(instance, threads);
  }
}

TEST(Unfused, IsAttentionUnderEveryMaskOfTheGrid) {
  at::Instance instance{.shape = {.B = 2, .Hq = 2, .Hk = 2, .T = 50, .S = 50, .D = 8, .Dv = 12}};
  instance.mask.causal = kernels::Causal::top_left();
  expect_unfused_near_twin(instance, 1);
  instance.mask = {.window = kernels::Window::top_left(7, 7)};
  expect_unfused_near_twin(instance, 1);
  instance.mask = {.lengths = std::vector<int64_t>{33, 1}};
  expect_unfused_near_twin(instance, 1);
}

TEST(Unfused, CutsAHeadWhereThereAreFewerHeadsThanThreads) {
  at::Instance instance{.shape = {.B = 1, .Hq = 1, .Hk = 1, .T = 65, .S = 65, .D = 32, .Dv = 32}};
  instance.mask.causal = kernels::Causal::top_left();
  for (int threads : {1, 2, 3}) expect_unfused_near_twin(instance, threads);
  instance.shape.Hq = 3;
  expect_unfused_near_twin(instance, 2);
}

TEST(Unfused, IsAttentionForOneQuery) {
  const at::Instance decode{.shape = {.B = 1, .Hq = 8, .Hk = 8, .T = 1, .S = 300, .D = 64, .Dv = 64}};
  for (int threads : {1, 2}) expect_unfused_near_twin(decode, threads);
}

}  // namespace
}  // namespace heed::bench
