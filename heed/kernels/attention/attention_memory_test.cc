// SPDX-License-Identifier: Apache-2.0
// What attention costs in memory: scratch linear in T, nothing allocated by a kernel, and no T x T anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "heed/base/counted_heap.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/testing.h"

namespace heed::kernels::attention_testing {
namespace {

// Inputs and outputs of one head of self-attention; T x D tensors filled with a number, so that their pages are real.
struct SelfAttention {
  SelfAttention(int64_t heads, int64_t T, int64_t D)
      : shape{1, heads, T, D},
        numbers(static_cast<size_t>(8 * element_count(shape)), 0.5f),
        stats(static_cast<size_t>(2 * heads * T), 0.0f) {}

  View<float, 4> tensor(int64_t i) { return {numbers.data() + i * element_count(shape), shape}; }
  View<float, 4> stats_view() { return {stats.data(), {1, shape[1], shape[2], 2}}; }
  AttentionInputs inputs() { return {tensor(0), tensor(1), tensor(2)}; }
  AttentionOutputs outputs() { return {tensor(3), {}, stats_view()}; }
  AttentionGradients gradients() { return {tensor(3), stats_view(), tensor(4), tensor(5), tensor(6), tensor(7)}; }

  Dims<4> shape;
  std::vector<float> numbers, stats;
};

// A plan looks at shapes and strides only, so that no memory is needed to ask it.
struct PlansOf {
  PlansOf(const AttentionShape& n, const AttentionOptions& options) {
    static float nowhere;
    const View<float, 4> q(&nowhere, {n.B, n.Hq, n.T, n.D}), k(&nowhere, {n.B, n.Hk, n.S, n.D});
    const View<float, 4> v(&nowhere, {n.B, n.Hk, n.S, n.Dv}), out(&nowhere, {n.B, n.Hq, n.T, n.Dv});
    const View<float, 4> stats(&nowhere, {n.B, n.Hq, n.T, 2});
    forward = AttentionPlan::forward({q, k, v}, {out, {}, stats}, options);
    backward = AttentionPlan::backward({q, k, v}, {out, stats, out, q, k, v}, options);
  }
  AttentionPlan forward, backward;
};

TEST(AttentionMemory, PlannedScratchIsLinear) {
  for (const AttentionOptions& options : {AttentionOptions{}, AttentionOptions{{}, Mask{Causal::top_left()}}})
    for (int threads : {1, 2})
      for (int64_t heads : {1, 8})
        for (int64_t D : {8, 64, 256})
          for (int64_t T = 128; T <= 16384; T *= 2) {
            const PlansOf at({1, heads, heads, T, T, D, D}, options);
            const PlansOf twice({1, heads, heads, 2 * T, 2 * T, D, D}, options);
            const auto name = std::to_string(heads) + " heads, T=" + std::to_string(T) + " D=" + std::to_string(D) +
                              " threads=" + std::to_string(threads);
            EXPECT_LE(static_cast<double>(twice.forward.workspace_bytes(threads)),
                      2.1 * static_cast<double>(at.forward.workspace_bytes(threads)))
                << "forward, " << name;
            EXPECT_LE(static_cast<double>(twice.backward.workspace_bytes(threads)),
                      2.1 * static_cast<double>(at.backward.workspace_bytes(threads)))
                << "backward, " << name;
          }
}

TEST(AttentionMemory, ScratchOfALongForwardIsSmall) {
  for (int64_t D : {8, 64, 256})
    for (int threads : {1, 2})
      EXPECT_LE(PlansOf({1, 1, 1, 131072, 131072, D, D}, {}).forward.workspace_bytes(threads), size_t{100'000'000});
}

// Bytes beyond inputs and outputs at the highest point of planning, reserving and running.
int64_t measured(SelfAttention& attention, const AttentionOptions& options, bool backward) {
  Parallel two(2);
  const int64_t before = counted_heap::alive_bytes();
  counted_heap::reset_peak();
  Workspace scratch;
  if (backward) {
    attention_backward(attention.inputs(), attention.gradients(), options, scratch, two);
  } else {
    attention_forward(attention.inputs(), attention.outputs(), options, scratch, two);
  }
  return counted_heap::peak_bytes() - before;
}

// A window, for the sake of time, at the full lengths; the plan needs the same scratch without one.
TEST(AttentionMemory, MeasuredScratchIsLinear) {
  const AttentionOptions options = {{}, Mask{Causal::top_left(), Window::top_left(64, 0)}};
  for (bool backward : {false, true}) {
    int64_t previous = 0;
    for (int64_t T = 2048; T <= 32768; T *= 2) {
      SelfAttention attention(1, T, 16);
      measured(attention, options, false);  // backward reads what forward has written
      const int64_t bytes = measured(attention, options, backward);
      const PlansOf plain({1, 1, 1, T, T, 16, 16}, {});
      EXPECT_GE(bytes + 4096, static_cast<int64_t>((backward ? plain.backward : plain.forward).workspace_bytes(2)))
          << "a window must not make the measurement easier";
      if (previous > 0) {
        EXPECT_LE(static_cast<double>(bytes), 2.1 * static_cast<double>(previous)) << "T=" << T;
      }
      previous = bytes;
    }
  }
}

// "VmRSS" or "VmHWM" of this process, in bytes.
int64_t resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return 1024 * std::stoll(line.substr(field.size() + 1));
  return -1;
}

TEST(AttentionMemory, ALongForwardStaysResidentInAHundredMegabytes) {
  SelfAttention attention(1, 131072, 8);
  std::ofstream("/proc/self/clear_refs") << 5;  // the high-water mark begins anew
  const int64_t before = resident("VmHWM");
  ASSERT_GT(before, 0);
  const int64_t counted = measured(attention, {{}, Mask{Causal::top_left(), Window::top_left(255, 0)}}, false);
  EXPECT_LE(counted, 100'000'000);
  EXPECT_LE(resident("VmHWM") - before, 100'000'000);
}

TEST(AttentionMemory, KernelsAllocateNothing) {
  Parallel one(1), two(2);
  for (const AttentionShape& shape :
       {AttentionShape{2, 4, 2, 100, 130, 17, 9}, AttentionShape{1, 4, 2, 1, 3000, 16, 16},
        AttentionShape{1, 1, 1, 700, 1500, 4, 4}})
    for (Layout layout : {Layout::bhtd, Layout::bthd, Layout::padded}) {
      const Instance x = {.shape = shape, .mask = {.causal = Causal::bottom_right()}, .inputs = layout};
      SCOPED_TRACE(x.describe());
      Problem problem(x);
      const auto forward = AttentionPlan::forward(problem.inputs(), problem.outputs(), problem.options());
      const auto backward = AttentionPlan::backward(problem.inputs(), problem.gradients(), problem.options());
      for_targets([&] {
        for (Parallel* parallel : {&one, &two}) {
          const int threads = parallel->threads();
          Workspace scratch(std::max(forward.workspace_bytes(threads), backward.workspace_bytes(threads)));
          const int64_t before = counted_heap::allocations();
          attention_forward(forward, problem.inputs(), problem.outputs(), scratch, *parallel);
          EXPECT_EQ(counted_heap::allocations() - before, 0) << "forward, " << threads << " threads";
          attention_backward(backward, problem.inputs(), problem.gradients(), scratch, *parallel);
          EXPECT_EQ(counted_heap::allocations() - before, 0) << "forward and backward, " << threads << " threads";
        }
      });
    }
}

}  // namespace
}  // namespace heed::kernels::attention_testing
