// SPDX-License-Identifier: Apache-2.0
// Tagging: words come in pairs, and a word is tagged if its partner is anywhere in the row. A recurrent layer alone has
// to remember every word it has read; self-attention over its states finds the partner. Both are trained on the
// same rows for as long.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "heed/kernels/optimizer.h"
#include "heed/models/self_attentive.h"
#include "heed/ops/softmax.h"

namespace {

using namespace heed;

constexpr int32_t kWords = 30, kIgnored = -100;
constexpr int64_t kLongest = 12, kSteps = 600, kRows = 32, kTested = 200;

// Random words, and for each whether its partner is there: 0 or 1. Words 2n and 2n + 1 are partners.
struct Batch {
  Batch(int64_t rows, Rng& rng)
      : words(Tensor::zeros({rows, kLongest}, DType::i32)), tags(Tensor::full({rows, kLongest}, kIgnored, DType::i32)) {
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t n = 6 + static_cast<int64_t>(rng.below(kLongest - 5));
      int32_t *row = words.data<int32_t>() + b * kLongest, *tag = tags.data<int32_t>() + b * kLongest;
      for (int64_t t = 0; t < n; ++t) row[t] = static_cast<int32_t>(rng.below(kWords));
      for (int64_t t = 0; t < n; ++t) tag[t] = std::find(row, row + n, row[t] ^ 1) < row + n ? 1 : 0;
      lengths.push_back(n);
    }
  }
  models::Tokens source() const { return {words, lengths}; }
  Tensor words, tags;
  std::vector<int64_t> lengths;
};

void train(const models::SelfAttentive& model, const ParameterStore& parameters, Parallel& threads,
           Workspace& workspace) {
  const Tensor m = Tensor::zeros_like(parameters.values()), v = Tensor::zeros_like(parameters.values());
  Tape tape;
  Rng data(2);
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Batch batch(kRows, data);
    tape.clear();
    nn::Pass pass{{threads, workspace, &tape}, true};
    const Var logits = model.logits(pass, batch.source());
    tape.backward(ops::cross_entropy(pass, logits, batch.tags, {.ignored = kIgnored}).loss, pass);
    kernels::adam_step({.rate = 1e-2},
                       {.values = parameters.values().view<float, 1>(),
                        .gradients = parameters.gradients().view<float, 1>(),
                        .clear_gradients = true},
                       {m.view<float, 1>(), v.view<float, 1>(), step}, threads);
  }
}

// The share of words of unseen rows with the right tag.
double accuracy(const models::SelfAttentive& model, Parallel& threads, Workspace& workspace) {
  Rng data(3);
  const Batch batch(kTested, data);
  nn::Pass pass{{threads, workspace}};
  const Tensor logits = model.logits(pass, batch.source()).value();
  int64_t right = 0, all = 0;
  for (int64_t i = 0; i < kTested * kLongest; ++i) {
    const int32_t tag = batch.tags.data<int32_t>()[i];
    if (tag == kIgnored) continue;
    const float* of = logits.data<float>() + 2 * i;
    right += (of[1] > of[0] ? 1 : 0) == tag, ++all;
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

double trained_accuracy(bool attention) {
  const models::SelfAttentiveOptions options{
      .vocabulary = kWords,
      .outputs = 2,
      .layers = {.base = models::BaseLayer::gru, .attention = attention, .score = nn::Score::bilinear},
      .width = 32,
      .dropout = 0};
  Rng rng(1);
  models::SelfAttentive model(options, rng);
  const ParameterStore parameters(model);
  Parallel threads(1);
  Workspace workspace;
  train(model, parameters, threads, workspace);
  return accuracy(model, threads, workspace);
}

}  // namespace

int main() {
  const double alone = trained_accuracy(false), attending = trained_accuracy(true);
  std::printf("tagged right:  GRU alone %5.1f %%   its states attending %5.1f %%\n", 100 * alone, 100 * attending);
  return attending > alone ? 0 : 1;
}
