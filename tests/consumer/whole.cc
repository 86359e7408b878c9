// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's that needs the whole library: all it knows of heed is heed::heed. It runs a Transformer
// in f64 and in f32, whose attention comes from the other library, and translates with one.
#include <heed/heed.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

namespace {

double logit(heed::DType dtype) {
  heed::models::TransformerOptions options;
  options.kind = heed::models::TransformerKind::decoder;
  options.vocabulary = 11;
  options.width = 8;
  options.heads = 2;
  options.inner = 16;
  options.decoder_layers = 2;
  heed::Rng rng(1);
  heed::models::Transformer model(options, rng);
  const heed::ParameterStore parameters(model, dtype);
  heed::Parallel threads(2);
  heed::Workspace workspace;
  heed::nn::Pass pass{{threads, workspace}};
  const int32_t ids[] = {1, 5, 7, 2};
  const heed::Tensor text = heed::Tensor::of({1, 4}, ids);
  return model.decode(pass, {text}, {}, {}).value().to_doubles().back();
}

size_t hypotheses() {
  heed::models::TransformerOptions options;
  options.vocabulary = 11;
  options.width = 8;
  options.heads = 2;
  options.inner = 16;
  const heed::Translator translator{heed::Engine(heed::TextModel(heed::models::make_model(options, 1)))};
  const std::vector<std::vector<int32_t>> ids = {{4, 5, 6}, {7}};
  size_t told = 0;
  translator.translate_ids(ids, {.search = {.beam = 3, .nbest = 2, .max_length = 5}},
                           [&](size_t, const heed::decode::Translations& found) { told += found.size(); });
  return told;
}

}  // namespace

int main() {
  const double exact = logit(heed::DType::f64), fast = logit(heed::DType::f32);
  std::printf("%.6f %s, %zu hypotheses", exact, std::abs(exact - fast) < 1e-4 ? "in both" : "differs", hypotheses());
  try {
    heed::Tensor::zeros({2, 3}).reshaped({7});
  } catch (const heed::Error&) {
    std::puts(" and an error");
  }
}
