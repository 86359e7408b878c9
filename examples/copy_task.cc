// SPDX-License-Identifier: Apache-2.0
// The copy task: a tiny Transformer learns to repeat its source. It trains until every sequence of a held-out test set
// comes out exactly, token by token.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "heed/kernels/optimizer.h"
#include "heed/models/transformer.h"
#include "heed/ops/softmax.h"

namespace {

using namespace heed;

constexpr int32_t kPadding = 0, kBegin = 1, kEnd = 2, kFirstWord = 3, kWords = 12;
constexpr int64_t kLongest = 8;

// Sequences of random words, each as source, as the decoder's input (begun with kBegin) and as labels (ended with
// kEnd): teacher forcing.
struct Batch {
  Batch(int64_t rows, Rng& rng)
      : source(Tensor::zeros({rows, kLongest}, DType::i32)),
        input(Tensor::zeros({rows, kLongest + 1}, DType::i32)),
        expected(Tensor::zeros({rows, kLongest + 1}, DType::i32)) {
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t n = 1 + static_cast<int64_t>(rng.below(kLongest));
      int32_t* in = input.data<int32_t>() + b * (kLongest + 1);
      int32_t* out = expected.data<int32_t>() + b * (kLongest + 1);
      in[0] = kBegin;
      for (int64_t t = 0; t < n; ++t) {
        const int32_t word = kFirstWord + static_cast<int32_t>(rng.below(kWords));
        source.data<int32_t>()[b * kLongest + t] = in[t + 1] = out[t] = word;
      }
      out[n] = kEnd;
      lengths.push_back(n);
    }
  }
  Tensor source, input, expected;
  std::vector<int64_t> lengths;
};

struct Training {
  models::Transformer& model;
  ParameterStore parameters{model};
  Tensor m = Tensor::zeros_like(parameters.values()), v = Tensor::zeros_like(parameters.values());
  Tape tape{};
  nn::RandomStream random{1};
  int64_t steps = 0;

  double step(Parallel& threads, Workspace& workspace, const Batch& batch) {
    tape.clear();
    nn::Pass pass{{threads, workspace, &tape}, true, random};
    const models::Tokens source{batch.source, batch.lengths};
    const Var logits = model.decode(pass, {batch.input}, model.encode(pass, source), source);
    const auto result = ops::cross_entropy(pass, logits, batch.expected, {.ignored = kPadding});
    tape.backward(result.loss, pass);
    random = pass.random;
    const double rate = 3e-3 * std::min(1.0, static_cast<double>(++steps) / 50);  // warm-up
    kernels::adam_step({.rate = rate, .beta2 = 0.98},
                       {.values = parameters.values().view<float, 1>(),
                        .gradients = parameters.gradients().view<float, 1>(),
                        .clear_gradients = true},
                       {m.view<float, 1>(), v.view<float, 1>(), steps}, threads);
    return result.loss.value().item();
  }
};

// Greedy, one token at a time; how many sequences come out exactly, their ends included.
int64_t exact_matches(const models::Transformer& model, Parallel& threads, Workspace& workspace, const Batch& batch) {
  nn::Pass pass{{threads, workspace}};
  nn::State state = model.begin(pass, {batch.source, batch.lengths});
  const int64_t rows = batch.source.shape(0), V = model.options().vocabulary;
  const Tensor newest = Tensor::full({rows, 1}, kBegin, DType::i32);
  std::vector<bool> right(static_cast<size_t>(rows), true);
  for (int64_t t = 0; t <= kLongest; ++t) {
    const Tensor logits = model.step(pass, newest, state).value();
    for (int64_t b = 0; b < rows; ++b) {
      const float* from = logits.data<float>() + b * V;
      const auto said = static_cast<int32_t>(std::max_element(from, from + V) - from);
      const int32_t expected = batch.expected.data<int32_t>()[b * (kLongest + 1) + t];
      if (expected != kPadding && said != expected) right[static_cast<size_t>(b)] = false;
      newest.data<int32_t>()[b] = said;
    }
  }
  return std::count(right.begin(), right.end(), true);
}

}  // namespace

int main() {
  models::TransformerOptions options;
  options.vocabulary = kFirstWord + kWords;
  options.width = 32, options.heads = 4, options.inner = 64, options.encoder_layers = options.decoder_layers = 1;
  options.max_length = kLongest + 1, options.dropout = 0;
  Rng rng(1);
  models::Transformer model(options, rng);
  Training training{model};
  Parallel threads(1);
  Workspace workspace;
  std::printf("%lld parameters\n", static_cast<long long>(training.parameters.count()));

  Rng data(2), test_data(3);
  const Batch test(200, test_data);
  for (int round = 1; round <= 40; ++round) {
    double loss = 0;
    for (int i = 0; i < 50; ++i) loss += training.step(threads, workspace, Batch(32, data)) / 50;
    const int64_t exact = exact_matches(model, threads, workspace, test);
    std::printf("step %4lld   loss %.4f   exact %5.1f %%\n", static_cast<long long>(training.steps), loss,
                100.0 * static_cast<double>(exact) / 200);
    if (exact == 200) return 0;
  }
  return 1;
}
