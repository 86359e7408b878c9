// SPDX-License-Identifier: Apache-2.0
#include "heed/train/card.h"

#include <cmath>
#include <sstream>

#include "heed/base/count.h"
#include "heed/train/run_options.h"

namespace heed::train {
namespace {

// "`train.tsv`", "`train.en` and `train.es`"
std::string files(const std::string& tsv, const std::string& source, const std::string& target) {
  return tsv.empty() ? "`" + source + "` and `" + target + "`" : "`" + tsv + "`";
}

std::string option_table(const RunOptions& options) {
  std::string table = "| option | value |\n|---|---|\n";
  for (const OptionText& one : texts_of(options)) {
    if (!one.text.empty()) table += "| " + one.name() + " | `" + one.text + "` |\n";
  }
  return table;
}

}  // namespace

std::string model_card(const RunOptions& options, const CardFacts& facts, const RunResult& result) {
  const Evaluation& best = result.best;
  std::ostringstream card;
  card
      << "# A model of heed\n\n"
      << "- preset: " << options.preset << ", " << counted(facts.parameters, "parameter") << "\n"
      << "- data: " << files(options.data, options.source, options.target) << ": " << facts.data << "\n"
      << "- dev set: " << files(options.dev, options.dev_source, options.dev_target) << ": " << facts.dev << "\n"
      << "- tokenizer: " << counted(facts.tokens, "token") << "\n"
      << "- seed: " << options.seed << "\n"
      << "- steps: " << result.steps << " (" << result.why << "), " << std::llround(result.seconds)
      << " seconds in the last sitting\n"
      << "- dev: loss " << shortest(static_cast<float>(best.loss)) << " a token, token accuracy "
      << shortest(static_cast<float>(100 * best.accuracy)) << " %, at step " << result.best_step
      << (best.averaged > 0 ? " (the mean of the last " + std::to_string(best.averaged) + " evaluated)" : "")
      << (best.bleu >= 0 ? ", BLEU " + shortest(static_cast<float>(best.bleu)) : "") << "\n\n"
      << "The architecture is in `config.json`, the course of training in `log.jsonl` and `curve.html`. The options of "
         "the run, as in `train.json`:\n\n"
      << option_table(options);
  return card.str();
}

}  // namespace heed::train
