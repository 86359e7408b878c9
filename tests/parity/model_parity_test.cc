// SPDX-License-Identifier: Apache-2.0
// Whole models of other libraries: their checkpoints are loaded under heed's names, and give the same numbers, for a
// whole sequence and token by token. tools/make_model_parity.py made the files; docs/weights.md explains the options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/io/safetensors.h"
#include "heed/io/tensor.h"
#include "heed/models/model.h"
#include "heed/nn/testing.h"

namespace heed {
namespace {

using models::load_parameters, models::Model, models::ModelOptions, models::replace_parts, models::Tokens;
using nn::testing::deviation, nn::testing::Machine;

// Largest error over largest value. The other library computed in f64. Its results were rounded to f32 (1), and so were
// the weights of its norms, of which a logit has ten behind it at most (10), after the results were there; its rotary
// angles' sines and cosines are f32 for queries and keys (4). In f64 these fifteen roundings are all. In f32 a logit
// also has a hundred additions of ours behind it that follow each other.
double most(DType dtype) {
  constexpr double kUnit = 0x1p-24;
  return (dtype == DType::f64 ? 15 : 15 + 100) * kUnit;
}

std::string file_named(const std::string& name) { return HEED_PARITY_DATA "/" + name + ".safetensors"; }

// Inputs and results of a model.
class Expected {
 public:
  explicit Expected(const std::string& name) : file_(file_named(name + "_expected")) {
    for (const io::TensorEntry& entry : file_.tensors()) {
      if (entry.name == "lengths") lengths_ = integers<int64_t>("lengths");
    }
  }
  Tokens tokens(const std::string& name) const {
    const bool source = name == "source";
    return {ids(name), source ? std::span<const int64_t>(lengths_) : std::span<const int64_t>()};
  }
  Tensor ids(const std::string& name) const { return Tensor::of(Shape(file_.at(name).shape), integers<int32_t>(name)); }
  Tensor operator()(const std::string& name) const { return io::to_tensor(file_.at(name), DType::f32); }

 private:
  template <class T>
  std::vector<T> integers(const std::string& name) const {
    const std::vector<double> numbers = io::convert<double>(file_.at(name).type, file_.at(name).bytes);
    return {numbers.begin(), numbers.end()};
  }
  io::SafetensorsFile file_;
  std::vector<int64_t> lengths_;
};

class ModelParity : public ::testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<Model> unfilled(const ModelOptions& options) const {
    return models::make_unfilled_model(options, {.dtype = GetParam(), .gradients = false});
  }
  // Logits of the whole target, and of its tokens one by one.
  void expect_logits(const Model& model, const Expected& expected, const Tokens& source) {
    const Tokens target = expected.tokens("target");
    const Tensor want = expected("logits").converted(GetParam());
    EXPECT_LE(deviation(model.logits(pass, source, target).value(), want), most(GetParam()));
    const int64_t B = want.shape(0), T = want.shape(1), V = want.shape(2);
    const std::vector<double> all = want.to_doubles();
    double largest = 0;
    for (const double x : all) largest = std::max(largest, std::abs(x));
    nn::State state = model.begin(pass, source);
    for (int64_t t = 0; t < T; ++t) {
      const Tensor newest = Tensor::uninitialised({B, 1}, DType::i32);
      for (int64_t b = 0; b < B; ++b) newest.data<int32_t>()[b] = target.ids.data<int32_t>()[b * T + t];
      const std::vector<double> got = model.step(pass, newest, state).value().to_doubles();
      for (int64_t i = 0; i < B * V; ++i) {
        const double error = got[static_cast<size_t>(i)] - all[static_cast<size_t>((i / V * T + t) * V + i % V)];
        EXPECT_LE(std::abs(error) / largest, most(GetParam())) << "token " << t;
      }
    }
  }

  Machine machine;
  nn::Pass pass = machine.pass();
};

TEST_P(ModelParity, Bert) {
  models::TransformerOptions o{.kind = models::TransformerKind::encoder, .vocabulary = 23, .width = 16, .heads = 2};
  o.inner = 24, o.encoder_layers = 2, o.max_length = 12;
  o.norm = models::NormPlace::after, o.norm_eps = 1e-12;
  o.embedding_scale = 1, o.embedding_norm = true, o.token_types = 2;
  o.positions = models::Positions::learned;
  o.activation = nn::Activation::gelu;
  const auto model = unfilled(o);
  load_parameters(file_named("bert"), model->parameters(),
                  {.rename = replace_parts({{"embeddings.word_embeddings", "embedding"},
                                            {"embeddings.position_embeddings", "positions"},
                                            {"embeddings.token_type_embeddings", "token_types"},
                                            {"embeddings.LayerNorm", "embedding_norm"},
                                            {"encoder.layer.", "encoder."},
                                            {"attention.self.query", "self.q"},
                                            {"attention.self.key", "self.k"},
                                            {"attention.self.value", "self.v"},
                                            {"attention.output.dense", "self.out"},
                                            {"attention.output.LayerNorm", "norm_self"},
                                            {"intermediate.dense", "feed_forward.first"},
                                            {"output.dense", "feed_forward.second"},
                                            {"output.LayerNorm", "norm_feed_forward"}}),
                   .ignore_extra = true});  // the pooler
  const Expected expected("bert");
  Tokens source = expected.tokens("source");
  const auto states = [&](const char* name) { return expected(name).converted(GetParam()); };
  EXPECT_LE(deviation(model->states(pass, source).value(), states("states_without_types")), most(GetParam()));
  source.types = expected.ids("types");
  EXPECT_LE(deviation(model->states(pass, source).value(), states("states")), most(GetParam()));
}

// One matrix holds q, k and v, and all are stored [in,out]: each parameter is cut out by hand.
TEST_P(ModelParity, Gpt2) {
  models::TransformerOptions o{.kind = models::TransformerKind::decoder, .vocabulary = 23, .width = 16, .heads = 2};
  o.inner = 24, o.decoder_layers = 2, o.max_length = 12;
  o.embedding_scale = 1, o.positions = models::Positions::learned;
  o.activation = nn::Activation::gelu_tanh;
  const auto model = unfilled(o);
  const io::SafetensorsFile file(file_named("gpt2"));
  const auto foreign = replace_parts({{"embedding.", "wte."},
                                      {"positions.", "wpe."},
                                      {"decoder_norm.", "ln_f."},
                                      {"decoder.", "h."},
                                      {"norm_self.", "ln_1."},
                                      {"norm_feed_forward.", "ln_2."},
                                      {"self.out.", "attn.c_proj."},
                                      {"self.q.", "attn.c_attn."},
                                      {"self.k.", "attn.c_attn."},
                                      {"self.v.", "attn.c_attn."},
                                      {"feed_forward.first.", "mlp.c_fc."},
                                      {"feed_forward.second.", "mlp.c_proj."}});
  const auto transposed = [](const Tensor& x) {
    const Tensor y = Tensor::uninitialised({x.shape(1), x.shape(0)});
    for (int64_t i = 0; i < x.size(); ++i) {
      y.data<float>()[i] = x.data<float>()[i % x.shape(0) * x.shape(1) + i / x.shape(0)];
    }
    return y;
  };
  load_parameters(
      [&](const std::string& parameter) {
        const std::string name = "transformer." + foreign(parameter);
        Tensor values = io::to_tensor(file.at(name), DType::f32);
        if (name.find(".c_") != name.npos && values.shape().rank() == 2) values = transposed(values);
        const size_t part = std::string("qkv").find(parameter[parameter.find("self.") + 5]);
        return name.find("c_attn") == name.npos ? values : values.slice(static_cast<int64_t>(part) * 16, 16);
      },
      model->parameters());
  expect_logits(*model, Expected("gpt2"), {});
}

TEST_P(ModelParity, Llama) {
  models::TransformerOptions o{.kind = models::TransformerKind::decoder, .vocabulary = 23, .width = 16, .heads = 4};
  o.kv_heads = 2, o.head_width = 6, o.inner = 24, o.decoder_layers = 2, o.max_length = 12;
  o.rms = true, o.norm_eps = 1e-6, o.embedding_scale = 1;
  o.positions = models::Positions::rotary, o.rotary_base = 500;
  o.activation = nn::Activation::silu, o.gated = true;
  o.bias = false, o.tied = false, o.output_bias = models::OutputBias::never;
  const auto model = unfilled(o);
  load_parameters(file_named("llama"), model->parameters(),
                  {.rename = replace_parts({{"lm_head.", "output."},
                                            {"model.embed_tokens.", "embedding."},
                                            {"model.norm.", "decoder_norm."},
                                            {"model.layers.", "decoder."},
                                            {"input_layernorm.", "norm_self."},
                                            {"post_attention_layernorm.", "norm_feed_forward."},
                                            {"self_attn.q_proj.", "self.q."},
                                            {"self_attn.k_proj.", "self.k."},
                                            {"self_attn.v_proj.", "self.v."},
                                            {"self_attn.o_proj.", "self.out."},
                                            {"mlp.gate_proj.", "feed_forward.first."},
                                            {"mlp.up_proj.", "feed_forward.third."},
                                            {"mlp.down_proj.", "feed_forward.second."}})});
  expect_logits(*model, Expected("llama"), {});
}

TEST_P(ModelParity, Marian) {
  models::TransformerOptions o{.vocabulary = 23, .width = 16, .heads = 2, .inner = 24, .encoder_layers = 2};
  o.decoder_layers = 2, o.max_length = 12;
  o.norm = models::NormPlace::after;
  o.sinusoid_layout = nn::SinusoidLayout::halves;
  o.activation = nn::Activation::silu;
  o.output_bias = models::OutputBias::always;
  const auto model = unfilled(o);
  load_parameters(file_named("marian"), model->parameters(),
                  {.rename = replace_parts({{"final_logits_bias", "output.bias"},
                                            {"model.shared.", "embedding."},
                                            {"model.", ""},
                                            {"coder.layers.", "coder."},
                                            {"self_attn_layer_norm.", "norm_self."},
                                            {"encoder_attn_layer_norm.", "norm_cross."},
                                            {"final_layer_norm.", "norm_feed_forward."},
                                            {"self_attn.", "self."},
                                            {"encoder_attn.", "cross."},
                                            {"q_proj.", "q."},
                                            {"k_proj.", "k."},
                                            {"v_proj.", "v."},
                                            {"out_proj.", "out."},
                                            {"fc1.", "feed_forward.first."},
                                            {"fc2.", "feed_forward.second."}})});
  const Expected expected("marian");
  const Tokens source = expected.tokens("source");
  EXPECT_LE(deviation(model->states(pass, source).value(), expected("states").converted(GetParam())), most(GetParam()));
  expect_logits(*model, expected, source);
}

// Bahdanau's translator as people write it in PyTorch.
TEST_P(ModelParity, GruTranslatorWithWidthsOfItsParts) {
  models::RnnSeq2SeqOptions o{.vocabulary = 19, .source_vocabulary = 23};
  o.embedding_width = 7, o.source_embedding_width = 6, o.encoder_width = 10, o.decoder_width = 8;
  o.embedding_scale = 1, o.bridge = models::Bridge::tanh;
  const auto model = unfilled(o);
  load_parameters(file_named("gru_translator"), model->parameters(),
                  {.rename = replace_parts({{"encoder_embedding.", "source_embedding."},
                                            {"decoder_embedding.", "embedding."},
                                            {"bridge.", "first_h.0."},
                                            {"encoder_gru.", "encoder.layers.0.forward."},
                                            {"decoder_cell.", "decoder_top."},
                                            {"query.", "cross.query."},
                                            {"key.", "cross.key."},
                                            {"score.weight", "cross.w"},
                                            {"weight_ih", "w_ih"},
                                            {"weight_hh", "w_hh"},
                                            {"bias_ih", "b_ih"},
                                            {"bias_hh", "b_hh"},
                                            {"forward.w_ih_l0_reverse", "backward.w_ih"},
                                            {"forward.w_hh_l0_reverse", "backward.w_hh"},
                                            {"forward.b_ih_l0_reverse", "backward.b_ih"},
                                            {"forward.b_hh_l0_reverse", "backward.b_hh"},
                                            {"_l0", ""}})});
  const Expected expected("gru_translator");
  expect_logits(*model, expected, expected.tokens("source"));
}

INSTANTIATE_TEST_SUITE_P(DTypes, ModelParity, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace heed
