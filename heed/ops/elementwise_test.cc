// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/elementwise.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;
using kernels::Activation;
using kernels::ElementDropout;

TEST(Add, IsRight) {
  check_op(60, [](Rng& rng) {
    const Shape shape = draw_shape(rng, draw_width(rng));
    return Case{.what = "add",
                .inputs = {draw(rng, shape), draw(rng, shape)},
                .op = [](const Context& c, std::span<const Var> in) { return add(c, in[0], in[1]); },
                .roundings = 1};
  });
}

TEST(Add, OfSingleNumbersAndOfAValueWithItself) {
  Bench bench;
  const Var x = bench.tape.leaf(Tensor::full({}, 3));
  const Var y = add(bench.context, add(bench.context, x, x), x);
  EXPECT_EQ(y.value().item(), 9);
  bench.tape.backward(y, bench.context);
  EXPECT_EQ(bench.tape.gradient(x).item(), 3);
}

// One rounding of the product; a gradient is one, too, but for a value that is multiplied with itself.
TEST(Multiply, IsRight) {
  check_op(60, [](Rng& rng) {
    const Shape shape = draw_shape(rng, draw_width(rng));
    Case test{.what = "multiply",
              .inputs = {draw(rng, shape), draw(rng, shape)},
              .op = [](const Context& c, std::span<const Var> in) { return multiply(c, in[0], in[1]); },
              .roundings = 1};
    if (rng.below(4) == 0) {
      test.inputs.pop_back();
      test.op = [](const Context& c, std::span<const Var> in) { return multiply(c, in[0], in[0]); };
      test.roundings = 3;
    }
    return test;
  });
}

// A bias, a table of positions, a single number, or a row as large as x.
TEST(AddRow, IsRight) {
  check_op(80, [](Rng& rng) {
    const Shape shape = draw_shape(rng, draw_width(rng));
    std::vector<int64_t> last;
    for (int64_t i = between(rng, 0, static_cast<int64_t>(shape.rank())); i > 0; --i) {
      last.push_back(shape[-static_cast<int>(i)]);
    }
    const Shape row{std::span<const int64_t>(last)};
    return Case{.what = "add_row",
                .inputs = {draw(rng, shape), draw(rng, row)},
                .op = [](const Context& c, std::span<const Var> in) { return add_row(c, in[0], in[1]); },
                .roundings = 1 + static_cast<double>(shape.size() / row.size())};
  });
}

TEST(Scale, IsRight) {
  check_op(60, [](Rng& rng) {
    const double factor = static_cast<double>(rng.uniform(-3, 3));
    return Case{.what = line("scale by ", factor),
                .inputs = {draw(rng, draw_shape(rng, draw_width(rng)))},
                .op = [=](const Context& c, std::span<const Var> in) { return scale(c, in[0], factor); },
                .roundings = 2};
  });
}

// A few units in the last place of the function itself, and the product with dy.
TEST(ActivationOp, IsRight) {
  check_op(140, [](Rng& rng) {
    const auto kind = static_cast<Activation>(rng.below(7));
    return Case{.what = kernels::name_of(kind),
                .inputs = {draw(rng, draw_shape(rng, draw_width(rng)))},
                .op = [=](const Context& c, std::span<const Var> in) { return activation(c, in[0], kind); },
                .roundings = 16};
  });
}

ElementDropout draw_dropout(Rng& rng) {
  return {.rate = rng.uniform(0.05f, 0.9f), .seed = rng.next_u64(), .stream = rng.next_u64() >> 1};
}

TEST(DropoutOp, IsRightWithAndWithoutAResidual) {
  check_op(80, [](Rng& rng) {
    const ElementDropout drop = draw_dropout(rng);
    const Shape shape = draw_shape(rng, draw_width(rng));
    Case test{.what = "dropout",
              .inputs = {draw(rng, shape)},
              .op = [=](const Context& c, std::span<const Var> in) { return dropout(c, in[0], drop); },
              .roundings = 3};
    if (rng.below(2)) {
      test.what = "residual dropout";
      test.inputs.push_back(draw(rng, shape));
      test.op = [=](const Context& c, std::span<const Var> in) { return residual_dropout(c, in[1], in[0], drop); };
    }
    return test;
  });
}

TEST(DropoutOp, IsRightWhereAResidualIsTheValueItself) {
  check_op(20, [](Rng& rng) {
    const ElementDropout drop = draw_dropout(rng);
    return Case{
        .what = "residual dropout",
        .inputs = {draw(rng, draw_shape(rng, draw_width(rng)))},
        .op = [=](const Context& c, std::span<const Var> in) { return residual_dropout(c, in[0], in[0], drop); },
        .roundings = 4};
  });
}

TEST(DropoutOp, OffDrawsNothing) {
  Bench bench;
  const Var x = bench.tape.leaf(Tensor::full({4}, 3)), r = bench.tape.leaf(Tensor::full({4}, 1));
  EXPECT_EQ(dropout(bench.context, x, {}).value().raw(), x.value().raw());
  EXPECT_EQ(residual_dropout(bench.context, r, x, {}).value().to_doubles(), (std::vector<double>{4, 4, 4, 4}));
  EXPECT_EQ(residual_dropout(bench.context, {}, x, {}).value().raw(), x.value().raw());
}

TEST(Concat, IsRightAndExact) {
  check_op(60, [](Rng& rng) {
    const Shape shape = draw_shape(rng, 1);
    std::vector<Tensor> parts;
    for (int64_t i = between(rng, 1, 5); i > 0; --i) {
      parts.push_back(draw(rng, shape.with(-1, parts.empty() ? draw_width(rng) : between(rng, 0, 9))));
    }
    return Case{.what = "concat",
                .inputs = parts,
                .op = [](const Context& c, std::span<const Var> in) { return concat(c, in); },
                .roundings = 0};
  });
}

TEST(Concat, PutsPartsSideBySide) {
  Bench bench;
  const std::array<Var, 2> parts{Tensor::of({2, 1}, std::vector<float>{1, 2}),
                                 Tensor::of({2, 2}, std::vector<float>{3, 4, 5, 6})};
  EXPECT_EQ(concat(bench.context, parts).value().to_doubles(), (std::vector<double>{1, 3, 4, 2, 5, 6}));
}

TEST(Columns, AreRightAndExact) {
  check_op(60, [](Rng& rng) {
    const int64_t width = draw_width(rng), begin = between(rng, 0, width), count = between(rng, 0, width - begin);
    return Case{.what = line("columns ", begin, " + ", count),
                .inputs = {draw(rng, draw_shape(rng, width))},
                .op = [=](const Context& c, std::span<const Var> in) { return columns(c, in[0], begin, count); },
                .roundings = 0};
  });
}

TEST(Rows, AreRightAndExact) {
  check_op(60, [](Rng& rng) {
    const Shape shape = draw_shape(rng, draw_width(rng));
    const int64_t begin = between(rng, 0, shape[0]), count = between(rng, 0, shape[0] - begin);
    return Case{.what = line("rows ", begin, " + ", count),
                .inputs = {draw(rng, shape)},
                .op = [=](const Context& c, std::span<const Var> in) { return rows(c, in[0], begin, count); },
                .roundings = 0};
  });
}

// The same numbers under another shape, and shared: nothing is copied.
TEST(Reshape, IsRightAndExact) {
  check_op(40, [](Rng& rng) {
    const Shape shape = draw_shape(rng, draw_width(rng)), other{shape[-1], shape.size() / shape[-1]};
    return Case{.what = "reshape",
                .inputs = {draw(rng, shape)},
                .op =
                    [=](const Context& c, std::span<const Var> in) {
                      const Var y = reshape(c, in[0], other);
                      EXPECT_EQ(y.value().raw(), in[0].value().raw());
                      return y;
                    },
                .roundings = 0};
  });
}

// Taken in double, and rounded once.
TEST(Sum, IsRight) {
  check_op(40, [](Rng& rng) {
    return Case{.what = "sum",
                .inputs = {draw(rng, draw_shape(rng, draw_width(rng)))},
                .op = [](const Context& c, std::span<const Var> in) { return sum(c, in[0]); },
                .roundings = 1};
  });
}

TEST(Elementwise, NothingGivesNothing) {
  for (const Shape& shape : {Shape{0}, Shape{0, 5}, Shape{3, 0}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor none = Tensor::zeros(shape, DType::f64), row = Tensor::zeros({shape[-1]}, DType::f64);
    expect_nothing_of_nothing([](const Context& c, auto in) { return add(c, in[0], in[0]); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return multiply(c, in[0], in[0]); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return add_row(c, in[0], in[1]); }, {none, row});
    expect_nothing_of_nothing([](const Context& c, auto in) { return scale(c, in[0], 2); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return activation(c, in[0], Activation::gelu); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return dropout(c, in[0], {.rate = 0.5f}); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return concat(c, in); }, {none, none});
  }
}

TEST(Elementwise, SaysWhatIsWrong) {
  Bench bench;
  const Context& c = bench.context;
  const Var x = Tensor::zeros({2, 3}), wide = Tensor::zeros({2, 3}, DType::f64), none, number = Tensor::zeros({}),
            ids = Tensor::zeros({2, 3}, DType::i32);
  EXPECT_EQ(error_of([&] { add(c, none, x); }), "add: a is missing");
  EXPECT_EQ(error_of([&] { add(c, ids, ids); }), "add: a is in i32, expected f32 or f64");
  EXPECT_EQ(error_of([&] { add(c, x, Tensor::zeros({3, 2})); }), "add: b has shape [3, 2], expected [2, 3]");
  EXPECT_EQ(error_of([&] { add(c, x, wide); }), "add: b is in f64, expected f32");
  EXPECT_EQ(error_of([&] { multiply(c, x, Tensor::zeros({3, 2})); }), "multiply: b has shape [3, 2], expected [2, 3]");
  EXPECT_EQ(error_of([&] { multiply(c, x, wide); }), "multiply: b is in f64, expected f32");
  EXPECT_EQ(error_of([&] { add_row(c, x, Tensor::zeros({2})); }),
            "add_row: row has shape [2], expected the last dimensions of [2, 3]");
  EXPECT_EQ(error_of([&] {
              add_row(c, x, Tensor::zeros({1, 2, 3}));
            }),
            "add_row: row has shape [1, 2, 3], expected the last dimensions of [2, 3]");
  EXPECT_EQ(error_of([&] { add_row(c, x, none); }), "add_row: row is missing");
  EXPECT_EQ(error_of([&] { scale(c, ids, 2); }), "scale: x is in i32, expected f32 or f64");
  EXPECT_EQ(error_of([&] { activation(c, none, Activation::relu); }), "activation: x is missing");
  EXPECT_EQ(error_of([&] { dropout(c, x, {.rate = 1}); }),
            "dropout: rate is 1.000000, expected at least 0 and below 1");
  EXPECT_EQ(error_of([&] { dropout(c, x, {.stream = uint64_t{1} << 63}); }),
            "dropout: stream is 9223372036854775808, expected below 2^63");
  EXPECT_EQ(error_of([&] { dropout(c, none, {}); }), "dropout: x is missing");
  EXPECT_EQ(error_of([&] { residual_dropout(c, number, x, {}); }), "dropout: residual has shape [], expected [2, 3]");
  EXPECT_EQ(error_of([&] { residual_dropout(c, wide, x, {}); }), "dropout: residual is in f64, expected f32");
}

TEST(Elementwise, SaysWhatIsWrongWithPartsAndShapes) {
  Bench bench;
  const Context& c = bench.context;
  const Var x = Tensor::zeros({2, 3}), wide = Tensor::zeros({2, 3}, DType::f64), none, number = Tensor::zeros({});
  const auto concat_of = [&](const Var& a, const Var& b) { return error_of([&] { concat(c, std::array{a, b}); }); };
  EXPECT_EQ(error_of([&] { concat(c, {}); }), "concat: no parts came, expected at least one");
  EXPECT_EQ(concat_of(x, Tensor::zeros({3, 3})), "concat: a part has shape [3, 3], expected [2, 3]");
  EXPECT_EQ(concat_of(x, none), "concat: a part is missing");
  EXPECT_EQ(concat_of(x, number), "concat: a part has shape [], expected at least one dimension");
  EXPECT_EQ(concat_of(x, wide), "concat: a part is in f64, expected f32");
  EXPECT_EQ(error_of([&] { columns(c, x, 2, 2); }),
            "columns: 2 columns from 2 on came, expected them within the last dimension of [2, 3]");
  EXPECT_NE(error_of([&] { columns(c, x, INT64_MAX, INT64_MAX); }), "no error");
  EXPECT_EQ(error_of([&] { rows(c, x, 1, 2); }),
            "rows: 2 entries from 1 on came, expected them within the first dimension of [2, 3]");
  EXPECT_EQ(error_of([&] { rows(c, number, 0, 1); }), "rows: x has shape [], expected at least one dimension");
  EXPECT_EQ(error_of([&] { reshape(c, x, {4}); }), "reshape: x has shape [2, 3], expected as many numbers as [4] has");
  EXPECT_EQ(error_of([&] { reshape(c, none, {}); }), "reshape: x is missing");
  EXPECT_EQ(error_of([&] { sum(c, none); }), "sum: x is missing");
}

}  // namespace
}  // namespace heed::ops
