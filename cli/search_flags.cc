// SPDX-License-Identifier: Apache-2.0
#include "cli/search_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/action.h"

namespace heed::cli {

void settle_search(const Flags& flags, decode::SearchOptions& options) {
  for (const char* flag : {"--temperature", "--top-k", "--top-p"}) {
    if (options.sample || !flags.has(flag)) continue;
    throw UsageError(fmt::format("heed: {} came without --sample, expected both: it is for drawing tokens", flag));
  }
  if (options.nbest <= options.beam) return;
  if (flags.has("--beam")) {
    throw UsageError(
        fmt::format("heed: --nbest is {} and --beam {}, expected no more results than hypotheses that are kept",
                    options.nbest, options.beam));
  }
  options.beam = options.nbest;  // with --sample: as many draws
}

void add_phrases(CLI::App& app, decode::ConstraintTexts& texts) {
  const auto add = [&](const char* flag, std::vector<std::string>& to, const char* help) {
    app.add_option(flag, to, help)
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)  // what follows is a file
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add("--require", texts.required,
      "Words that the output must have, together; may be given several times; needs --beam");
  add("--forbid", texts.forbidden, "Words that the output must not have, together; may be given several times");
}

void check_phrases(const decode::ConstraintTexts& texts, const decode::SearchOptions& options) {
  if (texts.required.empty()) return;
  if (options.sample) throw UsageError("heed: --require and --sample came, expected one of them");
  if (options.beam < 2) {
    throw UsageError(fmt::format("heed: --require came with --beam {}, expected 2 or more, better 5", options.beam));
  }
}

}  // namespace heed::cli
