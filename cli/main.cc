// The command line: one file a command, errors in one line. Exit code 2 is a wrong command line, 1 is anything else.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/completion.h"
#include "cli/corpus.h"
#include "cli/embed.h"
#include "cli/evaluate.h"
#include "cli/explain.h"
#include "cli/fitting_blas.h"
#include "cli/generate.h"
#include "cli/info.h"
#include "cli/manual.h"
#include "cli/outline.h"
#include "cli/output.h"
#include "cli/score.h"
#include "cli/tag.h"
#include "cli/train.h"
#include "cli/translate.h"
#include "heed/io/nearest.h"

namespace heed::cli {

namespace {

constexpr int kFailure = 1, kUsage = 2;

std::string full_name(const CLI::App* app) {
  return app->get_parent() ? full_name(app->get_parent()) + " " + app->get_name() : app->get_name();
}

std::vector<std::string> command_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// CLI11 would say what is left over, but not what was meant.
void refuse_unknown(const CLI::App* app) {
  const std::vector<std::string> left = app->remaining(true);
  if (left.empty()) return;
  const std::string word = left.front().substr(0, left.front().find('='));
  const bool flag = word.starts_with("-");
  const std::vector<std::string> known = flag ? flag_names(app) : command_names(app);
  if (known.empty()) throw UsageError(fmt::format("{}: unexpected argument '{}'", full_name(app), word));
  const auto meant = io::nearest(word, known);
  throw UsageError(
      fmt::format("{}: unknown {} '{}', {}", full_name(app), flag ? "flag" : "command", word,
                  meant ? fmt::format("did you mean '{}'?", *meant) : fmt::format("expected one of: {}", list(known))));
}

// In a list of commands, each has one line: its own --help says the rest.
struct ShortList : CLI::Formatter {
  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_name(), summary_of(command->get_description()), 14);
    return out.str();
  }
};

void check_complete(const CLI::App& heed) {
  const CLI::App* app = &heed;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  refuse_unknown(app);
  refuse_unknown(&heed);
  const std::vector<std::string> commands = command_names(app);
  if (commands.empty()) return;
  throw UsageError(fmt::format("{}: a command is missing, expected one of: {}", full_name(app), list(commands)));
}

int run(int argc, char** argv) {
  CLI::App heed("heed: attention for CPUs, exact, fused and differentiable", "heed");
  heed.set_version_flag("--version", "heed " HEED_VERSION);
  heed.formatter(std::make_shared<ShortList>());
  heed.allow_extras();  // refused below, with a suggestion; commands inherit it
  Action action;
  add_train(heed, action);
  add_translate(heed, action);
  add_evaluate(heed, action);
  add_explain(heed, action);
  add_tag(heed, action);
  add_generate(heed, action);
  add_score(heed, action);
  add_embed(heed, action);
  add_info(heed, action);
  add_bench(heed, action);
  add_corpus(heed, action);
  add_completion(heed, action);
  add_manual(heed, action);
  try {
    heed.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return heed.exit(success);
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("heed: ") + error.what());
  }
  check_complete(heed);
  restart_with_fitting_blas(argv);
  action();
  flush_output();
  return 0;
}

}  // namespace

}  // namespace heed::cli

int main(int argc, char** argv) {
  try {
    return heed::cli::run(argc, argv);
  } catch (const heed::cli::UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return heed::cli::kUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "heed: {}\n", error.what());
    return heed::cli::kFailure;
  }
}
