// SPDX-License-Identifier: Apache-2.0
#include "cli/translate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/search_flags.h"
#include "cli/shard_flags.h"
#include "heed/base/error.h"
#include "heed/decode/translate.h"
#include "heed/folder/model_folder.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates lines of text with a model that heed train has made: from files, or from standard input.

Each line of input gives one line of output (--nbest N: N lines), in the same order, as soon as it is known: a line on a
terminal is answered at once, and lines that are there already are translated together. An empty line stays empty. A
line that is no UTF-8, or longer than the model can take, is an error with its number, after those before it; with
--skip-bad it becomes an empty line, and how many there were is said at the end. --align adds, after a tab, which word of
the source the model looked at for each word of its translation: 0-1 is the first word of the source and the second of
the translation, as spaces cut them. --sample draws translations at random instead, --nbest of them. --prefix, --require and
--forbid say what a translation begins with, must have and must not have; a longer word that begins with the tokens of a
forbidden one is forbidden, too.

--shortlist looks at the tokens of a list that heed shortlist has made alone: faster where the vocabulary is large beside the
model. Scores are then relative to the list, a little higher than without; a token that is not on it cannot come, but for
those of --prefix and --require. What a line gives does not depend on the lines around it.

--json writes an object for each line: the source, and its hypotheses with text, score (log-probability after the length
penalty), log_probability, whether each has finished by itself, its tokens, and with --align its alignment. Examples:

  echo "The cat sleeps." | heed translate --model model --beam 4
  heed translate --model model --beam 5 --nbest 5 --json sentences.txt > translations.jsonl

--shard is for a corpus that many processes work on, on any number of machines that share a folder: each is killed and
started again at will, and heed merge gives the same bytes as one process would have (docs/distributed.md):

  heed translate --model model --shard 3/8 --in corpus.txt --out work && heed merge work --out translations.txt)";

struct Command {
  decode::TranslateOptions options;
  analysis::AlignOptions align_options;
  decode::ConstraintTexts phrases;
  StorageOptions storage;
  Flags flags;
  GateFlags gates;
  LineInput input;
  ShardFlags shards;
  std::string folder;
  int threads = 0;
  bool scores = false, align = false, json = false, shortlist = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options.search, visitor);
      visit_fields(align_options, visitor);
      visit_fields(options.call.batch, visitor);
      visit_fields(storage, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    shards.settle(input);
    settle_search(flags, options.search);
    check_phrases(phrases, options.search);
    if (storage.cache != NumberFormat::f32) options.call.cache = dtype_of(storage.cache);
    if (align) options.align = align_options;
    for (const char* flag : {"--align-layer", "--align-head"}) {
      if (!align && flags.has(flag))
        throw UsageError(fmt::format("heed: {} came without --align, expected both", flag));
    }
    const decode::Translator translator(open_engine(folder, threads, models::Task::translate, storage));
    const data::TextModel& model = translator.engine().text_model();
    options.constraints = decode::constraints_of(model, phrases);
    if (shortlist) options.shortlist = open_shortlist(model);
    gates.apply(translator.engine(), options.call);
    const auto translate = [&](const Chunk& chunk, const Answer& answer) {
      options.first = chunk.first;
      translator.translate(chunk.lines, options, [&](size_t i, const decode::Translations& found) {
        answer(i, json ? json_line(json_of(chunk.lines[i], found, model.target())) : shown(found));
      });
    };
    shards.for_each_line(input, folder,
                         {.check = [&](const std::string& line) { model.encode(line); },
                          .run = translate,
                          .skipped = [&](const std::string& error) { return json ? json_error(error) : shown({}); }});
  }

 private:
  std::shared_ptr<const data::Shortlist> open_shortlist(const data::TextModel& model) const {
    if (!folder::has_shortlist(folder)) {
      throw Error(fmt::format("{}: has no shortlist, expected one that heed shortlist made", folder));
    }
    return std::make_shared<const data::Shortlist>(folder::open_shortlist(folder, model));
  }

  // A line of output for each hypothesis, --nbest of them whatever was found.
  std::string shown(const decode::Translations& found) const {
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(options.search.nbest); ++i) {
      const bool empty =
          i >= found.size() || (found[i].tokens.empty() && found[i].log_probability == 0);  // the source is
      if (!empty) {
        if (scores) text += fmt::format("{:.4f}\t", found[i].score);
        text += found[i].text;
        if (align) text += "\t" + text::to_string(found[i].alignment);
      }
      text += "\n";
    }
    return text;
  }

  Json json_of(const std::string& source, const decode::Translations& found, const text::Tokenizer& tokenizer) const {
    Json hypotheses = Json::array();
    for (const decode::Translation& one : found) {
      Json& hypothesis = hypotheses.emplace_back(json_hypothesis(one, tokenizer));
      if (!align) continue;
      Json& links = hypothesis["alignment"] = Json::array();
      for (const text::AlignmentLink& link : one.alignment) links.push_back({link.source, link.target});
    }
    return {{"source", source}, {"hypotheses", hypotheses}};
  }
};

}  // namespace

void add_translate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("translate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  command->input.add_flags(*app, "translate");
  add_threads(*app, command->threads);
  app->add_option("--prefix", command->phrases.prefix, "What every translation begins with")->type_name("TEXT");
  app->add_flag("--scores", command->scores, "Print each score before its translation");
  app->add_flag("--align", command->align, "Print which words belong together after each translation");
  app->add_flag("--shortlist", command->shortlist, "Choose among the likely tokens of the model's shortlist alone");
  app->add_flag("--json", command->json, "Write a JSON object for each line");
  add_phrases(*app, command->phrases);
  command->shards.add(*app);
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
