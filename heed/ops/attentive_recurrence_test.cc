// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/attentive_recurrence.h"

#include <gtest/gtest.h>

#include <memory>

#include "heed/base/testing.h"
#include "heed/ops/attention.h"
#include "heed/ops/elementwise.h"
#include "heed/ops/linear.h"
#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;
using heed::testing::seeded;
using kernels::Cell;

struct Kind {
  Cell cell = Cell::gru;
  bool begins = true, projects = true, additive = true, feeds = false, gated = false;
  std::vector<int64_t> lengths{};
  int output = 0;  // h, what was fed, or both with the last states
};

AttentiveRecurrenceArguments arguments_of(std::span<const Var> in, const Kind& kind) {
  size_t next = 7;
  AttentiveRecurrenceArguments a;
  a.recurrence = {.x = in[0], .w_ih = in[1], .w_hh = in[2], .b_ih = in[3], .b_hh = in[4]};
  a.recurrence.options.cell = kind.cell;
  a.keys = in[5], a.values = in[6];
  if (kind.begins) a.recurrence.h0 = in[next++];
  if (kind.begins && kind.cell == Cell::lstm) a.recurrence.c0 = in[next++];
  if (kind.projects) a.w_query = in[next++], a.b_query = in[next++];
  if (kind.additive) a.w = in[next++];
  if (kind.feeds) a.w_feed = in[next++], a.b_feed = in[next++];
  if (kind.gated) a.head_gate = in[next++];
  if (!kind.lengths.empty()) a.attention.mask.lengths = kernels::Lengths{kind.lengths};
  a.attention.scale = 1.0f;
  return a;
}

Var flat(const Context& context, const Var& x) { return reshape(context, x, {x.shape(0), x.shape(1) * x.shape(2)}); }

Case draw_case(Rng& rng) {
  const int64_t B = between(rng, 1, 3), T = between(rng, 1, 5), S = between(rng, 1, 5), I = between(rng, 1, 4);
  const int64_t H = between(rng, 1, 5), C = between(rng, 1, 4);
  auto kind = std::make_shared<Kind>();
  *kind = {.cell = static_cast<Cell>(rng.below(3)), .begins = rng.below(3) > 0, .projects = rng.below(2) == 1};
  kind->additive = rng.below(2), kind->gated = rng.below(4) == 0, kind->output = static_cast<int>(rng.below(3));
  kind->feeds = rng.below(2);
  for (int64_t b = 0; b < B && rng.below(6); ++b) kind->lengths.push_back(between(rng, 1, S));
  if (std::ssize(kind->lengths) < B) kind->lengths.clear();
  const int64_t A = kind->projects ? between(rng, 1, 4) : H, GH = kernels::gates_of(kind->cell) * H;
  const int64_t F = kind->feeds ? between(rng, 1, 5) : C;
  std::vector<Tensor> inputs{draw(rng, {B, T, I}), draw(rng, {GH, I + F}, 0.1f, 0.5f), draw(rng, {GH, H}, 0.1f, 0.4f)};
  inputs.insert(inputs.end(), {draw(rng, {GH}, 0.1f, 0.5f), draw(rng, {GH}, 0.1f, 0.5f)});
  inputs.insert(inputs.end(), {draw(rng, {B, S, A}, 0.1f, 1), draw(rng, {B, S, C}, 0.1f, 1)});
  if (kind->begins) inputs.push_back(draw(rng, {B, H}, 0.1f, 1));
  if (kind->begins && kind->cell == Cell::lstm) inputs.push_back(draw(rng, {B, H}, 0.1f, 1));
  if (kind->projects) inputs.insert(inputs.end(), {draw(rng, {A, H}, 0.1f, 0.5f), draw(rng, {A}, 0.1f, 0.5f)});
  if (kind->additive) inputs.push_back(draw(rng, {1, A}, 0.1f, 0.5f));
  if (kind->feeds) inputs.insert(inputs.end(), {draw(rng, {F, H + C}, 0.1f, 0.5f), draw(rng, {F}, 0.1f, 0.5f)});
  if (kind->gated) inputs.push_back(draw(rng, {1}));
  const auto op = [kind](const Context& c, std::span<const Var> in) {
    const AttentiveRecurrenceResult result = attentive_recurrence(c, arguments_of(in, *kind));
    if (kind->output == 0) return result.h;
    if (kind->output == 1) return result.fed;
    std::vector<Var> all{flat(c, result.h), flat(c, result.fed), result.last_h};
    if (result.last_c) all.push_back(result.last_c);
    return concat(c, all);
  };
  return {.what = line(kernels::name_of(kind->cell), kind->projects ? " projected" : "",
                       kind->additive ? " additive" : "", kind->feeds ? " fed with both" : ""),
          .inputs = inputs,
          .op = op,
          .roundings = static_cast<double>(
              (T + 1) * (2 * (I + C + H + A + S) + GH + (kind->feeds ? H + C + F + 10 : 0) + 40) + B * T)};
}

TEST(AttentiveRecurrence, IsRight) { check_op(200, draw_case); }

// The same, one token at a time, by the ops it is made of.
void expect_the_parts(bool feeds) {
  Rng rng(seeded(2));
  Bench bench;
  const Context& c = bench.without_tape;
  constexpr int64_t B = 2, T = 4, S = 3, I = 2, H = 5, C = 3, A = 4;
  const int64_t F = feeds ? 6 : C;
  Kind kind{.cell = Cell::gru, .feeds = feeds};
  kind.lengths = {3, 2};
  std::vector<Var> in;
  for (const Shape& shape :
       {Shape{B, T, I}, Shape{3 * H, I + F}, Shape{3 * H, H}, Shape{3 * H}, Shape{3 * H}, Shape{B, S, A},
        Shape{B, S, C}, Shape{B, H}, Shape{A, H}, Shape{A}, Shape{1, A}, Shape{F, H + C}, Shape{F}}) {
    in.emplace_back(draw(rng, shape, 0.1f, 0.8f));
  }
  const AttentiveRecurrenceArguments a = arguments_of(in, kind);
  const AttentiveRecurrenceResult whole = attentive_recurrence(c, a);
  Var h = a.recurrence.h0;
  for (int64_t t = 0; t < T; ++t) {
    const Var query = reshape(c, linear(c, h, a.w_query, a.b_query), {B, 1, A});
    const Var looked = attention(c, {.q = query, .k = a.keys, .v = a.values, .w = a.w, .options = a.attention}).out;
    const Var pair[] = {h, reshape(c, looked, {B, C})};
    const Var fed = feeds ? linear(c, concat(c, pair), a.w_feed, a.b_feed, kernels::Activation::tanh) : pair[1];
    const Var parts[] = {columns(c, flat(c, a.recurrence.x), t * I, I), fed};
    RecurrentArguments one = a.recurrence;
    one.x = reshape(c, concat(c, parts), {B, 1, I + F}), one.h0 = h;
    h = recurrent(c, one).last_h;
    const Case exact{.roundings = 1e-6};
    expect_near("state", columns(c, flat(c, whole.h), t * H, H).value(), h.value(), exact);
    expect_near("what is fed", columns(c, flat(c, whole.fed), t * F, F).value(), fed.value(), exact);
  }
}

TEST(AttentiveRecurrence, IsAttentionThenTheCell) { expect_the_parts(false); }
TEST(AttentiveRecurrence, IsAttentionThenWhatBothMakeThenTheCell) { expect_the_parts(true); }

TEST(AttentiveRecurrence, OfNothingIsNothing) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::f64); };
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 3}, {2, 0}}) {
    expect_nothing_of_nothing(
        [](const Context& c, std::span<const Var> in) {
          AttentiveRecurrenceArguments a{.keys = in[3], .values = in[4], .w_query = in[5]};
          a.recurrence = {.x = in[0], .w_ih = in[1], .w_hh = in[2]};
          return attentive_recurrence(c, a).h;
        },
        {zeros({B, T, 2}), zeros({20, 5}), zeros({20, 5}), zeros({B, 4, 6}), zeros({B, 4, 3}), zeros({6, 5})});
    expect_nothing_of_nothing(
        [](const Context& c, std::span<const Var> in) {
          AttentiveRecurrenceArguments a{.keys = in[3], .values = in[4], .w_feed = in[5]};
          a.recurrence = {.x = in[0], .w_ih = in[1], .w_hh = in[2]};
          return attentive_recurrence(c, a).fed;
        },
        {zeros({B, T, 2}), zeros({20, 9}), zeros({20, 5}), zeros({B, 4, 5}), zeros({B, 4, 3}), zeros({7, 8})});
  }
}

TEST(AttentiveRecurrence, SaysWhatDoesNotFit) {
  Bench bench;
  const auto run_with = [&](const auto& change) {
    AttentiveRecurrenceArguments a;
    a.recurrence = {.x = Tensor::zeros({2, 3, 4}), .w_ih = Tensor::zeros({15, 6}), .w_hh = Tensor::zeros({15, 5})};
    a.recurrence.options.cell = Cell::gru;
    a.keys = Tensor::zeros({2, 7, 5}), a.values = Tensor::zeros({2, 7, 2});
    change(a);
    return error_of([&] { attentive_recurrence(bench.without_tape, a); });
  };
  EXPECT_EQ(run_with([](auto&) {}), "no error");
  EXPECT_EQ(run_with([](auto& a) {
              a.values = Tensor::zeros({2, 7, 3});
            }),
            "attentive recurrence: w_ih has shape [15, 6], expected [15, 7]");
  EXPECT_EQ(run_with([](auto& a) {
              a.keys = Tensor::zeros({2, 7, 4});
            }),
            "attentive recurrence: keys has shape [2, 7, 4], expected [2, 7, 5]");
  EXPECT_EQ(
      run_with([](auto& a) { a.recurrence.options.reverse = true; }),
      "attentive recurrence: a recurrence with lengths, or in reverse, came, expected one forward over all tokens");
  EXPECT_EQ(run_with([](auto& a) {
              a.attention.dropout = {0.5f, 1};
            }),
            "attentive recurrence: attention with dropout came, expected none");
  EXPECT_EQ(run_with([](auto& a) {
              a.w_feed = Tensor::zeros({2, 6});
            }),
            "attentive recurrence: w_feed has shape [2, 6], expected [2, 7]");
  EXPECT_EQ(run_with([](auto& a) {
              a.w_feed = Tensor::zeros({3, 7});
            }),
            "attentive recurrence: w_ih has shape [15, 6], expected [15, 7]");
  EXPECT_EQ(run_with([](auto& a) { a.b_feed = Tensor::zeros({2}); }),
            "attentive recurrence: b_feed came without w_feed, expected both or none");
}

}  // namespace
}  // namespace heed::ops
