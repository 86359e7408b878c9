// SPDX-License-Identifier: Apache-2.0
// The program of docs/tour/: one function a page. What the pages quote is this file, and the numbers that they show are
// what it prints (tools/check_tour.py).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "heed/models/transformer.h"
#include "heed/nn/attention.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/single_head_attention.h"
#include "heed/ops/softmax.h"

namespace {

using namespace heed;

constexpr std::array<const char*, 3> kWords = {"the", "animal", "it"};

// Three words as vectors of four numbers, [B,T,E] with one sentence.
Var three_words() {
  const std::array<float, 12> x{1, 0, 0, 0, 0, 2, 0, 1, 0, 1.5, 0.5, 0};
  return Tensor::of({1, 3, 4}, x);
}

void print(const char* title, const Var& x) {
  std::printf("%s\n", title);
  const int64_t columns = x.shape(-1), rows = x.value().size() / columns;
  for (int64_t t = 0; t < rows; ++t) {
    std::printf("  %-7s", rows == 3 ? kWords[static_cast<size_t>(t)] : "");
    for (int64_t i = 0; i < columns; ++i) std::printf(" %5.2f", x.value().data<float>()[t * columns + i]);
    std::printf("\n");
  }
}

double largest_difference(const Var& a, const Var& b) {
  double most = 0;
  for (int64_t i = 0; i < a.value().size(); ++i) {
    most = std::max(most, std::abs(double{a.value().data<float>()[i]} - b.value().data<float>()[i]));
  }
  return most;
}

// Two ways to the same numbers: they may round differently, by a few units in the last place of numbers below 10.
void print_same(const char* what, const Var& a, const Var& b) {
  std::printf("%s: %s\n", what, largest_difference(a, b) < 1e-5 ? "the same" : "different");
}

Var random(const Shape& shape, Rng& rng) { return nn::normal(shape, 1, rng); }

void weighted_average(nn::Pass& pass) {
  std::puts("# 1 A weighted average");
  const Var x = three_words();
  const Tensor rows = x.value().reshaped({3, 4});

  const Var scores = ops::linear(pass, rows, rows);  // x x^T: every dot product
  const Var weights = ops::softmax(pass, scores);    // of each row
  print("scores", scores);
  print("weights", weights);

  Tensor y = Tensor::zeros({1, 3, 4});
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t s = 0; s < 3; ++s) {
      const float weight = weights.value().data<float>()[t * 3 + s];
      for (int64_t i = 0; i < 4; ++i) y.data<float>()[t * 4 + i] += weight * rows.data<float>()[s * 4 + i];
    }
  }
  print("averages", y);

  const Var at_once = ops::attention(pass, {.q = x, .k = x, .v = x, .options = {.scale = 1.0f}}).out;
  print_same("by hand and fused", y, at_once);
}

void queries_keys_values(nn::Pass& pass) {
  std::puts("# 2 Queries, keys, values");
  Rng rng(1);
  const nn::Attention attention({.width = 4, .heads = 1, .bias = false}, "self", rng);
  const Var x = three_words();

  const Var q = attention.q(pass, x), k = attention.k(pass, x), v = attention.v(pass, x);
  const Var scores = ops::linear(pass, q.value().reshaped({3, 4}), k.value().reshaped({3, 4}));
  print("q k^T: what 'the' is to 'it' is not what 'it' is to 'the'", scores);

  const Var average = ops::attention(pass, {.q = q, .k = k, .v = v}).out;
  const Var y = attention.out(pass, average);
  print_same("by its parts and as a layer", y, attention(pass, x, x, {}));
}

void scaling(nn::Pass& pass) {
  std::puts("# 3 Scaling");
  constexpr int64_t kQueries = 200, kKeys = 16;
  std::puts("    d_k  deviation of q.k  largest weight  the same, scaled");
  for (const int64_t D : {1, 16, 256, 4096}) {
    Rng rng(1);
    const Var q = random({kQueries, D}, rng), k = random({kKeys, D}, rng);
    const Var scores = ops::linear(pass, q, k);
    const Var weights = ops::softmax(pass, scores);
    const Var scaled = ops::softmax(pass, ops::scale(pass, scores, 1 / std::sqrt(static_cast<double>(D))));

    double squares = 0, largest = 0, largest_scaled = 0;
    for (int64_t t = 0; t < kQueries; ++t) {
      const auto row = [&](const Var& of) { return of.value().span<float>().subspan(t * kKeys, kKeys); };
      for (const float score : row(scores)) squares += double{score} * score;
      largest += std::ranges::max(row(weights)), largest_scaled += std::ranges::max(row(scaled));
    }
    std::printf("  %5d             %5.1f            %4.2f              %4.2f\n", static_cast<int>(D),
                std::sqrt(squares / (kQueries * kKeys)), largest / kQueries, largest_scaled / kQueries);
  }
}

void heads(nn::Pass& pass) {
  std::puts("# 4 Heads");
  Rng rng(1);
  const Var q = random({1, 3, 4}, rng), k = random({1, 3, 4}, rng), v = random({1, 3, 4}, rng);
  const Var two = ops::attention(pass, {.q = q, .k = k, .v = v, .heads = 2, .kv_heads = 2}).out;

  std::vector<Var> parts;
  for (const int64_t h : {0, 1}) {
    const auto half = [&](const Var& x) { return ops::columns(pass, x, 2 * h, 2); };
    parts.push_back(ops::attention(pass, {.q = half(q), .k = half(k), .v = half(v)}).out);
  }
  print_same("two heads, and two attentions side by side", two, ops::concat(pass, parts));

  // The same once more with matrices: W selects the numbers of head 0, and the others are zero.
  const std::array<float, 16> selects{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const Var selected = ops::linear(pass, q, Tensor::of({4, 4}, selects));
  const float scale = 1 / std::sqrt(2.0f);  // of the head's two numbers, not of four
  const Var one = ops::attention(pass, {.q = selected, .k = k, .v = v, .options = {.scale = scale}}).out;
  print_same("head 0, and a W_Q that selects its block", ops::columns(pass, one, 0, 2), parts[0]);
}

void masks(nn::Pass& pass) {
  std::puts("# 5 Masks");
  constexpr int64_t T = 5, E = 4;
  Rng rng(1);
  const Var x = random({1, T, E}, rng);
  const kernels::Mask causal{kernels::Causal::top_left()};
  const Var at_once = ops::attention(pass, {.q = x, .k = x, .v = x, .options = {.mask = causal}}).out;

  Tensor copies = Tensor::zeros({1, T, E});  // row t: the last row of attention over a copy of the first t + 1 words
  for (int64_t t = 0; t < T; ++t) {
    const Var prefix = x.value().reshaped({T, E}).slice(0, t + 1).reshaped({1, t + 1, E});
    const Tensor y = ops::attention(pass, {.q = prefix, .k = prefix, .v = prefix}).out.value();
    std::copy_n(y.data<float>() + t * E, E, copies.data<float>() + t * E);
  }
  print_same("one causal pass, and a copy of each prefix", at_once, copies);
  std::printf("rows: %d copies for %d words\n", static_cast<int>(copies.shape(1)), static_cast<int>(T));

  // The literal recipe: words that are yet to come are zeros. Their scores are 0, and exp(0) is 1.
  const Var words = three_words();
  const Tensor zeroed = words.value().clone();
  std::fill_n(zeroed.data<float>() + 4, 8, 0.0f);  // 'the' alone is known
  const Var scores = ops::linear(pass, zeroed.reshaped({3, 4}).slice(0, 1), zeroed.reshaped({3, 4}));
  print("weights of 'the' where two words to come are zeros", ops::softmax(pass, scores));
}

void recurrent(nn::Pass& pass) {
  std::puts("# 6 Attention of a recurrent network");
  Rng rng(1);
  const nn::Recurrent encoder(4, {.cell = nn::Cell::gru, .width = 6}, "encoder", rng);
  const nn::Recurrent decoder(4, {.cell = nn::Cell::gru, .width = 6}, "decoder", rng);
  const nn::RecurrentOutput read = encoder(pass, three_words());
  const Var h = read.h;                                                         // [1,3,6]: a state for each source word
  const Var s = decoder(pass, random({1, 2, 4}, rng), {.begin = read.last}).h;  // [1,2,6]: of each target word

  const Var contexts = ops::attention(pass, {.q = s, .k = h, .v = h, .options = {.scale = 1.0f}}).out;
  const nn::SingleHeadAttention luong(nn::Score::dot, "cross", 6, 6, rng);
  print_same("K = V = h, and a layer of recurrent models", contexts, luong(pass, s, h, h, {nn::AttentionRole::cross}));

  const Var among = ops::attention(pass, {.q = h, .k = h, .v = h, .options = {.scale = 1.0f}}).out;
  std::printf("contexts of %d target words; of %d source words, from the same call with q = h\n",
              static_cast<int>(contexts.shape(1)), static_cast<int>(among.shape(1)));
}

void positions(nn::Pass& pass) {
  std::puts("# 7 Positions");
  Rng rng(1);
  const nn::Attention attention({.width = 4, .heads = 2}, "self", rng);
  const auto turned = [&](const Var& x) {  // the last word first
    Tensor y = Tensor::like(x.value());
    for (int64_t t = 0; t < 3; ++t) std::copy_n(x.value().data<float>() + 4 * (2 - t), 4, y.data<float>() + 4 * t);
    return Var(y);
  };
  const Var x = three_words(), y = attention(pass, x, x, {});
  print_same("turned words and turned outputs", attention(pass, turned(x), turned(x), {}), turned(y));

  const Var table = nn::sinusoids(3, 4);
  print("sinusoids", table);
  const Var placed = ops::add_row(pass, x, table), other = ops::add_row(pass, turned(x), table);
  const Var there = attention(pass, placed, placed, {}), back = attention(pass, other, other, {});
  print_same("with positions, turned words and turned outputs", back, turned(there));
}

void transformer(nn::Pass& pass) {
  std::puts("# 8 The Transformer");
  Rng rng(1);
  models::TransformerOptions options{.vocabulary = 20, .width = 8, .heads = 2, .inner = 16};
  const models::TransformerLayer layer(options, "encoder.0", /*with_cross=*/false, rng);
  const Var x = random({1, 3, 8}, rng);

  const Var looked = layer.norm_self(pass, x);
  const Var a = ops::add(pass, x, layer.self(pass, looked, looked, {}));                        // from each other
  const Var y = ops::add(pass, a, layer.feed_forward(pass, layer.norm_feed_forward(pass, a)));  // each by itself
  print_same("a layer, and its parts", layer(pass, x, {}), y);

  const models::Transformer model(options, rng);
  const std::array<int32_t, 3> source{5, 6, 7};
  const std::array<int32_t, 4> target{1, 8, 9, 10};  // <s> and three words
  const models::Tokens from{Tensor::of({1, 3}, source)}, to{Tensor::of({1, 4}, target)};
  const Var at_once = model.decode(pass, to, model.encode(pass, from), from);
  nn::State state = model.begin(pass, from);
  Tensor steps = Tensor::like(at_once.value());
  for (int64_t t = 0; t < 4; ++t) {
    const Tensor newest = to.ids.reshaped({4, 1}).slice(t, 1);
    const Tensor logits = model.step(pass, newest, state).value();
    std::copy_n(logits.data<float>(), 20, steps.data<float>() + 20 * t);
  }
  print_same("a whole sequence at once, and token by token", at_once, steps);
}

}  // namespace

int main() {
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  weighted_average(pass);
  queries_keys_values(pass);
  scaling(pass);
  heads(pass);
  masks(pass);
  recurrent(pass);
  positions(pass);
  transformer(pass);
}
