// SPDX-License-Identifier: Apache-2.0
#include "heed/train/card.h"

#include <cmath>
#include <sstream>

namespace heed::train {

std::string model_card(const RunOptions& options, const CardFacts& facts, const RunResult& result) {
  const Evaluation& best = result.best;
  std::ostringstream card;
  card << "# A model of heed\n\n"
       << "- preset: " << options.preset << ", " << facts.parameters << " parameters\n"
       << "- data: " << facts.pairs << " pairs; tokenizer of " << facts.tokens << " tokens\n"
       << "- seed: " << options.seed << "\n"
       << "- steps: " << result.steps << " (" << result.why << "), " << std::llround(result.seconds)
       << " seconds in the last sitting\n"
       << "- dev: loss " << shortest(static_cast<float>(best.loss)) << " a token, token accuracy "
       << shortest(static_cast<float>(100 * best.accuracy)) << " %, at step " << result.best_step
       << (best.averaged > 0 ? " (the mean of the last " + std::to_string(best.averaged) + " evaluated)" : "")
       << (best.bleu >= 0 ? ", BLEU " + shortest(static_cast<float>(best.bleu)) : "") << "\n\n"
       << "Every option is in `train.json`, the architecture in `config.json`, the course of training in "
          "`log.jsonl` and `curve.html`.\n";
  return card.str();
}

}  // namespace heed::train
