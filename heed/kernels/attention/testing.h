// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of attention share: random instances, tensors with guards around them, and the twin's answers to the
// same f32 data. How far from those a correct f32 kernel may be: error_bounds.h.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/parallel.h"
#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/attention.h"

namespace heed::kernels::attention_testing {

using heed::testing::seeded;

// bthd: a row holds all heads. packed: a row holds all heads of q, k and v (it needs T = S). padded: dimensions in any
// order, with gaps.
enum class Layout { bhtd, bthd, packed, padded };

// A Mask borrows its numbers; this owns them.
struct OwnedMask {
  std::optional<Causal> causal = std::nullopt;
  std::optional<Window> window = std::nullopt;
  std::optional<std::vector<int64_t>> lengths = std::nullopt;
  std::optional<std::vector<int64_t>> packed_queries = std::nullopt, packed_keys = std::nullopt;

  Mask borrow() const;
};

// Optional inputs and options; their values are drawn with the problem.
struct Extras {
  std::optional<MaskAlignment> alibi = std::nullopt;
  std::optional<Dims<4>> dense = std::nullopt, bias = std::nullopt;  // shapes: an extent of 1 is broadcast
  float hidden = 0;                                                  // share of the bias that is -inf
  float softcap = 0;
  Dropout dropout = {};
  bool gate = false, additive = false;

  bool any() const { return alibi || dense || bias || softcap > 0 || dropout.on() || gate || additive; }
};

struct Instance {
  AttentionShape shape;
  OwnedMask mask = {};
  Extras extras = {};
  std::optional<float> scale = std::nullopt;
  Layout inputs = Layout::bhtd, out = Layout::bhtd, d_out = Layout::bhtd, gradients = Layout::bhtd;
  float deviation = 1;  // standard deviation of q and k; v and d_out have 1
  uint64_t seed = seeded(1);

  int64_t group() const { return shape.Hk ? shape.Hq / shape.Hk : 1; }
  double score_scale() const;
  // By the definition of each constraint of `mask`, one pair at a time.
  bool visible(int64_t b, int64_t t, int64_t s) const;
  std::string describe() const;  // one line
};

// Sizes are drawn from the edges of tiles and vectors; `work` limits the pairs times the widths.
Instance draw_instance(Rng& rng, double work);
OwnedMask draw_mask(Rng& rng, const AttentionShape& shape);
Extras draw_extras(Rng& rng, const AttentionShape& shape);

// Buffers in which every float that belongs to no tensor is a guard: a NaN that shows when it is read and used, and
// whose bits say when it was written.
class GuardedMemory {
 public:
  View<float, 4> allot(const Dims<4>& shape, Layout layout, Rng& rng);
  // [B,H,T,D] tensors that lie side by side in each row.
  std::vector<View<float, 4>> allot_packed(const std::vector<Dims<4>>& shapes, Rng& rng);
  std::string damage() const;  // empty if every guard is whole

 private:
  struct Buffer {
    std::vector<float> floats;
    std::vector<View<float, 4>> tensors;
  };
  std::vector<Buffer> buffers_;
};

// Everything row-major: [B,H,T,D] and [B,H,T].
template <class T>
struct Results {
  std::vector<T> out, lse, stats, dq, dk, dv;
  std::vector<T> d_bias, d_head_gate, dw;  // empty where there is none
};

// An instance with its tensors, filled with random numbers. Gradients begin at small numbers other than zero.
class Problem {
 public:
  explicit Problem(const Instance& instance);

  const Instance instance;
  View<float, 4> q, k, v, d_out, out, stats, dq, dk, dv;
  View<float, 4> bias, d_bias, gate, d_gate, w, dw;  // empty where not wanted; [1,1,1,Hq] and [1,1,Hq,D]
  View<float, 3> lse;

  AttentionInputs inputs() const;
  AttentionOutputs outputs() const { return {.out = out, .lse = lse, .stats = stats}; }
  AttentionGradients gradients() const;
  AttentionOptions options() const;
  // Whether query t of a head sees key s, by the instance's mask, the boolean mask and the bias.
  bool visible(int64_t b, int64_t h, int64_t t, int64_t s) const;

  // In scratch that begins as NaN and must not be overrun.
  void forward(Parallel& parallel);
  void backward(Parallel& parallel);
  Results<float> run(Parallel& parallel);  // both, and no guard may be damaged
  Results<float> results() const;

 private:
  Workspace scratch_for(const AttentionPlan& plan, int threads) const;
  void expect_undamaged(const Workspace& scratch, size_t used) const;
  GuardedMemory memory_;
  std::vector<float> slopes_;
  std::unique_ptr<bool[]> dense_;
};

float initial_gradient(int64_t index);  // of the flattened tensor

struct Twin : Results<double> {
  std::vector<double> q, k, v, d_out;  // the f32 data, row-major
  std::vector<double> weights;         // [B,Hq,T,S]
  std::vector<double> bias, gate, w;   // empty where there is none
  std::vector<double> raw, masked;     // [B,Hq,T,S]: scores before softcap and bias, and after
  std::vector<char> seen;              // [B,Hq,T,S], by Problem::visible
};
Twin run_twin(const Problem& problem);

::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b);
void expect_same_bits(const Results<float>& a, const Results<float>& b);

std::vector<float> flatten(const View<float, 4>& view);
void fill(const View<float, 4>& view, float value);
float from_bits(uint32_t bits);

// body(rng) for `count` draws, times HEED_TEST_EFFORT in (0, 1], until one fails. HEED_TEST_DRAW=n runs draw n alone.
void for_draws(int count, const std::function<void(Rng&)>& body);
// body() on every SIMD target of this machine.
void for_targets(const std::function<void()>& body);
double effort();

}  // namespace heed::kernels::attention_testing
