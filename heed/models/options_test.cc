// SPDX-License-Identifier: Apache-2.0
// The options of any family, and their JSON, with that of older versions.
#include "heed/models/options.h"

#include <gtest/gtest.h>

#include <string>

#include "heed/base/testing.h"
#include "heed/io/config.h"

namespace heed::models {
namespace {

using heed::testing::error_of;

ModelOptions read(const std::string& text) {
  ModelOptions options;
  io::from_json(text, options, "config.json");
  return options;
}

TEST(ModelOptions, AreOfTheFamilyTheyAreMadeFrom) {
  EXPECT_TRUE(ModelOptions().is<TransformerOptions>());
  const ModelOptions options = RnnSeq2SeqOptions{.vocabulary = 7};
  EXPECT_FALSE(options.is<TransformerOptions>());
  EXPECT_EQ(options.as<RnnSeq2SeqOptions>().vocabulary, 7);
  EXPECT_EQ(error_of([&] { options.as<TransformerOptions>(); }),
            "model: options are those of rnn_seq2seq, expected those of transformer");
  ModelOptions other = options;
  other = SelfAttentiveOptions{.outputs = 3};
  other.as<SelfAttentiveOptions>().outputs = 4;
  EXPECT_EQ(std::as_const(other).as<SelfAttentiveOptions>().outputs, 4);
}

TEST(ModelOptions, KnowWhatAModelIsFor) {
  EXPECT_EQ(task_of(TransformerOptions{}), Task::translate);
  EXPECT_EQ(task_of(TransformerOptions{.kind = TransformerKind::decoder}), Task::language);
  EXPECT_EQ(task_of(TransformerOptions{.kind = TransformerKind::encoder}), Task::encode);
  EXPECT_EQ(task_of(TransformerOptions{.kind = TransformerKind::encoder, .outputs = 3}), Task::tag);
  EXPECT_EQ(task_of(RnnSeq2SeqOptions{}), Task::translate);
  EXPECT_EQ(task_of(SelfAttentiveOptions{}), Task::tag);
  EXPECT_EQ(task_of(SelfAttentiveOptions{.head = SelfAttentiveHead::classes}), Task::classify);
}

TEST(ModelOptions, ComeBackFromTheirJson) {
  TransformerOptions o{.kind = TransformerKind::encoder, .vocabulary = 9};
  o.head_width = 6, o.norm_eps = 1e-12, o.embedding_scale = 1, o.embedding_norm = true, o.token_types = 2;
  o.positions = Positions::learned, o.sinusoid_layout = nn::SinusoidLayout::halves, o.first_position = 2;
  o.rotary_base = 500000, o.activation = nn::Activation::gelu_tanh, o.gated = true, o.bias = false;
  o.output_bias = OutputBias::always;
  const std::string text = io::to_json(ModelOptions(o));
  EXPECT_EQ(io::to_json(read(text)), text);
  const ModelOptions back = read(text);
  const auto& same = back.as<TransformerOptions>();
  EXPECT_EQ(same.head_width, 6);
  EXPECT_EQ(same.norm_eps, 1e-12);
  EXPECT_EQ(same.first_position, 2);
  EXPECT_EQ(same.activation, nn::Activation::gelu_tanh);
  EXPECT_EQ(same.output_bias, OutputBias::always);

  RnnSeq2SeqOptions r{.vocabulary = 9, .source_vocabulary = 8};
  r.embedding_width = 3, r.source_embedding_width = 4, r.encoder_width = 6, r.encoder_layers = 2, r.decoder_width = 5;
  r.decoder_layers = 3, r.embedding_scale = 1, r.first_state = FirstState::top, r.bridge = Bridge::tanh;
  const std::string recurrent = io::to_json(ModelOptions(r));
  EXPECT_EQ(io::to_json(read(recurrent)), recurrent);
  EXPECT_EQ(read(recurrent).as<RnnSeq2SeqOptions>().bridge, Bridge::tanh);
}

// Folders that were made before there was a choice of activations, or any of the other options.
TEST(ModelOptions, ReadTheJsonOfBefore) {
  const std::string before = R"({
  "family": "transformer",
  "transformer": {
    "kind": "encoder-decoder", "vocabulary": 100, "source_vocabulary": 0, "width": 128, "heads": 4, "kv_heads": 0,
    "inner": 512, "encoder_layers": 2, "decoder_layers": 2, "max_length": 1024, "dropout": 0.1,
    "attention_dropout": 0, "norm": "before", "rms": false, "positions": "sinusoid", "tied": true, "gelu": GELU,
    "outputs": 0
  }
})";
  const auto with = [&](const std::string& gelu) { return std::string(before).replace(before.find("GELU"), 4, gelu); };
  const ModelOptions options = read(with("false"));
  EXPECT_EQ(options.as<TransformerOptions>().activation, nn::Activation::relu);
  const TransformerOptions usual{
      .vocabulary = 100, .width = 128, .inner = 512, .encoder_layers = 2, .decoder_layers = 2};
  EXPECT_EQ(io::to_json(options), io::to_json(ModelOptions(usual)));
  EXPECT_EQ(read(with("true")).as<TransformerOptions>().activation, nn::Activation::gelu);
  EXPECT_EQ(io::to_json(read(with("true"))).find("\"gelu\": true"), std::string::npos);
}

TEST(ModelOptions, HaveOneFamilyInTheirJson) {
  EXPECT_EQ(error_of([] { read(R"({"family": "convolutional"})"); }),
            "config.json: family is 'convolutional', expected one of 'transformer', 'rnn_seq2seq', 'self_attentive'");
  EXPECT_EQ(error_of([] { read(R"({"family": "rnn_seq2seq", "transformer": {}})"); }),
            "config.json: unknown key 'transformer', expected one of family, rnn_seq2seq");
  EXPECT_TRUE(error_of([] {
                read(R"({"transformer": {"widht": 3}})");
              }).starts_with("config.json: unknown key 'transformer.widht', did you mean 'transformer.width'?"));
}

}  // namespace
}  // namespace heed::models
