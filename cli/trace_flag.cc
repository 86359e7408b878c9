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
      ->allow_extra_args(false)  // what follows is a text
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void TraceFlag::check(size_t texts, bool gated) const {
  if (!given() && !heads.empty()) throw UsageError("heed: --trace-head came without --trace, expected both");
  if (given() && texts != 1) {
    throw UsageError(fmt::format("heed: {} came with {} texts, expected one: {}", file.empty() ? "--out" : "--trace",
                                 texts, file.empty() ? "a page begins with one text" : "a trace is of one text"));
  }
  if (given() && gated) {
    throw UsageError(
        fmt::format("heed: --gate and {} came, expected one of them: a trace is of the model as it is, and --out of "
                    "explain shows both",
                    file.empty() ? "--out" : "--trace"));
  }
}

trace::RecordOptions TraceFlag::options(trace::RecordOptions options) const {
  options.recorder.tiles = heads;
  options.search.nbest = std::max(options.search.nbest, options.search.beam);  // the whole beam, as it ended
  return options;
}

void TraceFlag::save(const std::vector<trace::Trace>& traces) const {
  if (!file.empty()) trace::save(file, traces.front());
  if (!page.empty()) trace::save_page(page, traces);
}

void TraceFlag::write(const decode::Engine& engine, const std::string& text,
                      const trace::RecordOptions& recorded) const {
  if (given()) save({trace::record(engine, text, options(recorded))});
}

}  // namespace heed::cli
