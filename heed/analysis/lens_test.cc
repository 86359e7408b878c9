// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/lens.h"

#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;

class LensTest : public AnalysisTest {};

TEST_F(LensTest, AfterTheLastLayerIsTheTarget) {
  for (const models::NormPlace norm : {models::NormPlace::before, models::NormPlace::after}) {
    for (const Kind kind : {Kind::encoder_decoder, Kind::encoder, Kind::decoder}) {
      models::TransformerOptions options = transformer(kind);
      options.norm = norm;
      const auto model = drawn(options, 1);
      const Question question(*model, pair_for(model->task()), {.position = 2});
      const std::vector<LensLayer> layers = logit_lens(pass(), question);
      ASSERT_EQ(layers.size(), 3u);
      const std::string side = kind == Kind::encoder ? "encoder." : "decoder.";
      EXPECT_EQ(layers[0].layer, "embedding");
      EXPECT_EQ(layers[1].layer, side + "0");
      EXPECT_EQ(layers[2].layer, side + "1");
      EXPECT_NEAR(layers[2].value, question.measure(pass()), 1e-12);
      for (int32_t token = 0; token < (kind == Kind::encoder ? kTags : kWords); ++token) {
        const Question other(*model, question.pair(),
                             {.position = 2, .token = *layers[2].first_choice, .against = token});
        EXPECT_GE(other.measure(pass()), 0) << "the first choice is the likeliest";
      }
    }
  }
}

// A model with the first layers alone ends where the lens looks.
TEST_F(LensTest, OfALayerIsAModelThatEndsThere) {
  for (const Kind kind : {Kind::encoder, Kind::decoder}) {
    models::TransformerOptions options = transformer(kind);
    const auto model = drawn(options, 2);
    options.encoder_layers = options.decoder_layers = 1;
    const auto shorter = models::make_model(options, 1, DType::f64);
    for (const auto& entry : shorter->parameters().entries()) {
      entry.value.copy_from(model->parameters().find(entry.name)->value);
    }
    const data::TokenPair pair = pair_for(model->task());
    for (const Target& target : {Target{}, Target{.position = 1, .token = 3, .against = 0}}) {
      const Question question(*model, pair, target), ends_there(*shorter, pair, target);
      EXPECT_NEAR(logit_lens(pass(), question)[1].value, ends_there.measure(pass()), 1e-12);
    }
  }
}

TEST_F(LensTest, IsForTransformers) {
  const auto model = drawn(recurrent(models::Query::current), 3);
  EXPECT_EQ(
      error_of([&] { logit_lens(pass(), Question(*model, pair_for(model->task()))); }),
      "rnn_seq2seq: readout was called, expected a model with layers of one width that all lead to the output, as a "
      "Transformer has");
}

}  // namespace
}  // namespace heed::analysis
