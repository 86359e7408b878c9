// SPDX-License-Identifier: Apache-2.0
// What does the causal mask do, and can it be had without a mask, by copies of the input?
//
// The recipe that is often told, for an input of T tokens: T copies, in copy t of which everything after token t is
// replaced by zeros.
#include <algorithm>
#include <cmath>

#include "heed/base/workspace.h"
#include "heed/data/batch.h"
#include "heed/lab/experiments.h"
#include "heed/lab/measure.h"
#include "heed/lab/training.h"
#include "heed/nn/attention.h"
#include "heed/nn/attention_weights.h"
#include "heed/ops/softmax.h"

namespace heed::lab {
namespace {

constexpr int64_t kT = 16, kWidth = 64;
constexpr int32_t kLetters = 12, kIds = kFirstId + kLetters;

// Letters of which each is, nine times of ten, the one three places before it.
data::TokenPair letters(Rng& rng) {
  data::TokenPair row;
  for (size_t i = 0; i + 1 < kT; ++i) {
    const auto any = kFirstId + static_cast<int32_t>(rng.below(kLetters));
    row.target.push_back(i >= 3 && rng.below(10) > 0 ? row.target[i - 3] : any);
  }
  return row;
}

// What a token may see of those after it.
enum class After { masked, seen, zeros, cut };  // zeros, cut: of copies; those that are cut end with their token

// Each row T times; copy t has one label, that of token t.
data::Batch copies_of(const data::Batch& batch) {
  const int64_t T = batch.target_length;
  data::Batch all{.rows = batch.rows * T, .target_length = T, .pad = batch.pad};
  for (int64_t row = 0; row < all.rows; ++row) {
    const auto from = static_cast<size_t>(row / T * T), t = static_cast<size_t>(row % T);
    for (size_t i = 0; i < static_cast<size_t>(T); ++i) {
      all.target_in.push_back(batch.target_in[from + i]);
      all.target_out.push_back(i == t ? batch.target_out[from + i] : batch.pad);
    }
    all.target_lengths.push_back(row % T + 1);
  }
  return all;
}

// A language model of one layer of self-attention.
struct Speller {
  nn::Embedding embedding;
  nn::Norm norm, norm_out;
  nn::Attention attention;
  nn::Linear output;
  Tensor positions = nn::sinusoids(128, kWidth);

  explicit Speller(Rng& rng)
      : embedding(kIds, kWidth, rng),
        norm(kWidth),
        norm_out(kWidth),
        attention({.width = kWidth, .heads = 2}, "speller", rng),
        output(kWidth, kIds, rng) {}
  // Logits [rows,T,V]. For zeros and cut, the batch is copies.
  Var operator()(nn::Pass& pass, const data::Batch& batch, After after) const {
    const int64_t T = batch.target_length;
    const Tensor ids = Tensor::of({batch.rows, T}, std::span(batch.target_in));
    Var x = norm(pass, ops::add_row(pass, embedding(pass, ids), positions.slice(0, T)));
    if (after == After::zeros) {
      const Tensor kept = Tensor::zeros(x.shape());
      for (int64_t row = 0; row < batch.rows; ++row) {
        std::fill_n(kept.data<float>() + row * T * kWidth, (row % T + 1) * kWidth, 1.0f);
      }
      x = ops::multiply(pass, x, kept);
    }
    const kernels::Mask mask = after == After::masked ? kernels::Mask(kernels::Causal::top_left())
                               : after == After::cut  ? kernels::Mask(kernels::Lengths{batch.target_lengths})
                                                      : kernels::Mask();
    const Var y = ops::add(pass, x, attention(pass, x, x, {.role = nn::AttentionRole::masked, .mask = mask}));
    return output(pass, norm_out(pass, y));
  }
  void visit(auto&& each) {
    each("embedding", embedding), each("norm", norm), each("norm_out", norm_out);
    each("attention", attention), each("output", output);
  }
};

bool of_copies(After after) { return after == After::zeros || after == After::cut; }

void train(Context& context, Speller& speller, const ParameterStore& parameters, After after, uint64_t seed) {
  const DrawnBatches batches(letters, 32, seed);
  fit(context, parameters, {.steps = context.size(400, 100), .seed = seed}, [&](nn::Pass& pass, int64_t step) {
    const data::Batch rows = batches.at(0, step), batch = of_copies(after) ? copies_of(rows) : rows;
    return ops::cross_entropy(pass, speller(pass, batch, after), data::labels(batch), {.ignored = batch.pad}).loss;
  });
}

double right(Context& context, const Speller& speller, const data::Batch& rows, After after) {
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  const data::Batch batch = of_copies(after) ? copies_of(rows) : rows;
  Accuracy found;
  add_accuracy(found, batch, speller(pass, batch, after).value());
  return found.share();
}

// The largest difference of a copy's logits from those of one causal pass, over the largest logit.
double difference(Context& context, const Speller& speller, const data::Batch& rows, After after) {
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  const Tensor causal = speller(pass, rows, After::masked).value();
  const Tensor copies = speller(pass, copies_of(rows), after).value();
  const int64_t T = rows.target_length;
  double most = 0, largest = 0;
  for (int64_t row = 0; row < rows.rows * T; ++row) {  // row t of the causal pass, token t of copy t
    const float *a = causal.data<float>() + row * kIds, *b = copies.data<float>() + (row * T + row % T) * kIds;
    for (int64_t v = 0; v < kIds; ++v) {
      most = std::max(most, std::abs(double{a[v]} - b[v]));
      largest = std::max(largest, std::abs(double{a[v]}));
    }
  }
  return most / largest;
}

// By the token's number: the share of its attention that goes to zeros, a mean over rows and heads.
std::vector<double> weight_of_zeros(Context& context, const Speller& speller, const data::Batch& rows) {
  struct Sum final : nn::Observer {
    heed::Parallel& parallel;
    Workspace workspace;
    std::vector<double> share;
    explicit Sum(heed::Parallel& p) : parallel(p) {}
    void attention(const nn::AttentionEvent& event) override {
      const Tensor weights = nn::attention_weights(event, workspace, parallel);  // [B T,H,T,T]
      const int64_t copies = weights.shape(0), H = weights.shape(1), T = weights.shape(2);
      share.assign(static_cast<size_t>(T), 0);
      for (int64_t copy = 0; copy < copies; ++copy) {
        const int64_t t = copy % T;
        for (int64_t head = 0; head < H; ++head) {
          const float* row = weights.data<float>() + ((copy * H + head) * T + t) * T;
          for (int64_t s = t + 1; s < T; ++s) {
            share[static_cast<size_t>(t)] += double{row[s]} * static_cast<double>(T) / static_cast<double>(copies * H);
          }
        }
      }
    }
  } sum(context.parallel());
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  pass.observer = &sum;
  speller(pass, copies_of(rows), After::zeros);
  return sum.share;
}

// How many times as long as one causal pass the copies of a row of T tokens take.
double cost(Context& context, const Speller& speller, int64_t T, After after) {
  data::Batch row{.rows = 1, .target_length = T};
  row.target_in.assign(static_cast<size_t>(T), kFirstId), row.target_out = row.target_in;
  const data::Batch copies = copies_of(row);
  Workspace workspace;
  nn::Pass pass{{context.parallel(), workspace}};
  const auto times = fastest({[&] { speller(pass, copies, after); }, [&] { speller(pass, row, After::masked); }}, 7);
  return times[0] / times[1];
}

struct Way {
  const char* name;
  After after;
};
constexpr Way kWays[] = {{"causal mask", After::masked}, {"no mask", After::seen}, {"copies with zeros", After::zeros}};

Result run_peek(Context& context) {
  context.expect(std::ssize(context.seeds()) * 3 * context.size(400, 100));
  Table table{.title = "Next letters, right; 90 % and a bit can be known",
              .columns = {"trained with", "tested in the same way", "tested on what came before alone"}};
  Plot zeros{.title = "Share of a token's attention that zeros take",
             .x = {"number of zeros after the token"},
             .y = {"share", page::Scale::linear, 0, 1}};
  Spread honest[3];
  std::vector<double> cut, changed, shares;
  for (size_t way = 0; way < 3; ++way) {
    std::vector<double> same, alone;
    std::vector<Series> by_token;
    for (const uint64_t seed : context.seeds()) {
      const data::Batch test = DrawnBatches(letters, 64, seed).at(0, 1 << 20);
      Rng rng(seed);
      Speller speller(rng);
      const ParameterStore parameters(speller);
      train(context, speller, parameters, kWays[way].after, seed);
      same.push_back(right(context, speller, test, kWays[way].after));
      alone.push_back(right(context, speller, test, After::cut));
      if (kWays[way].after == After::seen) continue;
      const std::vector<double> share = weight_of_zeros(context, speller, test);
      by_token.emplace_back();
      for (size_t t = share.size(); t-- > 0;) {
        by_token.back().points.push_back(point(static_cast<double>(share.size() - 1 - t), share[t]));
      }
      if (kWays[way].after == After::zeros) continue;
      cut.push_back(difference(context, speller, test, After::cut));
      changed.push_back(difference(context, speller, test, After::zeros));
      double sum = 0;
      for (const double one : share) sum += one / static_cast<double>(share.size());
      shares.push_back(sum);
    }
    honest[way] = spread_of(alone);
    table.rows.push_back({kWays[way].name, percent(spread_of(same)), percent(honest[way])});
    if (!by_token.empty()) {
      zeros.series.push_back(mean_of(std::string("trained with ") + kWays[way].name, by_token));
    }
  }
  Rng rng(1);
  const Speller speller(rng);
  Table costs{.title = "Time of all copies of a row of T tokens, over that of one causal pass",
              .columns = {"T", "copies with zeros", "copies that are cut"}};
  double last = 0;
  for (const int64_t T : {16, 32, 64}) {
    last = cost(context, speller, T, After::zeros);
    costs.rows.push_back({std::to_string(T), shown(last), shown(cost(context, speller, T, After::cut))});
  }
  return {.findings = {{spread_of(cut).high < 1e-5, "at most " + shown(spread_of(cut).high)},
                       {spread_of(changed).high < 1e-5, "up to " + shown(spread_of(changed).high)},
                       {spread_of(shares).high < 0.01, percent(spread_of(shares)) + " of a token's attention"},
                       {honest[1].high < honest[0].low,
                        percent(honest[1]) + " right without, " + percent(honest[0]) + " with the mask"},
                       {last < 2, shown(last) + " times"}},
          .tables = {table, costs},
          .plots = {zeros}};
}

}  // namespace

Experiment peek() {
  return {.name = "peek",
          .claim =
              "A causal mask is what T copies of the input would give, in copy t of which everything after token "
              "t is replaced by zeros.",
          .method =
              "Language models of one layer learn rows of letters, of which each is mostly the one three places "
              "before: with the causal mask, without a mask, and from copies with zeros. Copies are also cut "
              "after their token, in place of zeros. Differences are the largest of a logit, over the largest "
              "logit; weights and differences are of the model that was trained with the mask.",
          .tests = {"copies that are cut after token t give what one causal pass gives: to 1e-5, some hundred "
                    "roundings of f32",
                    "copies with zeros give the same, to 1e-5", "zeros take no attention: less than 1 % on average",
                    "without a mask, a model peeks: given only what came before, its best run is worse than the worst "
                    "run of the model with the mask",
                    "copies cost no more than the mask: for 64 tokens, less than twice the time (their work is 64 "
                    "times as much)"},
          .run = run_peek};
}

}  // namespace heed::lab
