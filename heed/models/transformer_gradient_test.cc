// SPDX-License-Identifier: Apache-2.0
// Every kind of Transformer, dropout on: gradients in double against central differences, and f32 against double.
#include <gtest/gtest.h>

#include <string>

#include "heed/base/testing.h"
#include "heed/models/testing.h"

namespace heed::models {
namespace {

using heed::testing::seeded;
using testing::Batch;

class TransformerGradient : public ::testing::TestWithParam<TransformerOptions> {};

// Finite differences fail at the kink of relu. Biases of +-6 keep its input, products of normalised rows, away from it.
void leave_kinks(const ParameterStore& store) {
  for (const auto& entry : store.entries()) {
    if (!entry.name.ends_with("feed_forward.first.bias")) continue;
    for (int64_t i = 0; i < entry.value.size(); ++i) {
      const double away = i % 2 ? 6 : -6;
      with_float("bias", entry.value.dtype(),
                 [&](auto tag) { entry.value.template data<decltype(tag)>()[i] = static_cast<decltype(tag)>(away); });
    }
  }
}

TEST_P(TransformerGradient, IsExact) {
  TransformerOptions options = GetParam();
  options.encoder_layers = options.decoder_layers = 1;
  Rng rng(seeded(11));
  const Batch batch(options, 2, 4, 3, rng);
  const auto make = [&] {
    Rng weights(seeded(12));
    return Transformer(options, weights);
  };
  const auto use = [&](const Transformer& model, nn::Pass& pass, std::span<const Var>) {
    return testing::run(model, pass, batch);
  };
  // Forward and backward on the longest path, both layers and the output: sums over the width (8) for q, k, v, the
  // output and each norm, over a head (4), over keys (4), over the inner width (12), over tokens (8) for a weight.
  const double additions = 2 * (3 * (5 * 8 + 4 + 4) + 2 * (3 * 8 + 12) + 3 * 8 + 8);
  testing::check_layer(make, {}, use,
                       {.training = true,
                        .additions = additions,
                        .seed = seeded(13),
                        .prepare = options.activation == nn::Activation::relu ? leave_kinks : nullptr});
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransformerGradient, ::testing::ValuesIn(testing::every_kind()),
                         [](const auto& one) { return testing::name_of(one.param); });

// Too many parameters to try each: all of a tensor's are moved together, along a direction.
TEST(LargerTransformer, HasExactDirectionalDerivatives) {
  TransformerOptions options =
      testing::shrunken(TransformerKind::encoder_decoder, Positions::sinusoid, NormPlace::before);
  options.width = 48, options.heads = 4, options.inner = 96, options.vocabulary = 60;
  options.activation = nn::Activation::gelu;
  Rng rng(seeded(14));
  Transformer model(options, rng);
  const ParameterStore store(model, DType::f64);
  const Batch batch(options, 2, 13, 11, rng);
  const auto logits = [&](Context& context) {
    nn::Pass pass{context, true, nn::RandomStream{15}};
    return testing::run(model, pass, batch);
  };
  const GradcheckResult result = gradcheck(logits, store, {.directions = 2});
  EXPECT_LE(result.error, testing::kGradientError) << result.where;
  EXPECT_GT(result.largest, 0);
}

}  // namespace
}  // namespace heed::models
