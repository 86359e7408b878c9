// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;

Tensor draw_ids(Rng& rng, const Shape& shape, int64_t V) {
  const Tensor ids = Tensor::uninitialised(shape, DType::i32);
  for (int32_t& id : ids.span<int32_t>()) id = static_cast<int32_t>(between(rng, 0, V - 1));
  return ids;
}

// Few words, so that they repeat: the gradient of one is a sum over as many tokens.
TEST(EmbeddingOp, IsRight) {
  check_op(80, [](Rng& rng) {
    const int64_t V = between(rng, 1, 8), E = draw_width(rng);
    const Shape shape = rng.below(2) ? Shape{between(rng, 1, 300)} : Shape{between(rng, 1, 5), between(rng, 1, 9)};
    const Tensor ids = draw_ids(rng, shape, V);
    const double factor = pick<double>(rng, {1, 2.5});
    return Case{.what = "embedding",
                .inputs = {draw(rng, {V, E})},
                .op = [=](const Context& c, std::span<const Var> in) { return embedding(c, in[0], ids, factor); },
                .roundings = static_cast<double>(shape.size()) + 2};
  });
}

TEST(EmbeddingOp, PicksRows) {
  Bench bench;
  const Var table = Tensor::of({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Var y = embedding(bench.context, table, Tensor::of({1, 2}, std::vector<int32_t>{2, 0}), 10);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(y.value().to_doubles(), (std::vector<double>{50, 60, 10, 20}));
  EXPECT_EQ(embedding(bench.context, table, Tensor::zeros({}, DType::i32)).shape(), (Shape{2}));
}

TEST(EmbeddingOp, NothingGivesNothing) {
  const Tensor table = Tensor::zeros({3, 4}, DType::f64), ids = Tensor::zeros({2, 0}, DType::i32);
  expect_nothing_of_nothing([=](const Context& c, auto in) { return embedding(c, in[0], ids); }, {table});
}

TEST(EmbeddingOp, SaysWhatIsWrong) {
  Bench bench;
  const Context& c = bench.context;
  const Var table = Tensor::zeros({3, 2});
  const Tensor ids = Tensor::zeros({2}, DType::i32);
  EXPECT_EQ(error_of([&] { embedding(c, {}, ids); }), "embedding: table is missing");
  EXPECT_EQ(error_of([&] { embedding(c, Tensor::zeros({3}), ids); }),
            "embedding: table has shape [3], expected [V, E]");
  EXPECT_EQ(error_of([&] { embedding(c, table, Tensor::zeros({2})); }),
            "embedding: ids are not i32, expected token ids");
  EXPECT_EQ(error_of([&] { embedding(c, table, Tensor::full({2}, 3, DType::i32)); }),
            "embedding: an id is 3, expected 0 to 2");
  EXPECT_EQ(error_of([&] { embedding(c, table, Tensor::full({2}, -1, DType::i32)); }),
            "embedding: an id is -1, expected 0 to 2");
  EXPECT_EQ(error_of([&] {
              embedding(c, table, Tensor::zeros({1, 1, 1, 1}, DType::i32));
            }),
            "tensor: a shape of 5 dimensions came, expected at most 4");
}

// The tables of f32 are those of f64, rounded: a few units of numbers up to 1.
TEST(Rotary, IsRight) {
  check_op(80, [](Rng& rng) {
    const int64_t heads = between(rng, 1, 4), turned = 2 * between(rng, 0, 6), width = turned + between(rng, 0, 3);
    const int64_t B = between(rng, 1, 3), T = rng.below(8) ? between(rng, 1, 6) : between(rng, 60, 200);
    const RotaryOptions options{
        .heads = heads, .offset = between(rng, 0, 9), .pairs = static_cast<kernels::RopePairs>(rng.below(2))};
    const auto tables = [=](DType dtype) { return RotaryTables::make(options.offset + T + 2, turned, 10000, dtype); };
    return Case{.what = line("rotary, ", heads, " heads, ", turned, " turned"),
                .inputs = {draw(rng, {B, T, heads * width})},
                .op = [=](const Context& c,
                          std::span<const Var> in) { return rotary(c, in[0], tables(in[0].dtype()), options); },
                .roundings = 8};
  });
}

// One pair at position 1 is rotated by one radian; its norm stays.
TEST(Rotary, TurnsByThePosition) {
  Bench bench;
  const RotaryTables tables = RotaryTables::make(5, 2, 10000, DType::f64);
  const Var y = rotary(bench.context, Tensor::of({1, 2, 2}, std::vector<double>{1, 0, 3, 4}), tables, {.offset = 1});
  const std::vector<double> expected{std::cos(1.0), std::sin(1.0), 3 * std::cos(2.0) - 4 * std::sin(2.0),
                                     3 * std::sin(2.0) + 4 * std::cos(2.0)};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y.value().to_doubles()[i], expected[i], 1e-15);
}

TEST(Rotary, SaysWhatIsWrong) {
  Bench bench;
  const RotaryTables tables = RotaryTables::make(8, 4);
  const auto error = [&](const Tensor& x, const RotaryTables& with, const RotaryOptions& options) {
    return error_of([&] { rotary(bench.context, x, with, options); });
  };
  const Tensor x = Tensor::zeros({2, 3, 8});
  EXPECT_EQ(error(Tensor(), tables, {}), "rotary: x is missing");
  EXPECT_EQ(error(Tensor::zeros({3, 8}), tables, {.heads = 2}),
            "rotary: x has shape [3, 8], expected [B, T, a multiple of 2 heads]");
  EXPECT_EQ(error(x, tables, {.heads = 3}), "rotary: x has shape [2, 3, 8], expected [B, T, a multiple of 3 heads]");
  EXPECT_EQ(error(x, {}, {}), "rotary: the table of cosines is missing");
  EXPECT_EQ(error(x, {tables.cos, Tensor::zeros({8, 3})}, {}),
            "rotary: the table of sines has shape [8, 3], expected [8, 2]");
  EXPECT_EQ(error(x, RotaryTables::make(8, 4, 10000, DType::f64), {}),
            "rotary: the table of cosines is in f64, expected f32");
  EXPECT_EQ(error(x, tables, {.heads = 4}), "rotary: the tables rotate 4 numbers, expected at most 2 (a head's width)");
  EXPECT_EQ(error(x, tables, {.offset = 6}),
            "rotary: 3 tokens from position 6 on came, expected them within the tables' 8");
  EXPECT_EQ(error(x, tables, {.offset = -1}),
            "rotary: 3 tokens from position -1 on came, expected them within the tables' 8");
  EXPECT_EQ(error_of([] { RotaryTables::make(8, 5); }), "rotary: width is 5, expected an even number");
  EXPECT_EQ(error_of([] { RotaryTables::make(8, 4, 10000, DType::i32); }),
            "rotary: a tensor in i32 came, expected f32 or f64");
}

}  // namespace
}  // namespace heed::ops
