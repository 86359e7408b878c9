// SPDX-License-Identifier: Apache-2.0
// The layer whose states attend to each other may be fully connected, a convolution or recurrent; a state and its
// context, [h ; c], go on to what follows. What does c add to each of them?
//
// Each word of a row is tagged by whether its partner is in the row, too (words 2n and 2n + 1 are partners): anywhere,
// which takes memory or a look at all words; or, for comparison, right beside it.
#include "heed/lab/experiments.h"
#include "heed/lab/partners.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

using models::BaseLayer;

constexpr BaseLayer kBases[] = {BaseLayer::linear, BaseLayer::conv1d, BaseLayer::rnn, BaseLayer::gru, BaseLayer::lstm};

Result run_bases(Context& context) {
  const int64_t steps = context.size(500, 60);
  context.expect(std::ssize(context.seeds()) * std::ssize(kBases) * 4 * steps);
  Table table{.title = "Words tagged right",
              .columns = {"base layer", "anywhere: h", "[h ; c]", "beside: h", "[h ; c]"}};
  Plot plot{.title = "Partners anywhere: words tagged right",
            .y = {.label = "share", .low = 0.5, .high = 1},
            .series = {{"h alone"}, {"[h ; c]"}},
            .marks = page::Marks::dots,
            .categories = {"fully connected", "convolution", "RNN", "GRU", "LSTM"},
            .note = "Lowest to highest of the seeds."};
  Finding better{.held = true, .measured = {}};
  for (const BaseLayer base : kBases) {
    std::vector<Spread> cells;
    for (const Where where : {Where::anywhere, Where::beside}) {
      for (const bool attention : {false, true}) {
        std::vector<double> right;
        for (const uint64_t seed : context.seeds()) {
          const models::SelfAttentiveOptions options{
              .vocabulary = kFirstId + kPartners,
              .outputs = kFirstId + 2,
              .layers = {.base = base, .attention = attention, .score = nn::Score::bilinear},
              .width = 32,
              .dropout = 0};
          const DrawnBatches batches(partners(where), 32, seed);
          const auto model = trained(context, options, batches, {.steps = steps, .rate = 1e-2, .seed = seed});
          right.push_back(accuracy(context, *model, held_out(partners(where), 300, seed)).share());
        }
        cells.push_back(spread_of(right));
      }
    }
    const std::string name(enum_names(base)[static_cast<size_t>(base)].name);
    table.rows.push_back({name});
    for (const Spread& cell : cells) table.rows.back().push_back(percent(cell));
    for (const size_t i : {0, 1}) {
      plot.series[i].points.push_back(point(static_cast<double>(table.rows.size() - 1), cells[i]));
    }
    better.held = better.held && cells[1].low > cells[0].high;
    better.measured += (better.measured.empty() ? "" : "; ") + name + " " + percent(cells[0].mean) + " and " +
                       percent(cells[1].mean) + " with c";
  }
  return {.findings = {better}, .tables = {table}, .plots = {plot}};
}

}  // namespace

Experiment bases() {
  return {.name = "bases",
          .claim = "Passing on [h ; c] in the place of h improves every base layer.",
          .method =
              "Taggers of one block over a fully connected layer, a convolution of three words, and RNN, GRU and "
              "LSTM in both directions learn, for as long, whether a word's partner is anywhere in its row; with "
              "self-attention over the states and without. Beside it, the same where the partner stands right "
              "beside the word.",
          .tests = {"partners anywhere: for each of the five base layers, the worst run with c is better than the best "
                    "one without: further apart than the seeds are"},
          .run = run_bases};
}

}  // namespace heed::lab
