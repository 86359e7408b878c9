// SPDX-License-Identifier: Apache-2.0
#include "cli/lab.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "heed/base/parallel.h"
#include "heed/lab/experiments.h"
#include "heed/lab/report.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Puts claims about attention to the test: each experiment trains or measures something small, and says whether a claim
held, by tests that were stated before.

Without a name, the experiments are listed; 'all' runs each of them. A full run has three seeds and takes some minutes;
--quick has one and takes seconds: it shows that the experiment works, and decides little. With --out, what was measured
is also written to DIR/result.json, and as a page, DIR/index.html; for all, to a folder each, with one index.
Examples:

  heed lab
  heed lab scale --quick
  heed lab all --out lab)";

struct Command {
  std::string name, out;
  lab::Options options;
  int threads = 0;

  void run() const {
    if (name.empty()) return list();
    if (name != "all") return static_cast<void>(run_one(lab::experiment_named(name), out));
    std::vector<lab::Report> reports;
    for (const lab::Experiment& one : lab::experiments()) {
      reports.push_back(run_one(one, out.empty() ? "" : out + "/" + one.name));
      write_output("\n");
      if (!out.empty()) lab::save_index(reports, out);  // after each: a run that is ended has one, too
    }
  }

 private:
  static void list() {
    for (const lab::Experiment& one : lab::experiments()) print("{:<12} {}\n", one.name, one.claim);
  }

  lab::Report run_one(const lab::Experiment& experiment, const std::string& folder) const {
    if (!folder.empty()) lab::make_folder(folder);
    write_output(lab::introduction(experiment) + "\n");
    flush_output();
    Parallel parallel(threads);
    std::optional<Progress> progress;
    lab::Context context(options, parallel, [&](int64_t done, int64_t all) {
      if (!progress) progress.emplace("steps", all);
      progress->show(done);
    });
    const auto began = std::chrono::steady_clock::now();
    lab::Result result = lab::run(experiment, context);
    progress.reset();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    lab::Report report{.experiment = experiment,
                       .options = options,
                       .result = std::move(result),
                       .threads = parallel.threads(),
                       .seconds = seconds,
                       .machine = bench::cpu_model(),
                       .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
    for (const lab::Table& table : report.result.tables) write_output(lab::to_text(table) + "\n");
    print("{}{}: {}\n", lab::findings_text(report), lab::command(report), lab::settings(report));
    if (!folder.empty()) lab::save(report, folder);
    return report;
  }
};

}  // namespace

void add_lab(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("lab", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("name", command->name, "Which experiment, or all; without: they are listed")->type_name("NAME");
  app->add_flag("--quick", command->options.quick, "Smaller, with one seed");
  app->add_option("--seed", command->options.seed, "Of the first of the runs")->type_name("N")->capture_default_str();
  app->add_option("--out", command->out, "Write what was measured into this folder")->type_name("DIR");
  add_threads(*app, command->threads);
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
