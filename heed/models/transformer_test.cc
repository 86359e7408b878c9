// SPDX-License-Identifier: Apache-2.0
#include "heed/models/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/models/testing.h"

namespace heed::models {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::Batch, testing::columns_of, testing::deviation, testing::Machine, testing::row_of, testing::same_bits;

// A model whose parameters are all moved from where they began.
struct Moved {
  Moved(const TransformerOptions& options, uint64_t seed) : rng(seeded(seed)), model(options, rng), store(model) {
    testing::scatter(store, seed);
  }
  Rng rng;
  Transformer model;
  ParameterStore store;
};

class Decoder : public ::testing::TestWithParam<TransformerOptions> {
 protected:
  Machine machine;
  nn::Pass pass = machine.pass();
  Moved moved{GetParam(), 21};
  const Transformer& model = moved.model;
};

TEST_P(Decoder, NeverPeeks) {
  constexpr int64_t T = 70;  // more than a tile of queries or of keys
  Rng rng(seeded(22));
  Batch batch(GetParam(), 2, 6, T, rng);
  batch.target.lengths = {};
  const Tensor before = testing::run(model, pass, batch).value();
  for (const int64_t i : {0, 1, 7, 8, 33, 64, 69}) {
    const Tensor ids = batch.target.ids, other = ids.clone();
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t t = i; t < T; ++t) {
        int32_t& id = other.data<int32_t>()[b * T + t];
        id = (id + 1 + static_cast<int32_t>(rng.below(testing::kVocabulary - 1))) % testing::kVocabulary;
      }
    }
    batch.target.ids = other;
    const Tensor after = testing::run(model, pass, batch).value();
    for (int64_t t = 0; t < i; ++t) ASSERT_TRUE(same_bits(row_of(after, t), row_of(before, t))) << i << ", row " << t;
    EXPECT_FALSE(same_bits(row_of(after, i), row_of(before, i))) << i;
    batch.target.ids = ids;
  }
}

int32_t strongest(const Tensor& logits, int64_t row) {
  const int64_t V = logits.shape(-1);
  const float* from = logits.data<float>() + row * V;
  return static_cast<int32_t>(std::max_element(from, from + V) - from);
}

// Greedy, one token at a time; then all of its tokens at once.
TEST_P(Decoder, StepsGiveTheLogitsAndTokensOfTheWhole) {
  constexpr int64_t B = 3, T = 40;  // beyond the caches' first capacity
  Rng rng(seeded(23));
  Batch batch(GetParam(), B, 6, T, rng);
  batch.target.lengths = {};
  nn::State state = model.begin(pass, batch.source);
  const Tensor& ids = batch.target.ids;
  std::vector<Tensor> logits;
  for (int64_t t = 0; t < T; ++t) {
    logits.push_back(model.step(pass, columns_of(ids, t, t + 1), state).value());
    for (int64_t b = 0; b < B && t + 1 < T; ++b) ids.data<int32_t>()[b * T + t + 1] = strongest(logits.back(), b);
  }
  EXPECT_EQ(state.length(), T);
  const Tensor whole = testing::run(model, pass, batch).value();
  for (int64_t t = 0; t < T; ++t) {
    EXPECT_LE(deviation(logits[static_cast<size_t>(t)], row_of(whole, t)), 1e-5) << "token " << t;
    for (int64_t b = 0; b < B && t + 1 < T; ++b) {
      EXPECT_EQ(strongest(whole, b * T + t), ids.data<int32_t>()[b * T + t + 1]) << "token " << t;
    }
  }
}

TEST_P(Decoder, StepsMayBeSeveralTokensLong) {
  Rng rng(seeded(24));
  Batch batch(GetParam(), 2, 5, 12, rng);
  batch.target.lengths = {};
  const Tensor whole = testing::run(model, pass, batch).value();
  nn::State state = model.begin(pass, batch.source);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 5}, {5, 6}, {6, 12}}) {
    const Tensor logits = model.step(pass, columns_of(batch.target.ids, begin, end), state).value();
    for (int64_t t = begin; t < end; ++t) {
      EXPECT_LE(deviation(row_of(logits, t - begin), row_of(whole, t)), 1e-5) << "token " << t;
    }
  }
}

Tensor rows_of(const Tensor& ids, std::span<const int64_t> parents) {
  const int64_t T = ids.shape(1);
  Tensor rows = Tensor::uninitialised({std::ssize(parents), T}, DType::i32);
  for (int64_t i = 0; i < std::ssize(parents); ++i) {
    std::copy_n(ids.data<int32_t>() + parents[static_cast<size_t>(i)] * T, T, rows.data<int32_t>() + i * T);
  }
  return rows;
}

TEST_P(Decoder, StepsOverCachesOfTheDTypeThatThePassNames) {
  Rng rng(seeded(26));
  const Batch batch(GetParam(), 2, 5, 3, rng);
  std::vector<size_t> bytes;
  std::vector<Tensor> logits;
  for (const std::optional<DType> dtype :
       {std::optional<DType>(), std::optional(DType::f32), std::optional(DType::f16)}) {
    pass.cache_dtype = dtype;
    nn::State state = model.begin(pass, batch.source);
    pass.cache_dtype = {};  // it matters where caches are made
    for (int64_t t = 0; t < 3; ++t) {
      logits.push_back(model.step(pass, columns_of(batch.target.ids, t, t + 1), state).value());
    }
    bytes.push_back(state.bytes());
    for (const auto* caches : {&state.self, &state.cross}) {
      for (const nn::KvCache& cache : *caches) EXPECT_EQ(cache.dtype(), dtype.value_or(DType::f32));
    }
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0], 2 * bytes[2]);
  for (size_t t = 0; t < 3; ++t) {
    EXPECT_TRUE(testing::same_bits(logits[t], logits[3 + t]));
    EXPECT_FALSE(testing::same_bits(logits[t], logits[6 + t]));
  }
}

TEST_P(Decoder, ReorderedHypothesesGoOnAsIfTheyHadBeenDecodedSo) {
  constexpr int64_t T = 6;
  Rng rng(seeded(25));
  const Batch batch(GetParam(), 3, 5, T, rng);
  nn::State state = model.begin(pass, batch.source);
  for (int64_t t = 0; t < T; ++t) model.step(pass, columns_of(batch.target.ids, t, t + 1), state);

  const std::vector<int64_t> parents{2, 0, 0, 2, 1};
  state.reorder(parents);
  const Tensor next = testing::draw_tokens({5, 1}, testing::kVocabulary, rng);
  const Tensor logits = model.step(pass, next, state).value();

  Batch again(GetParam(), 5, 5, T + 1, rng);
  again.source.ids = rows_of(batch.source.ids, parents);
  if (batch.source.types) again.source.types = rows_of(batch.source.types, parents);
  for (size_t i = 0; i < parents.size(); ++i) {
    again.source_lengths[i] = batch.source_lengths[static_cast<size_t>(parents[i])];
    const Tensor prefix = rows_of(batch.target.ids, std::span(&parents[i], 1));
    int32_t* to = again.target.ids.data<int32_t>() + static_cast<int64_t>(i) * (T + 1);
    std::copy_n(prefix.data<int32_t>(), T, to);
    to[T] = next.data<int32_t>()[i];
  }
  again.target.lengths = {};
  EXPECT_LE(deviation(logits, row_of(testing::run(model, pass, again).value(), T)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Decoder, ::testing::ValuesIn(testing::every_decoder()),
                         [](const auto& one) { return testing::name_of(one.param); });

class AnyKind : public ::testing::TestWithParam<TransformerOptions> {};

TEST_P(AnyKind, WhatStandsInPaddingDoesNotMatter) {
  constexpr int64_t B = 3, S = 6, T = 5;
  Machine machine;
  nn::Pass pass = machine.pass();
  const Moved moved(GetParam(), 26);
  Rng rng(seeded(27));
  const Batch batch(GetParam(), B, S, T, rng);
  const bool decodes = GetParam().kind != TransformerKind::encoder;
  const Tensor before = testing::run(moved.model, pass, batch).value();
  const auto change = [](int32_t& id) { id = (id + 1) % testing::kVocabulary; };
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = batch.source_lengths[b]; s < S; ++s) change(batch.source.ids.data<int32_t>()[b * S + s]);
    for (int64_t t = batch.target_lengths[b]; t < T; ++t) change(batch.target.ids.data<int32_t>()[b * T + t]);
  }
  const Tensor after = testing::run(moved.model, pass, batch).value();
  const int64_t rows = before.shape(1), width = before.shape(2);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t real = (decodes ? batch.target_lengths : batch.source_lengths)[b];
    const Tensor a = after.slice(b, 1).reshaped({rows, width}).slice(0, real);
    EXPECT_TRUE(same_bits(a, before.slice(b, 1).reshaped({rows, width}).slice(0, real))) << "row " << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyKind, ::testing::ValuesIn(testing::every_kind()),
                         [](const auto& one) { return testing::name_of(one.param); });

TEST(Encoder, IsPermutationEquivariantJustWithoutPositions) {
  constexpr int64_t S = 9;
  const int64_t order[S] = {3, 0, 8, 1, 7, 2, 6, 5, 4};
  for (const auto& positions : enum_names(Positions{})) {
    for (const auto& norm : enum_names(NormPlace{})) {
      Machine machine;
      nn::Pass pass = machine.pass();
      const Moved moved(testing::shrunken(TransformerKind::encoder, positions.value, norm.value), 28);
      Rng rng(seeded(29));
      const Tensor ids = testing::draw_tokens({1, S}, testing::kVocabulary, rng), moved_ids = Tensor::like(ids);
      for (int64_t s = 0; s < S; ++s) moved_ids.data<int32_t>()[s] = ids.data<int32_t>()[order[s]];
      const Tensor states = moved.model.encode(pass, {ids}).value();
      const Tensor permuted = Tensor::like(states);
      for (int64_t s = 0; s < S; ++s) {
        std::copy_n(states.data<float>() + order[s] * 8, 8, permuted.data<float>() + s * 8);
      }
      const double error = deviation(moved.model.encode(pass, {moved_ids}).value(), permuted);
      // Two layers, in each sums over keys (9) in another order, felt by all that follows: 3 widths and the inner one.
      const double rounding = 2.0 * (S + 40 + 12) * testing::kUnit;
      if (positions.value == Positions::none) {
        EXPECT_LE(error, rounding) << norm.name;
      } else {
        EXPECT_GT(error, 1000 * rounding) << norm.name << ' ' << positions.name;
      }
    }
  }
}

struct Listener : nn::Observer {
  std::vector<std::string> told;
  void attention(const nn::AttentionEvent& e) override {
    told.push_back(e.path + " " + name_of(e.role) + " " + std::to_string(e.position));
  }
};

TEST(Transformer, TellsAnObserverOfEveryAttention) {
  Machine machine;
  Rng rng(seeded(30));
  const TransformerOptions options =
      testing::shrunken(TransformerKind::encoder_decoder, Positions::sinusoid, NormPlace::before);
  const Transformer model(options, rng);
  const Batch batch(options, 2, 5, 4, rng);
  Listener listener;
  nn::Pass pass = machine.pass();
  pass.observer = &listener;
  testing::run(model, pass, batch);
  EXPECT_EQ(listener.told, (std::vector<std::string>{"encoder.0.self self 0", "encoder.1.self self 0",
                                                     "decoder.0.self masked 0", "decoder.0.cross cross 0",
                                                     "decoder.1.self masked 0", "decoder.1.cross cross 0"}));
  nn::State state = model.begin(pass, batch.source);
  model.step(pass, columns_of(batch.target.ids, 0, 1), state);
  listener.told.clear();
  model.step(pass, columns_of(batch.target.ids, 1, 2), state);
  EXPECT_EQ(listener.told, (std::vector<std::string>{"decoder.0.self masked 1", "decoder.0.cross cross 1",
                                                     "decoder.1.self masked 1", "decoder.1.cross cross 1"}));
}

TEST(Transformer, HasTheParametersOfItsOptions) {
  Rng rng(seeded(31));
  TransformerOptions o{.vocabulary = 50, .width = 128, .inner = 512, .encoder_layers = 2, .decoder_layers = 2};
  Transformer tied(o, rng);
  const int64_t E = 128, F = 512, attention = 4 * (E * E + E), norm = 2 * E, inner = E * F + F + F * E + E;
  const int64_t encoder = attention + inner + 2 * norm, decoder = 2 * attention + inner + 3 * norm;
  EXPECT_EQ(ParameterStore(tied).count(), 50 * E + 2 * (encoder + decoder) + 2 * norm);

  o.tied = false, o.positions = Positions::learned, o.source_vocabulary = 60, o.max_length = 30;
  Transformer untied(o, rng);
  const ParameterStore store(untied);
  EXPECT_EQ(store.count(), (50 + 60 + 30 + 30) * E + 2 * (encoder + decoder) + 2 * norm + 50 * E + 50);
  for (const char* name : {"embedding.weight", "source_embedding.weight", "positions.weight", "source_positions.weight",
                           "encoder.1.self.q.weight", "encoder.0.norm_self.weight", "decoder.1.cross.out.bias",
                           "decoder.0.feed_forward.second.weight", "decoder_norm.bias", "output.weight"}) {
    EXPECT_TRUE(store.find(name)) << name;
  }
}

TEST(Transformer, HasTheParametersOfWellKnownOnes) {
  TransformerOptions o = testing::shrunken(TransformerKind::encoder_decoder, Positions::learned, NormPlace::after);
  o.head_width = 6, o.gated = true, o.bias = false, o.embedding_norm = true, o.token_types = 2, o.first_position = 2;
  o.output_bias = OutputBias::always;
  Transformer model(o, nn::Init::none());
  const ParameterStore store(model, {.gradients = false});
  const auto shape = [&](const char* name) {
    const ParameterStore::Entry* entry = store.find(name);
    return entry ? to_string(entry->value.shape()) : "none";
  };
  EXPECT_EQ(shape("encoder.0.self.q.weight"), "[12, 8]");
  EXPECT_EQ(shape("encoder.0.self.v.weight"), "[12, 8]");
  EXPECT_EQ(shape("encoder.0.self.out.weight"), "[8, 12]");
  EXPECT_EQ(shape("encoder.0.self.q.bias"), "none");
  EXPECT_EQ(shape("decoder.1.feed_forward.third.weight"), "[12, 8]");
  EXPECT_EQ(shape("decoder.1.feed_forward.third.bias"), "none");
  EXPECT_EQ(shape("positions.weight"), "[98, 8]");
  EXPECT_EQ(shape("source_positions.weight"), "[98, 8]");
  EXPECT_EQ(shape("token_types.weight"), "[2, 8]");
  EXPECT_EQ(shape("embedding_norm.bias"), "[8]");
  EXPECT_EQ(shape("source_embedding_norm.weight"), "[8]");
  EXPECT_EQ(shape("output.weight"), "none");
  EXPECT_EQ(shape("output.bias"), "[7]");

  o.tied = false, o.output_bias = OutputBias::never;
  Transformer untied(o, nn::Init::none());
  const ParameterStore other(untied, {.gradients = false});
  EXPECT_TRUE(other.find("output.weight"));
  EXPECT_FALSE(other.find("output.bias"));
}

// Token types that are not given are 0.
TEST(Transformer, TokensWithoutTypesAreOfTypeZero) {
  Machine machine;
  nn::Pass pass = machine.pass();
  TransformerOptions o = testing::shrunken(TransformerKind::encoder, Positions::none, NormPlace::after);
  o.token_types = 2;
  const Moved moved(o, 33);
  Rng rng(seeded(34));
  const Tensor ids = testing::draw_tokens({2, 4}, testing::kVocabulary, rng);
  const Tensor states = moved.model.encode(pass, {ids}).value();
  EXPECT_TRUE(same_bits(moved.model.encode(pass, {ids, {}, Tensor::zeros({2, 4}, DType::i32)}).value(), states));
  EXPECT_FALSE(same_bits(moved.model.encode(pass, {ids, {}, Tensor::full({2, 4}, 1, DType::i32)}).value(), states));
}

// The scale of embeddings that are followed by a norm does not matter, but for its eps.
TEST(Transformer, EmbeddingsAreScaledBeforeTheirNorm) {
  Machine machine;
  nn::Pass pass = machine.pass();
  TransformerOptions o = testing::shrunken(TransformerKind::encoder, Positions::none, NormPlace::after);
  o.embedding_norm = true, o.norm_eps = 1e-12, o.embedding_scale = 1;
  Rng rng(seeded(35));
  const Tensor ids = testing::draw_tokens({2, 4}, testing::kVocabulary, rng);
  const Tensor states = Moved(o, 33).model.encode(pass, {ids}).value();
  o.embedding_scale = 3;
  EXPECT_LE(deviation(Moved(o, 33).model.encode(pass, {ids}).value(), states), 200 * testing::kUnit);
  o.embedding_norm = false;
  EXPECT_GT(deviation(Moved(o, 33).model.encode(pass, {ids}).value(), states), 1e-2);
}

TEST(Transformer, SaysWhichOptionsDoNotFit) {
  const auto made = [](const auto& change) {
    TransformerOptions o = testing::shrunken(TransformerKind::encoder_decoder, Positions::rotary, NormPlace::before);
    change(o);
    Rng rng(seeded(1));
    return error_of([&] { Transformer(o, rng); });
  };
  EXPECT_EQ(made([](auto&) {}), "no error");
  EXPECT_EQ(made([](auto& o) { o.vocabulary = 0; }), "transformer: vocabulary is 0, expected 1 or more");
  EXPECT_EQ(made([](auto& o) { o.heads = 0; }), "transformer: heads is 0, expected an integer in [1, 65536]");
  EXPECT_EQ(made([](auto& o) { o.heads = 3; }), "transformer: width is 8, expected a multiple of heads (3)");
  EXPECT_EQ(made([](auto& o) { o.dropout = 1; }), "transformer: dropout is 1, expected a number in [0, 1)");
  EXPECT_EQ(made([](auto& o) { o.outputs = 2; }), "transformer: outputs is 2, expected 0 where there is a decoder");
  EXPECT_EQ(made([](auto& o) { o.heads = 3, o.head_width = 4; }), "no error");
  EXPECT_EQ(made([](auto& o) { o.norm_eps = 0; }), "transformer: norm_eps is 0, expected a number > 0");
  EXPECT_EQ(made([](auto& o) { o.kind = TransformerKind::decoder, o.token_types = 2; }),
            "transformer: token_types is 2, expected 0 where there is no encoder");
  EXPECT_EQ(made([](auto& o) { o.heads = 8; }),
            "attention 'encoder.0.self': key_width is 1, expected an even one for rotary");
}

TEST(Transformer, SaysWhichCallsDoNotFit) {
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng(seeded(32));
  const auto make = [&](TransformerKind kind) {
    TransformerOptions o = testing::shrunken(kind, Positions::sinusoid, NormPlace::before);
    o.max_length = 6;
    return Transformer(o, rng);
  };
  const Transformer both = make(TransformerKind::encoder_decoder), encoder = make(TransformerKind::encoder),
                    decoder = make(TransformerKind::decoder);
  const Tokens tokens{testing::draw_tokens({2, 4}, testing::kVocabulary, rng)};
  const Var memory = both.encode(pass, tokens);
  nn::State state = both.begin(pass, tokens);
  EXPECT_EQ(error_of([&] { decoder.encode(pass, tokens); }),
            "transformer: encode was called, expected a model with an encoder");
  EXPECT_EQ(error_of([&] { encoder.decode(pass, tokens, {}, {}); }),
            "transformer: decode was called, expected a model with a decoder");
  EXPECT_EQ(error_of([&] { encoder.step(pass, tokens.ids, state); }),
            "transformer: step was called, expected a model with a decoder");
  EXPECT_EQ(error_of([&] { both.decode(pass, tokens, {}, tokens); }),
            "transformer: memory is missing, expected what encode gave");
  EXPECT_EQ(error_of([&] { decoder.decode(pass, tokens, memory, tokens); }),
            "transformer: memory came, expected none for a decoder alone");
  EXPECT_EQ(error_of([&] { decoder.step(pass, tokens.ids, state); }),
            "transformer: the state has caches for 2 + 2 attention layers, expected 2 + 0, as begin gives them");
  EXPECT_EQ(error_of([&] {
              both.encode(pass, {Tensor::zeros({2, 4})});
            }),
            "transformer: source has shape [2, 4] in f32, expected token ids [B, tokens] in i32");
  EXPECT_EQ(error_of([&] { both.encode(pass, {Tensor::zeros({4}, DType::i32)}); }),
            "transformer: source has shape [4] in i32, expected token ids [B, tokens] in i32");
  EXPECT_EQ(error_of([&] { encoder.tag(pass, tokens); }),
            "transformer: tag was called, expected an encoder with outputs");
  EXPECT_EQ(error_of([&] {
              both.encode(pass, {tokens.ids, {}, tokens.ids});
            }),
            "transformer: types came, expected none for a model without token types");
  TransformerOptions typed = testing::shrunken(TransformerKind::encoder, Positions::none, NormPlace::before);
  typed.token_types = 2;
  EXPECT_EQ(error_of([&] {
              Transformer(typed, rng).encode(pass, {tokens.ids, {}, Tensor::zeros({2, 3}, DType::i32)});
            }),
            "transformer: types has shape [2, 3] in i32, expected [2, 4] in i32, as the ids have");
  const std::string long_row = "transformer: a row of 8 tokens came, expected at most 6 (max_length)";
  EXPECT_EQ(error_of([&] { both.encode(pass, {Tensor::zeros({1, 8}, DType::i32)}); }), long_row);
  both.step(pass, tokens.ids, state);
  EXPECT_EQ(error_of([&] { both.step(pass, tokens.ids, state); }), long_row);
}

}  // namespace
}  // namespace heed::models
