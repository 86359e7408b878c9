// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_flag.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/action.h"
#include "heed/trace/page.h"
#include "heed/trace/trace_file.h"

namespace heed::cli {

void TraceFlag::add(CLI::App& app) {
  app.add_option("--trace", file, "Also write what every head did for this one text, as JSON (docs/trace.md)")
      ->type_name("FILE");
  app.add_option("--out", page, "Also write a page that shows it: one HTML file, for a browser (docs/page.md)")
      ->type_name("FILE");
  app.add_option("--trace-head", heads, "A head of a text above 512 tokens that is kept whole: decoder.0.self.1")
      ->type_name("LAYER.HEAD")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void TraceFlag::check(size_t texts) const {
  if (!given() && !heads.empty()) throw UsageError("heed: --trace-head came without --trace, expected both");
  if (given() && texts != 1) {
    throw UsageError(fmt::format("heed: {} came with {} texts, expected one: {}", file.empty() ? "--out" : "--trace",
                                 texts, file.empty() ? "a page begins with one text" : "a trace is of one text"));
  }
}

void TraceFlag::write(const decode::Engine& engine, const std::vector<std::string>& texts,
                      trace::RecordOptions options) const {
  if (!given()) return;
  options.recorder.tiles = heads;
  options.search.nbest = std::max(options.search.nbest, options.search.beam);  // the whole beam, as it ended
  std::vector<trace::Trace> traces;
  for (const std::string& text : texts) traces.push_back(trace::record(engine, text, options));
  if (!file.empty()) trace::save(file, traces.front());
  if (!page.empty()) trace::save_page(page, traces);
}

}  // namespace heed::cli
