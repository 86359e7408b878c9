// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/base/testing.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;
using heed::testing::seeded;
using kernels::Cell;

// The options of a case. Its inputs are x, w_ih, w_hh, and then the optional ones that it has.
struct Kind {
  kernels::RecurrentOptions options;
  bool biases, peepholes, begins;
  std::vector<int64_t> lengths;
  int output;  // 0: h; 1: last_h; 2: last_c, or h and last_h side by side
};

Var run(const Context& context, std::span<const Var> in, const std::shared_ptr<Kind>& kind) {
  size_t next = 3;
  RecurrentArguments a{.x = in[0], .w_ih = in[1], .w_hh = in[2]};
  if (kind->biases) a.b_ih = in[next++], a.b_hh = in[next++];
  if (kind->peepholes) a.peepholes = in[next++];
  if (kind->begins) a.h0 = in[next++];
  if (kind->begins && kind->options.cell == Cell::lstm) a.c0 = in[next++];
  a.lengths = kind->lengths;
  a.options = kind->options;
  const RecurrentResult result = recurrent(context, a);
  if (kind->output == 0) return result.h;
  if (kind->output == 1) return result.last_h;
  if (result.last_c) return result.last_c;
  const Var parts[] = {reshape(context, result.h, {result.h.shape(0), result.h.shape(1) * result.h.shape(2)}),
                       result.last_h};
  return concat(context, parts);
}

Case draw_case(Rng& rng) {
  const int64_t B = between(rng, 1, 4), T = between(rng, 1, 6), I = between(rng, 1, 5), H = between(rng, 1, 6);
  auto kind = std::make_shared<Kind>();
  kind->options = {static_cast<Cell>(rng.below(3)), rng.below(2) == 1, rng.below(2) == 1};
  kind->biases = rng.below(3) > 0, kind->begins = rng.below(3) > 0;
  const bool lstm = kind->options.cell == Cell::lstm;
  kind->peepholes = lstm && rng.below(2);
  kind->output = static_cast<int>(rng.below(3));
  for (int64_t b = 0; b < B && rng.below(6); ++b) kind->lengths.push_back(between(rng, 0, T));
  if (std::ssize(kind->lengths) < B) kind->lengths.clear();
  const int64_t GH = kernels::gates_of(kind->options.cell) * H;
  std::vector<Tensor> inputs{draw(rng, {B, T, I}), draw(rng, {GH, I}, 0.1f, 0.5f), draw(rng, {GH, H}, 0.1f, 0.4f)};
  if (kind->biases) inputs.insert(inputs.end(), {draw(rng, {GH}, 0.1f, 0.5f), draw(rng, {GH}, 0.1f, 0.5f)});
  if (kind->peepholes) inputs.push_back(draw(rng, {3, H}, 0.1f, 0.5f));
  if (kind->begins) inputs.push_back(draw(rng, {B, H}));
  if (kind->begins && lstm) inputs.push_back(draw(rng, {B, H}));
  return {.what = line(kernels::name_of(kind->options.cell), kind->options.reverse ? " reverse" : "",
                       kind->peepholes ? " peepholes" : "", ", output ", kind->output),
          .inputs = inputs,
          .op = [kind](const Context& c, std::span<const Var> in) { return run(c, in, kind); },
          // Sums of p, q and of gradients, at each step; then over tokens.
          .roundings = static_cast<double>((T + 1) * (2 * (I + H) + GH + 20) + B * T)};
}

TEST(Recurrent, IsRight) { check_op(120, draw_case); }

TEST(Recurrent, OfNothingIsNothing) {
  for (const Cell cell : {Cell::rnn, Cell::gru, Cell::lstm}) {
    const int64_t GH = kernels::gates_of(cell) * 5;
    for (const Shape& x : {Shape{0, 3, 2}, Shape{2, 0, 2}}) {
      expect_nothing_of_nothing(
          [&](const Context& c, std::span<const Var> in) {
            return recurrent(c, {.x = in[0], .w_ih = in[1], .w_hh = in[2], .options = {.cell = cell}}).h;
          },
          {Tensor::zeros(x, DType::f64), Tensor::zeros({GH, 2}, DType::f64), Tensor::zeros({GH, 5}, DType::f64)});
    }
  }
}

TEST(Recurrent, ANaNInPaddingIsNotSeen) {
  const std::vector<int64_t> lengths{2, 4};
  for (const Cell cell : {Cell::rnn, Cell::gru, Cell::lstm}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Rng rng(seeded(3));
      const int64_t GH = kernels::gates_of(cell) * 5;
      const Tensor x = draw(rng, {2, 4, 3}).converted(dtype), padded = x.clone();
      for (int64_t i = 2 * 3; i < 4 * 3; ++i) {
        with_float("x", dtype, [&](auto tag) { padded.data<decltype(tag)>()[i] = NAN; });
      }
      const Tensor w_ih = draw(rng, {GH, 3}).converted(dtype), w_hh = draw(rng, {GH, 5}).converted(dtype);
      std::vector<Tensor> results;
      for (const Tensor& input : {x, padded}) {
        Bench bench;
        Rng seed(seeded(4));
        const Var w = bench.tape.leaf(w_ih), u = bench.tape.leaf(w_hh);
        const auto result =
            recurrent(bench.context, {.x = input, .w_ih = w, .w_hh = u, .lengths = lengths, .options = {.cell = cell}});
        results.push_back(result.h.value());
        bench.tape.backward(result.h, bench.context, draw(seed, result.h.shape(), 1, 1).converted(dtype));
        results.push_back(bench.tape.gradient(w)), results.push_back(bench.tape.gradient(u));
      }
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(results[i], results[i + 3])) << i;
    }
  }
}

TEST(Recurrent, SaysWhatDoesNotFit) {
  Bench bench;
  const auto run_with = [&](const auto& change) {
    RecurrentArguments a{.x = Tensor::zeros({2, 3, 4}), .w_ih = Tensor::zeros({15, 4}), .w_hh = Tensor::zeros({15, 5})};
    a.options.cell = Cell::gru;
    change(a);
    return error_of([&] { recurrent(bench.without_tape, a); });
  };
  EXPECT_EQ(run_with([](auto&) {}), "no error");
  EXPECT_EQ(run_with([](auto& a) { a.options.cell = Cell::lstm; }),
            "recurrent: w_hh has shape [15, 5], expected [20, 5]");
  EXPECT_EQ(run_with([](auto& a) {
              a.w_ih = Tensor::zeros({15, 3});
            }),
            "recurrent: w_ih has shape [15, 3], expected [15, 4]");
  EXPECT_EQ(run_with([](auto& a) { a.h0 = Tensor::zeros({2, 4}); }), "recurrent: h0 has shape [2, 4], expected [2, 5]");
  EXPECT_EQ(run_with([](auto& a) {
              a.c0 = Tensor::zeros({2, 5});
            }),
            "recurrent: c0 came, expected it for an LSTM alone");
  EXPECT_EQ(run_with([](auto& a) { a.b_ih = Tensor::zeros({15}, DType::f64); }),
            "recurrent: b_ih is in f64, expected f32");
}

}  // namespace
}  // namespace heed::ops
