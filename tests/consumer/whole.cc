// A program of somebody else's that needs the whole library: all it knows of heed is heed::heed. It runs a Transformer
// in f64 and in f32, and attention by itself, which comes from the other library.
#include <heed/attention.h>
#include <heed/autograd/parameter.h>
#include <heed/models/transformer.h>

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

}  // namespace

int main() {
  const double exact = logit(heed::DType::f64), fast = logit(heed::DType::f32);
  std::printf("%.6f %s", exact, std::abs(exact - fast) < 1e-4 ? "in both" : "differs");
  try {
    heed::Tensor::zeros({2, 3}).reshaped({7});
  } catch (const heed::Error&) {
    std::puts(" and an error");
  }
}
