// SPDX-License-Identifier: Apache-2.0
// Weights from elsewhere: the states that a BERT gives to the tokens of a text, from a checkpoint that another library
// saved. Prints one line a token. docs/weights.md has the story.
//
//   bert_states model.safetensors 12 101 7592 2088 102
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "heed/io/safetensors.h"
#include "heed/models/model.h"

namespace {

using namespace heed;

// BERT in heed's words. Sizes are those of the tensors; only the number of heads cannot be seen there.
models::TransformerOptions bert_options(const io::SafetensorsFile& file, int64_t heads) {
  const io::Shape& words = file.at("embeddings.word_embeddings.weight").shape;
  models::TransformerOptions o{
      .kind = models::TransformerKind::encoder, .vocabulary = words.at(0), .width = words.at(1)};
  o.heads = heads;
  o.inner = file.at("encoder.layer.0.intermediate.dense.weight").shape.at(0);
  o.max_length = file.at("embeddings.position_embeddings.weight").shape.at(0);
  o.token_types = file.at("embeddings.token_type_embeddings.weight").shape.at(0);
  o.encoder_layers = 0;
  for (const io::TensorEntry& tensor : file.tensors()) {
    if (tensor.name.ends_with(".intermediate.dense.weight")) ++o.encoder_layers;
  }
  o.norm = models::NormPlace::after;
  o.norm_eps = 1e-12;
  o.embedding_scale = 1;
  o.embedding_norm = true;
  o.positions = models::Positions::learned;
  o.activation = nn::Activation::gelu;
  return o;
}

// The pooler, and a table of position numbers that old files have, are for nothing here.
const models::LoadOptions kBertNames{
    .rename = models::replace_parts({{"embeddings.word_embeddings", "embedding"},
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
    .ignore_extra = true};

void print_states(const std::string& path, int64_t heads, const std::vector<int32_t>& ids) {
  const auto model = models::make_unfilled_model(bert_options(io::SafetensorsFile(path), heads));
  models::load_parameters(path, model->parameters(), kBertNames);

  Parallel threads;
  Workspace workspace;
  nn::Pass pass{{threads, workspace}};
  const Tensor states = model->states(pass, {Tensor::of({1, std::ssize(ids)}, ids)}).value();
  for (int64_t t = 0; t < states.shape(1); ++t) {
    for (int64_t i = 0; i < states.shape(2); ++i) {
      std::printf("%s%.6f", i ? " " : "", double{states.data<float>()[t * states.shape(2) + i]});
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bert_states <model.safetensors> <heads> <token id> ...\n");
    return 2;
  }
  try {
    std::vector<int32_t> ids;
    for (int i = 3; i < argc; ++i) ids.push_back(static_cast<int32_t>(std::strtol(argv[i], nullptr, 10)));
    print_states(argv[1], std::strtol(argv[2], nullptr, 10), ids);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bert_states: %s\n", error.what());
    return 1;
  }
}
