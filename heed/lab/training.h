// SPDX-License-Identifier: Apache-2.0
#pragma once
// What experiments share that train small models: tasks that are drawn without end, training, and how often a model is
// right. Ids of tokens begin at kFirstId; a label of text::kPad counts neither in the loss nor in the accuracy.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heed/data/batches.h"
#include "heed/lab/experiment.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed::lab {

inline constexpr int32_t kFirstId = text::kUnknown + 1;

// Draws a source and what is to be said of it. For a tagger: a label for each token.
using Draw = std::function<data::TokenPair(Rng&)>;

// Batches of a task without end: each is drawn by its number, so none comes twice.
class DrawnBatches final : public data::BatchSource {
 public:
  DrawnBatches(Draw draw, int64_t rows, uint64_t seed) : draw_(std::move(draw)), rows_(rows), seed_(seed) {}
  int64_t size() const override { return kEndless; }
  data::Batch at(int64_t epoch, int64_t n) const override;

 private:
  Draw draw_;
  int64_t rows_;
  uint64_t seed_;
};

// Pairs that no such batch has drawn: to test with, the same for all models of a seed.
std::vector<data::TokenPair> held_out(const Draw&, int64_t pairs, uint64_t seed);

struct TrainingOptions {
  int64_t steps{500};  // each is a step of the context
  double rate{3e-3};
  double clip{1};
  uint64_t seed{1};  // of the parameters, and of dropout
  // Shown the model before the first step, and after each of `every` steps.
  int64_t every{0};
  std::function<void(int64_t step, const models::Model&)> look{};
};
// AdamW, warm-up of a tenth of the steps, then half a cosine. Throws Cancelled.
std::shared_ptr<models::Model> trained(Context&, const models::ModelOptions&, const data::BatchSource&,
                                       const TrainingOptions&);
// The same for layers of an experiment's own, which are no model: `loss` is called for each step, from 0, with a pass
// that has a tape. `look` of the options is not called.
void fit(Context&, const ParameterStore&, const TrainingOptions&,
         const std::function<Var(nn::Pass&, int64_t step)>& loss);

// How many labels a model's first choice hits, given those before them, and how many rows it hits altogether.
struct Accuracy {
  int64_t labels = 0, right = 0;  // without the end of each row
  int64_t rows = 0, whole = 0;    // with it
  double loss = 0;                // a label, with the end, in nats

  double share() const { return labels == 0 ? 0 : static_cast<double>(right) / static_cast<double>(labels); }
  double whole_share() const { return rows == 0 ? 0 : static_cast<double>(whole) / static_cast<double>(rows); }
};
Accuracy accuracy(Context&, const models::Model&, const std::vector<data::TokenPair>&);
// Adds the labels of a batch, and logits [rows, length, V] for them; the loss is left as it is.
void add_accuracy(Accuracy&, const data::Batch&, const Tensor& logits);

}  // namespace heed::lab
