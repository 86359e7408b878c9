#include "cli/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "heed/base/error.h"
#include "heed/decode/score.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Says how likely a model takes given output to be.

Each line of the files, or of standard input, is a source and a target with a tab between them; for a language model,
text alone; for a tagger, words and their tags. The answer is the natural log-probability of the target and its end, the
number of its tokens, and with --tokens the log-probability of each. Example:

  printf 'The cat sleeps.\tEl gato duerme.\n' | heed score --model model)";

constexpr size_t kLines = 256;  // read at a time at most

struct Command {
  std::string folder;
  std::vector<std::string> files;
  int threads = 0;
  bool tokens = false;

  void run() const {
    const decode::Scorer scorer(open_engine(folder, threads));
    const data::TextModel& model = scorer.engine().text_model();
    const bool language = model.task() == models::Task::language;
    const auto pair_of = [&](const std::string& line) -> text::Pair {
      const size_t tab = line.find('\t');
      if (language) return {"", line};
      if (tab == std::string::npos) throw Error("has no tab, expected one between source and target");
      return {line.substr(0, tab), line.substr(tab + 1)};
    };
    const auto check = [&](const std::string& line) {
      const text::Pair pair = pair_of(line);
      model.encode(pair.source);
      model.check_length(std::ssize(model.target().encode(pair.target)));
    };
    for_each_chunk(files, kLines, check, [&](const Lines& lines) {
      std::vector<text::Pair> pairs;
      for (const std::string& line : lines) pairs.push_back(pair_of(line));
      InOrder output;
      scorer.score(pairs, {}, [&](size_t item, const decode::Score& score) {
        std::string text = fmt::format("{:.4f}\t{}", score.log_probability(), score.tokens());
        if (tokens) text += fmt::format("\t{:.4f}", fmt::join(score.log_probabilities, " "));
        output.add(item, text + "\n");
      });
    });
  }
};

}  // namespace

void add_score(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("score", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("files", command->files, "Files to score; none: standard input")->type_name("FILE");
  app->add_flag("--tokens", command->tokens, "Also the log-probability of each token");
  add_threads(*app, command->threads);
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
