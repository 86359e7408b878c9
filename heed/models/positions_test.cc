// SPDX-License-Identifier: Apache-2.0
// Positions beyond those that tables are kept for: computed when they are used, to the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/models/model.h"
#include "heed/ops/embedding.h"

namespace heed::models {
namespace {

TEST(Positions, OfAPartAreThoseOfTheWhole) {
  const Tensor all = nn::sinusoids(40, 6, {}), part = nn::sinusoids(7, 6, {.first_position = 33});
  EXPECT_EQ(all.slice(33, 7).to_doubles(), part.to_doubles());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto turned = ops::RotaryTables::make(40, 6, 10000, dtype),
               later = ops::RotaryTables::make(7, 6, 10000, dtype, 33);
    EXPECT_EQ(turned.cos.slice(33, 7).to_doubles(), later.cos.to_doubles());
    EXPECT_EQ(turned.sin.slice(33, 7).to_doubles(), later.sin.to_doubles());
  }
}

// So wide that tables are kept for 256 or 512 positions alone.
class LongRow : public ::testing::TestWithParam<Positions> {
 protected:
  static TransformerOptions options() {
    TransformerOptions o{.kind = TransformerKind::decoder, .vocabulary = 5, .width = 4096, .heads = 1, .inner = 4};
    o.head_width = 2;
    if (GetParam() == Positions::rotary) o.width = 2, o.head_width = 2048;
    o.decoder_layers = 1, o.max_length = whole(), o.positions = GetParam();
    return o;
  }
  static int64_t whole() { return GetParam() == Positions::rotary ? 600 : 300; }  // tokens; tables are kept for fewer
  static int64_t short_part() { return GetParam() == Positions::rotary ? 500 : 200; }
  std::vector<double> rows(const Tensor& logits, int64_t first, int64_t count) const {
    return logits.reshaped({logits.shape(1), 5}).slice(first, count).to_doubles();
  }
};

TEST_P(LongRow, IsTheSameWholeAndInParts) {
  const auto model = make_model(options(), heed::testing::seeded(3));
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < whole(); ++i) ids.push_back(i * i % 5);
  const auto part = [&](int64_t first, int64_t count) {
    return Tensor::of({1, count}, std::vector<int32_t>(ids.begin() + first, ids.begin() + first + count));
  };
  const int64_t T = whole(), K = short_part();
  const Tensor all = model->logits(pass, {}, Tokens{part(0, T)}).value();
  const Tensor kept = model->logits(pass, {}, Tokens{part(0, K)}).value();
  // Sums of 4096 products in f32, in another order for another number of rows. Each addition rounds by at most 2^-24 of
  // the sum so far, some 4096^(1/2) of which remain where signs are random; both orders do so.
  double largest = 1;
  for (const double logit : all.to_doubles()) largest = std::max(largest, std::abs(logit));
  const double tolerance = 2 * std::sqrt(4096.0) * 0x1p-24 * largest;
  const auto expect_near = [tolerance](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
  };
  expect_near(rows(all, 0, K), rows(kept, 0, K));
  nn::State state = model->begin(pass, {});
  expect_near(rows(model->step(pass, part(0, K), state).value(), 0, K), rows(kept, 0, K));
  expect_near(rows(model->step(pass, part(K, T - K - 1), state).value(), 0, T - K - 1), rows(all, K, T - K - 1));
  expect_near(rows(model->step(pass, part(T - 1, 1), state).value(), 0, 1), rows(all, T - 1, 1));
  EXPECT_NE(heed::testing::error_of([&] { model->step(pass, part(0, 1), state); }), "no error") << "max_length";
}

INSTANTIATE_TEST_SUITE_P(Kinds, LongRow, ::testing::Values(Positions::sinusoid, Positions::rotary));

// What parameter_shapes says is what the model has, for every preset and kind of positions.
TEST(ParameterShapes, AreThoseOfTheModel) {
  std::vector<ModelOptions> all{RnnSeq2SeqOptions{.vocabulary = 9, .width = 8},
                                SelfAttentiveOptions{.vocabulary = 9, .outputs = 3, .width = 8}};
  for (const Positions positions : {Positions::sinusoid, Positions::learned, Positions::rotary, Positions::alibi}) {
    TransformerOptions o{.vocabulary = 9, .width = 8, .heads = 2, .inner = 12};
    o.positions = positions, o.max_length = 17, o.first_position = 2;
    all.emplace_back(o);
  }
  for (const ModelOptions& options : all) {
    const auto shapes = parameter_shapes(options);
    const auto model = make_model(options, heed::testing::seeded(1));
    ASSERT_EQ(shapes.size(), model->parameters().entries().size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(shapes[i].name, model->parameters().entries()[i].name);
      EXPECT_EQ(shapes[i].shape, model->parameters().entries()[i].value.shape()) << shapes[i].name;
    }
  }
}

// Without a base layer the width doubles with each block.
TEST(ParameterShapes, HaveBounds) {
  SelfAttentiveOptions o{.vocabulary = 9, .outputs = 3, .width = 8};
  o.layers.base = BaseLayer::none, o.layers.blocks = 1000;
  EXPECT_EQ(heed::testing::error_of([&] { parameter_shapes(o); }),
            "blocks: blocks is 1000, expected at most 18: the states after that are 4194304 wide");
  o.layers.blocks = 1001;
  EXPECT_EQ(heed::testing::error_of([&] { parameter_shapes(o); }),
            "self_attentive: blocks is 1001, expected an integer in [1, 1000]");
}

}  // namespace
}  // namespace heed::models
