// SPDX-License-Identifier: Apache-2.0
// The command line: one file a command, errors in one line. Exit code 2 is a wrong command line, 128 and more a
// signal that the command has stopped for, 1 is anything else.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/bench.h"
#include "cli/completion.h"
#include "cli/convert.h"
#include "cli/corpus.h"
#include "cli/embed.h"
#include "cli/evaluate.h"
#include "cli/explain.h"
#include "cli/generate.h"
#include "cli/info.h"
#include "cli/interrupts.h"
#include "cli/lab.h"
#include "cli/manual.h"
#include "cli/merge.h"
#include "cli/outline.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/score.h"
#include "cli/shortlist.h"
#include "cli/tag.h"
#include "cli/train.h"
#include "cli/translate.h"
#include "heed/io/nearest.h"

namespace heed::cli {

namespace {

constexpr int kFailure = 1, kUsage = 2, kClosedPipe = 141;  // the last as if SIGPIPE had ended it

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
  const std::string hint = meant                          ? fmt::format("did you mean '{}'?", *meant)
                           : !flag                        ? fmt::format("expected one of: {}", list(known))
                           : app->get_parent() == nullptr ? "expected a command before its flags"
                                                          : fmt::format("{} --help has those it knows", full_name(app));
  throw UsageError(fmt::format("{}: unknown {} '{}', {}", full_name(app), flag ? "flag" : "command", word, hint));
}

// What CLI11 says of a value, in our words.
std::string message_of(const CLI::ParseError& error) {
  const std::string text = error.what(), flag = text.substr(0, text.find(": "));
  if (error.get_name() == "ArgumentMismatch" && text.ends_with(" missing")) {  // "--model: 1 required DIR missing"
    constexpr std::string_view kBefore = ": 1 required ", kAfter = " missing";
    const size_t begin = flag.size() + kBefore.size();
    return fmt::format("{} came without a value, expected {}", flag,
                       text.substr(begin, text.size() - kAfter.size() - begin));
  }
  if (error.get_name() == "ArgumentMismatch") return flag + " came more than once, expected it once";
  if (error.get_name() == "ConversionError") {  // "Could not convert: --scores = maybe"
    const size_t name = text.find("--"), equals = text.find(" = ");
    if (name != text.npos && equals != text.npos) {
      return fmt::format("{} came with '{}', expected {} alone", text.substr(name, equals - name),
                         text.substr(equals + 3), text.substr(name, equals - name));
    }
  }
  return text;
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

// The command line as it is parsed: 'heed help translate' is 'heed translate --help', 'heed version' is 'heed
// --version'.
std::vector<const char*> understood(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc == 2 && std::string_view(argv[1]) == "version") words[1] = "--version";
  if (argc >= 2 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  return words;
}

int run(int argc, char** argv) {
  CLI::App heed("heed: attention for CPUs, exact, fused and differentiable", "heed");
  heed.set_version_flag("--version", "heed " HEED_VERSION);
  heed.formatter(std::make_shared<ShortList>());
  heed.allow_extras();            // an error below, with a suggestion; commands inherit it
  heed.require_subcommand(0, 1);  // a folder may have a command's name: heed info corpus
  Action action;
  add_train(heed, action);
  add_translate(heed, action);
  add_evaluate(heed, action);
  add_explain(heed, action);
  add_tag(heed, action);
  add_generate(heed, action);
  add_score(heed, action);
  add_embed(heed, action);
  add_merge(heed, action);
  add_shortlist(heed, action);
  add_convert(heed, action);
  add_info(heed, action);
  add_bench(heed, action);
  add_lab(heed, action);
  add_corpus(heed, action);
  add_completion(heed, action);
  add_manual(heed, action);
  try {
    const std::vector<const char*> words = understood(argc, argv);
    heed.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& success) {  // --help, --version
    return heed.exit(success);
  } catch (const CLI::ParseError& error) {
    throw UsageError("heed: " + message_of(error));
  }
  check_complete(heed);
  action();
  flush_output();
  return 0;
}

// What is known of the place where memory ended: "heed train: out of memory".
int out_of_memory(int argc, char** argv) {
  fmt::print(stderr, "heed{}{}: out of memory\n", argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
  return kFailure;
}

}  // namespace

}  // namespace heed::cli

int main(int argc, char** argv) {
  try {
    return heed::cli::run(argc, argv);
  } catch (const heed::cli::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const heed::cli::OutputClosed&) {
    return heed::cli::kClosedPipe;
  } catch (const heed::cli::UsageError& error) {  // all ranks have the same command line: one tells it
    if (heed::cli::rank_of_launch() == 0) fmt::print(stderr, "{}\n", error.what());
    return heed::cli::kUsage;
  } catch (const std::bad_alloc&) {
    return heed::cli::out_of_memory(argc, argv);
  } catch (const std::length_error&) {  // more than a container can hold at all
    return heed::cli::out_of_memory(argc, argv);
  } catch (const std::system_error& error) {  // of a thread: there is no memory for its stack, or a limit of processes
    const bool of_thread = error.code() == std::errc::resource_unavailable_try_again;
    fmt::print(stderr, "heed: {}{}\n", of_thread ? "cannot start a thread: " : "", error.what());
    return heed::cli::kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "heed: {}\n", error.what());
    return heed::cli::kFailure;
  }
}
