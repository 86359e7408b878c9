// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/lens.h"

#include <algorithm>

namespace heed::analysis {
namespace {

// Reads hidden states out as they come. The pass inside has no observer: it is no part of what is observed.
class Lens final : public nn::ObserverBeside {
 public:
  Lens(const nn::Pass& pass, const Question& question)
      : ObserverBeside(pass.observer), pass_(pass), question_(question) {
    pass_.tape = nullptr;
    pass_.observer = nullptr;
  }

  void hidden(const nn::HiddenEvent& event) override {
    ObserverBeside::hidden(event);
    if (event.side != question_.output_side()) return;
    const Tensor logits = question_.model().readout(pass_, event.states).value();
    LensLayer layer{event.path, question_.value_of(pass_, logits).value().item(), {}};
    if (const auto position = question_.target().position) layer.first_choice = strongest(logits, *position);
    layers_.push_back(layer);
  }
  const std::vector<LensLayer>& layers() const { return layers_; }

 private:
  static int32_t strongest(const Tensor& logits, int64_t position) {
    return with_float("lens", logits.dtype(), [&](auto type) {
      const auto* row = logits.data<decltype(type)>() + position * logits.shape(2);
      return static_cast<int32_t>(std::max_element(row, row + logits.shape(2)) - row);
    });
  }

  nn::Pass pass_;
  const Question& question_;
  std::vector<LensLayer> layers_;
};

}  // namespace

std::vector<LensLayer> logit_lens(const nn::Pass& pass, const Question& question) {
  Lens lens(pass, question);
  nn::Pass own = pass;
  own.observer = &lens;
  question.measure(own);
  // Families without hidden() events have no readout either: it says so.
  if (lens.layers().empty()) question.model().readout(own, {});
  return lens.layers();
}

}  // namespace heed::analysis
