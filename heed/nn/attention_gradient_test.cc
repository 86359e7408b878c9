// SPDX-License-Identifier: Apache-2.0
// Attention layers of every kind: gradients in double against central differences, and f32 against double.
#include <gtest/gtest.h>

#include <string>

#include "heed/nn/attention.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using testing::check_layer, testing::for_draws;

int64_t one_of(Rng& rng, std::initializer_list<int64_t> choices) { return choices.begin()[rng.below(choices.size())]; }

AttentionOptions draw_options(Rng& rng, Score score) {
  AttentionOptions o{.score = score};
  o.kv_heads = one_of(rng, {1, 2, 3});
  o.heads = o.kv_heads * one_of(rng, {1, 1, 2});
  o.rotary = rng.below(3) == 0;
  o.alibi = !o.rotary && rng.below(3) == 0;
  o.key_width = o.rotary ? one_of(rng, {2, 4}) : one_of(rng, {1, 2, 3, 4});
  o.projections = rng.below(3) != 0;
  o.bias = rng.below(2) != 0;
  o.dropout = rng.below(2) ? 0.25f : 0.0f;
  o.value_width = o.projections ? one_of(rng, {1, 2, 3}) : o.key_width;
  o.width = o.projections ? one_of(rng, {3, 5, 8}) : o.heads * o.key_width;
  o.source_width = o.projections ? one_of(rng, {3, 4, 7}) : o.kv_heads * o.key_width;
  return o;
}

std::string text_of(const AttentionOptions& o) {
  return "width " + std::to_string(o.width) + ", source " + std::to_string(o.source_width) + ", heads " +
         std::to_string(o.heads) + "/" + std::to_string(o.kv_heads) + " of " + std::to_string(o.key_width) + " and " +
         std::to_string(o.value_width) + (o.projections ? ", projected" : "") + (o.bias ? ", bias" : "") +
         (o.rotary ? ", rotary" : "") + (o.alibi ? ", alibi" : "") + (o.dropout > 0 ? ", dropout" : "");
}

class AttentionGradient : public ::testing::TestWithParam<Score> {};

TEST_P(AttentionGradient, IsExactForEveryOption) {
  for_draws(40, [&](Rng& rng) {
    const AttentionOptions options = draw_options(rng, GetParam());
    SCOPED_TRACE(text_of(options));
    const int64_t B = one_of(rng, {1, 2}), T = one_of(rng, {3, 4, 5});
    const bool self = options.width == options.source_width && rng.below(2);
    const int64_t S = self ? T : one_of(rng, {3, 5, 6});
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < B; ++b) lengths.push_back(one_of(rng, {2, S - 1, S}));
    AttentionCall call;
    if (self) call.mask.causal = kernels::Causal::top_left();
    if (!self) call.mask.lengths = kernels::Lengths{lengths};
    if (!self) call.position = one_of(rng, {0, 2});

    const uint64_t seed = rng.next_u64();
    const auto make = [&] {
      Rng weights(seed);
      return Attention(options, "test", weights);
    };
    const auto use = [&](const Attention& layer, Pass& pass, std::span<const Var> in) {
      return layer(pass, in[0], in[self ? 0 : 1], call);
    };
    // Half as wide as normal: without a scale, scores are sums of products, and should stay moderate.
    std::vector<Tensor> inputs{normal({B, T, options.width}, 0.5, rng)};
    if (!self) inputs.push_back(normal({B, S, options.source_width}, 0.5, rng));
    // Forward and backward: four projections, scores and sums over keys; a rounding of a score counts as often as the
    // score is large, which is below ten.
    const double sums = static_cast<double>(2 * (options.width + options.source_width) +
                                            options.heads * (options.key_width + options.value_width) + T + S);
    check_layer(make, inputs, use, {.training = true, .additions = 2 * sums + 20, .seed = seed});
  });
}

std::string name_of_score(const ::testing::TestParamInfo<Score>& score) {
  constexpr const char* kNames[] = {"dot", "scaled", "bilinear", "additive"};
  return kNames[static_cast<uint8_t>(score.param)];
}

INSTANTIATE_TEST_SUITE_P(Scores, AttentionGradient,
                         ::testing::Values(Score::dot, Score::scaled, Score::bilinear, Score::additive), name_of_score);

}  // namespace
}  // namespace heed::nn
