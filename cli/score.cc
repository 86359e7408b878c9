// SPDX-License-Identifier: Apache-2.0
#include "cli/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/shard_flags.h"
#include "heed/base/error.h"
#include "heed/decode/score.h"
#include "heed/text/utf8.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Says how likely a model takes given output to be (forced decoding).

Each line of the files, or of standard input, is a source and a target with a tab between them; for a language model,
text alone; for a tagger, words and their tags. The answer is the natural log-probability of the target and its end, the
number of these tokens, the perplexity of a token, and with --tokens the log-probability of each. An empty line stays
empty. A line that cannot be scored is an error with its number, after those before it; with --skip-bad it becomes an
empty line.

--json writes an object for each line: source and target, log_probability, perplexity, how many tokens the model would
have chosen itself (correct), the tokens and their log_probabilities. Example:

  printf 'The cat sleeps.\tEl gato duerme.\n' | heed score --model model

--shard is for a corpus that many processes work on; heed translate --help and docs/distributed.md say more.)";

struct Command {
  decode::ScoreOptions options;
  Flags flags;
  GateFlags gates;
  LineInput input;
  ShardFlags shards;
  std::string folder;
  int threads = 0;
  bool tokens = false, json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    shards.settle(input);
    const decode::Scorer scorer(open_engine(folder, threads));
    gates.apply(scorer.engine(), options.call);
    const data::TextModel& model = scorer.engine().text_model();
    const auto check = [&](const std::string& line) {
      if (!is_empty(line, model.task())) scorer.check(pair_of(line, model.task()));
    };
    const auto score = [&](const Chunk& chunk, const Answer& answer) {
      std::vector<text::Pair> pairs;
      std::vector<size_t> numbers;
      for (size_t i = 0; i < chunk.lines.size(); ++i) {
        if (is_empty(chunk.lines[i], model.task())) {
          answer(i, json ? json_line(json_of({}, {}, model)) : "\n");
        } else {
          pairs.push_back(pair_of(chunk.lines[i], model.task()));
          numbers.push_back(i);
        }
      }
      scorer.score(pairs, options, [&](size_t i, const decode::Score& found) {
        answer(numbers[i], json ? json_line(json_of(pairs[i], found, model)) : shown(found));
      });
    };
    shards.for_each_line(input, folder, {.check = check, .run = score, .skipped = [&](const std::string& error) {
                                           return json ? json_error(error) : "\n";
                                         }});
  }

 private:
  // Of a language model, no text is text as well: it ends at once.
  static bool is_empty(const std::string& line, models::Task task) {
    return task != models::Task::language && text::squeeze_spaces(line).empty();
  }

  static text::Pair pair_of(const std::string& line, models::Task task) {
    if (task == models::Task::language) return {"", line};
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) throw Error("has no tab, expected one between source and target");
    return {line.substr(0, tab), line.substr(tab + 1)};
  }

  std::string shown(const decode::Score& score) const {
    std::string text = fmt::format("{:.4f}\t{}\t{:.4f}", score.log_probability(), score.tokens(), score.perplexity());
    if (tokens) text += fmt::format("\t{:.4f}", fmt::join(score.log_probabilities, " "));
    return text + "\n";
  }

  static Json json_of(const text::Pair& pair, const decode::Score& score, const data::TextModel& model) {
    std::vector<int32_t> ids = model.target().encode(pair.target);
    if (std::ssize(ids) < score.tokens()) ids.push_back(model.special().end);
    Json json = Json::object();
    if (model.task() != models::Task::language) json["source"] = pair.source;
    json["target"] = pair.target;
    json["log_probability"] = score.log_probability();
    json["perplexity"] = score.perplexity();
    json["correct"] = score.correct;
    json["tokens"] = json_pieces(model.target(), ids);
    json["log_probabilities"] = score.log_probabilities;
    return json;
  }
};

}  // namespace

void add_score(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("score", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  command->input.add_flags(*app, "score");
  app->add_flag("--tokens", command->tokens, "Also the log-probability of each token");
  app->add_flag("--json", command->json, "Write a JSON object for each line");
  add_threads(*app, command->threads);
  command->shards.add(*app);
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
