// SPDX-License-Identifier: Apache-2.0
// Every gradient of the twin against differences of its forward pass, in random combinations of all options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/kernels/reference/attention.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

using heed::testing::seeded;

// A shape, options and numbers, from a seed. It owns what the mask borrows.
struct Draw {
  Rng rng;
  bool packed;
  AttentionShape n;
  std::vector<int64_t> lengths, queries, keys;
  std::unique_ptr<bool[]> visible;
  std::vector<float> slopes;
  AttentionOptions options;
  Arrays arrays;
  Array4 d_out;

  explicit Draw(uint64_t seed)
      : rng(seed),
        packed(chance(0.3)),
        n(draw_shape()),
        arrays{normal<4>({n.B, n.Hq, n.T, n.D}), normal<4>({n.B, n.Hk, n.S, n.D}), normal<4>({n.B, n.Hk, n.S, n.Dv})},
        d_out(normal<4>({n.B, n.Hq, n.T, n.Dv})) {
    draw_ranges();
    if (chance(0.3)) draw_dense();
    if (chance(0.5)) draw_alibi();
    if (chance(0.5)) draw_bias();
    if (chance(0.5)) draw_gate();
    if (chance(0.5)) arrays.w = normal<2>({n.Hq, n.D});
    if (chance(0.5)) options.scale = rng.uniform(-1, 1);
    if (chance(0.5)) options.softcap = rng.uniform(1, 4);
    if (chance(0.5)) options.dropout = {rng.uniform(0, 0.7f), rng.next_u64()};
  }
  Draw(const Draw&) = delete;

  bool chance(double probability) { return rng.uniform() < probability; }
  int64_t between(int64_t low, int64_t high) { return low + static_cast<int64_t>(rng.below(high - low + 1)); }

  template <size_t Rank>
  Array<Rank> normal(const Dims<Rank>& shape) {
    Array<Rank> array(shape);
    for (double& x : array.data) x = double{rng.normal()};
    return array;
  }

  AttentionShape draw_shape() {
    const int64_t Hk = between(1, 2);
    return {.B = packed ? 1 : between(1, 2),
            .Hq = Hk * between(1, 2),
            .Hk = Hk,
            .T = between(1, 6),
            .S = between(1, 7),
            .D = between(1, 4),
            .Dv = between(1, 4)};
  }

  // Of pairs: each extent whole or 1.
  Dims<4> draw_broadcast() {
    Dims<4> shape{n.B, n.Hq, n.T, n.S};
    for (int64_t& extent : shape) extent = chance(0.5) ? extent : 1;
    return shape;
  }

  MaskAlignment draw_alignment() {
    return {chance(0.5) ? MaskAlignment::Kind::bottom_right : MaskAlignment::Kind::offset, between(-2, 3)};
  }

  void draw_ranges() {
    Mask& mask = options.mask;
    if (chance(0.3)) mask.causal = Causal{draw_alignment()};
    if (chance(0.3)) mask.window = Window{between(0, 3), between(0, 3), draw_alignment()};
    for (int64_t b = 0; b < n.B; ++b) lengths.push_back(between(0, n.S));
    if (chance(0.3)) mask.lengths = Lengths{lengths};
    queries = {0, between(0, n.T), n.T};
    keys = {0, between(0, n.S), n.S};
    if (packed) mask.packed = Packed{queries, keys};
  }

  void draw_dense() {
    const Dims<4> shape = draw_broadcast();
    visible = std::make_unique<bool[]>(static_cast<size_t>(element_count(shape)));
    for (int64_t i = 0; i < element_count(shape); ++i) visible[static_cast<size_t>(i)] = chance(0.7);
    options.mask.dense = Dense{{visible.get(), shape}};
  }

  void draw_alibi() {
    for (int64_t h = 0; h < n.Hq; ++h) slopes.push_back(rng.uniform(0, 0.5f));
    options.mask.alibi = Alibi{slopes, draw_alignment()};
  }

  void draw_bias() {
    arrays.bias = normal<4>(draw_broadcast());
    for (double& x : arrays.bias->data) {
      if (chance(0.1)) x = -kInfinity;
    }
  }

  void draw_gate() {
    arrays.head_gate = normal<1>({n.Hq});
    if (chance(0.5)) arrays.head_gate->data[rng.below(n.Hq)] = 0;
  }

  // sum(d_out * out), whose gradients are those that backward gives for d_out.
  double functional() const {
    Array4 out(d_out.shape);
    attention_forward(arrays.inputs(), {.out = out.view()}, options);
    double sum = 0;
    for (size_t i = 0; i < out.data.size(); ++i) sum += d_out.data[i] * out.data[i];
    return sum;
  }
};

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double x : values) most = std::max(most, std::abs(x));
  return most;
}

// An input and its gradient.
struct Checked {
  const char* name;
  std::vector<double>* x;
  const std::vector<double>* gradient;
};

// Those of the inputs that are there.
std::vector<Checked> checked(Arrays& a, const Gradient& g) {
  std::vector<Checked> all{{"q", &a.q.data, &g.dq.data}, {"k", &a.k.data, &g.dk.data}, {"v", &a.v.data, &g.dv.data}};
  if (a.bias) all.push_back({"bias", &a.bias->data, &g.d_bias.data});
  if (a.head_gate) all.push_back({"head_gate", &a.head_gate->data, &g.d_head_gate.data});
  if (a.w) all.push_back({"w", &a.w->data, &g.dw.data});
  return all;
}

// The largest distance of a gradient from the central difference of fourth order. Truncation leaves some h^4 = 1e-12,
// rounding about 1e-16 / h = 1e-13, both times the size of the functional.
double difference_error(const Draw& draw, const Checked& input) {
  const double h = 1e-3;
  double error = 0;
  for (size_t i = 0; i < input.x->size(); ++i) {
    double& x = (*input.x)[i];
    const double middle = x;
    const auto at = [&](double step) {
      x = middle + step;
      const double f = draw.functional();
      x = middle;
      return f;
    };
    const double difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    error = std::max(error, std::abs(difference - (*input.gradient)[i]));
  }
  return error;
}

TEST(ReferenceGradients, AgreeWithCentralDifferences) {
  std::map<std::string, int> tried;  // in how many draws an input's gradient was not next to nothing
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seeded(seed));
    const Gradient g = run_backward(draw.arrays, draw.d_out, draw.options);
    const std::vector<Checked> inputs = checked(draw.arrays, g);
    double of_all = 0;
    for (const Checked& input : inputs) of_all = std::max(of_all, largest(*input.gradient));
    for (const Checked& input : inputs) {
      // Where every query sees at most one key, or a gate is 0, gradients are exactly zero: differences are not.
      const double scale = std::max(largest(*input.gradient), 1e-3 * of_all);
      EXPECT_LE(difference_error(draw, input), 1e-7 * scale) << input.name;
      tried[input.name] += largest(*input.gradient) > 1e-2 * of_all;
    }
  }
  for (const char* name : {"q", "k", "v", "bias", "head_gate", "w"}) EXPECT_GE(tried[name], 50) << name;
}

TEST(ReferenceGradients, AnEmptyViewIsNotWantedAndChangesNothingElse) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Draw draw(seeded(seed));
    const Gradient all = run_backward(draw.arrays, draw.d_out, draw.options);
    Gradient one(draw.arrays);
    const Gradients views = one.views();
    const auto run_only = [&](const auto member) {
      Gradients only{.d_out = draw.d_out.view()};
      only.*member = views.*member;
      attention_backward(draw.arrays.inputs(), only, draw.options);
    };
    for (const auto member : {&Gradients::dq, &Gradients::dk, &Gradients::dv, &Gradients::d_bias}) run_only(member);
    run_only(&Gradients::d_head_gate);
    run_only(&Gradients::dw);
    attention_backward(draw.arrays.inputs(), {.d_out = draw.d_out.view()}, draw.options);
    EXPECT_EQ(one.dq.data, all.dq.data);
    EXPECT_EQ(one.dk.data, all.dk.data);
    EXPECT_EQ(one.dv.data, all.dv.data);
    EXPECT_EQ(one.d_bias.data, all.d_bias.data);
    EXPECT_EQ(one.d_head_gate.data, all.d_head_gate.data);
    EXPECT_EQ(one.dw.data, all.dw.data);
  }
}

// The same elements, laid out [B,T,H,D].
Array4 heads_inside(const Array4& x) {
  const auto [B, H, T, D] = x.shape;
  Array4 y({B, T, H, D});
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) std::copy_n(x.view().at(b, h, t), D, y.view().at(b, t, h));
    }
  }
  return y;
}

TEST(ReferenceGradients, StridedViewsGiveTheSame) {
  for (uint64_t seed = 0; seed < 32; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Draw draw(seeded(seed));
    const Result plain = run(draw.arrays, draw.options);
    const Gradient g = run_backward(draw.arrays, draw.d_out, draw.options);

    // All but head_gate and w, which have no heads to move.
    const auto inside = [](const auto& view) { return view.transposed(1, 2); };
    Arrays moved = draw.arrays;
    for (Array4* x : {&moved.q, &moved.k, &moved.v}) *x = heads_inside(*x);
    if (moved.bias) moved.bias = heads_inside(*moved.bias);
    const Array4 d_out = heads_inside(draw.d_out);
    Array4 out(d_out.shape);
    Gradient d(moved);
    Inputs in = moved.inputs();
    in.q = inside(in.q), in.k = inside(in.k), in.v = inside(in.v), in.bias = inside(in.bias);
    Gradients to = d.views();
    to.d_out = inside(d_out.view());
    to.dq = inside(to.dq), to.dk = inside(to.dk), to.dv = inside(to.dv), to.d_bias = inside(to.d_bias);

    attention_forward(in, {.out = inside(out.view())}, draw.options);
    attention_backward(in, to, draw.options);
    EXPECT_EQ(out.data, heads_inside(plain.out).data);
    EXPECT_EQ(d.dq.data, heads_inside(g.dq).data);
    EXPECT_EQ(d.dk.data, heads_inside(g.dk).data);
    EXPECT_EQ(d.dv.data, heads_inside(g.dv).data);
    EXPECT_EQ(d.d_bias.data, heads_inside(g.d_bias).data);
    EXPECT_EQ(d.d_head_gate.data, g.d_head_gate.data);
    EXPECT_EQ(d.dw.data, g.dw.data);
  }
}

// What stands at places that no query sees never reaches a gradient, nor does anything reach its own.
TEST(ReferenceGradients, HiddenPlacesGiveAndGetNothing) {
  int hidden_keys = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seeded(seed));
    const Result plain = run(draw.arrays, draw.options);
    const Gradient g = run_backward(draw.arrays, draw.d_out, draw.options);
    const int64_t group = draw.n.Hq / draw.n.Hk;
    for (int64_t b = 0; b < draw.n.B; ++b) {
      for (int64_t h = 0; h < draw.n.Hk; ++h) {
        for (int64_t s = 0; s < draw.n.S; ++s) {
          bool seen = false;
          for (int64_t i = 0; i < group * draw.n.T; ++i) {
            seen = seen || plain.masked.view()(b, h * group + i / draw.n.T, i % draw.n.T, s) != -kInfinity;
          }
          if (seen) continue;
          ++hidden_keys;
          std::fill_n(draw.arrays.k.view().at(b, h, s), draw.n.D, kNaN);
          std::fill_n(draw.arrays.v.view().at(b, h, s), draw.n.Dv, kInfinity);
          for (int64_t d = 0; d < draw.n.D; ++d) EXPECT_EQ(g.dk.view()(b, h, s, d), 0);
          for (int64_t e = 0; e < draw.n.Dv; ++e) EXPECT_EQ(g.dv.view()(b, h, s, e), 0);
        }
      }
    }
    EXPECT_EQ(run(draw.arrays, draw.options).out.data, plain.out.data);
    const Gradient poisoned = run_backward(draw.arrays, draw.d_out, draw.options);
    EXPECT_EQ(poisoned.dq.data, g.dq.data);
    EXPECT_EQ(poisoned.dk.data, g.dk.data);
    EXPECT_EQ(poisoned.dv.data, g.dv.data);
    EXPECT_EQ(poisoned.d_bias.data, g.d_bias.data);
    EXPECT_EQ(poisoned.d_head_gate.data, g.d_head_gate.data);
    EXPECT_EQ(poisoned.dw.data, g.dw.data);
  }
  EXPECT_GE(hidden_keys, 100);
}

}  // namespace
}  // namespace heed::kernels::reference
