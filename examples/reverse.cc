// SPDX-License-Identifier: Apache-2.0
// Reversing a sequence with a recurrent encoder and decoder: once through one fixed vector, once with attention. Both
// are trained on the same sequences for as long, and tested on held-out ones. The vector has to hold a whole sequence;
// attention can go back to the source.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "heed/kernels/optimizer.h"
#include "heed/models/rnn_seq2seq.h"
#include "heed/ops/softmax.h"

namespace {

using namespace heed;

constexpr int32_t kPadding = 0, kBegin = 1, kEnd = 2, kFirstWord = 3, kWords = 10;
constexpr int64_t kLongest = 10, kSteps = 800, kRows = 32, kTested = 200;

// Random words as source; reversed as the decoder's input, begun with kBegin, and as labels, ended with kEnd.
struct Batch {
  Batch(int64_t rows, Rng& rng)
      : source(Tensor::zeros({rows, kLongest}, DType::i32)),
        input(Tensor::zeros({rows, kLongest + 1}, DType::i32)),
        expected(Tensor::zeros({rows, kLongest + 1}, DType::i32)) {
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t n = 4 + static_cast<int64_t>(rng.below(kLongest - 3));
      int32_t* words = source.data<int32_t>() + b * kLongest;
      int32_t *in = input.data<int32_t>() + b * (kLongest + 1), *out = expected.data<int32_t>() + b * (kLongest + 1);
      for (int64_t t = 0; t < n; ++t) words[t] = kFirstWord + static_cast<int32_t>(rng.below(kWords));
      std::reverse_copy(words, words + n, in + 1);
      std::reverse_copy(words, words + n, out);
      in[0] = kBegin, out[n] = kEnd;
      lengths.push_back(n);
    }
  }
  models::Tokens from() const { return {source, lengths}; }
  Tensor source, input, expected;
  std::vector<int64_t> lengths;
};

void train(models::RnnSeq2Seq& model, const ParameterStore& parameters, Parallel& threads, Workspace& workspace) {
  const Tensor m = Tensor::zeros_like(parameters.values()), v = Tensor::zeros_like(parameters.values());
  Tape tape;
  Rng data(2);
  for (int64_t step = 1; step <= kSteps; ++step) {
    const Batch batch(kRows, data);
    tape.clear();
    nn::Pass pass{{threads, workspace, &tape}, true};
    const Var logits = model.decode(pass, {batch.input}, model.encode(pass, batch.from()), batch.from());
    tape.backward(ops::cross_entropy(pass, logits, batch.expected, {.ignored = kPadding}).loss, pass);
    const auto gradients = parameters.gradients().view<float, 1>();
    workspace.reserve(kernels::gradient_norm_bytes(gradients.size()));
    const double norm = kernels::gradient_norm(gradients, workspace, threads);
    const double done = static_cast<double>(step) / static_cast<double>(kSteps);
    kernels::adam_step({.rate = 5e-3 * std::min(16 * done, 1 - done)},  // rises, then falls
                       {.values = parameters.values().view<float, 1>(),
                        .gradients = gradients,
                        .gradient_scale = kernels::clip_scale(norm, 1),
                        .clear_gradients = true},
                       {m.view<float, 1>(), v.view<float, 1>(), step}, threads);
  }
}

// The share of unseen sequences that come out exactly, their ends included, one token at a time.
double accuracy(const models::RnnSeq2Seq& model, Parallel& threads, Workspace& workspace) {
  Rng data(3);
  const Batch batch(kTested, data);
  nn::Pass pass{{threads, workspace}};
  nn::State state = model.begin(pass, batch.from());
  const int64_t V = model.options().vocabulary;
  const Tensor newest = Tensor::full({kTested, 1}, kBegin, DType::i32);
  std::vector<bool> right(kTested, true);
  for (int64_t t = 0; t <= kLongest; ++t) {
    const Tensor logits = model.step(pass, newest, state).value();
    for (int64_t b = 0; b < kTested; ++b) {
      const float* from = logits.data<float>() + b * V;
      const auto said = static_cast<int32_t>(std::max_element(from, from + V) - from);
      const int32_t expected = batch.expected.data<int32_t>()[b * (kLongest + 1) + t];
      if (expected != kPadding && said != expected) right[static_cast<size_t>(b)] = false;
      newest.data<int32_t>()[b] = said;
    }
  }
  return static_cast<double>(std::count(right.begin(), right.end(), true)) / static_cast<double>(kTested);
}

double trained_accuracy(models::Query query) {
  models::RnnSeq2SeqOptions options{.vocabulary = kFirstWord + kWords, .width = 32, .query = query, .dropout = 0};
  if (query == models::Query::none) options.readout = models::Readout::state;
  Rng rng(1);
  models::RnnSeq2Seq model(options, rng);
  const ParameterStore parameters(model);
  Parallel threads(1);
  Workspace workspace;
  train(model, parameters, threads, workspace);
  return accuracy(model, threads, workspace);
}

}  // namespace

int main() {
  const double fixed = trained_accuracy(models::Query::none), attending = trained_accuracy(models::Query::previous);
  std::printf("said backwards, exactly:  one fixed vector %5.1f %%   attention %5.1f %%\n", 100 * fixed,
              100 * attending);
  return attending > 0.9 && attending > fixed ? 0 : 1;
}
