// SPDX-License-Identifier: Apache-2.0
#include "cli/tag.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/shard_flags.h"
#include "cli/trace_flag.h"
#include "heed/decode/tag.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a tag for each word of its input.

The model is one that heed train has made with --preset tagger or self-attentive. Each line of the
files, or of standard input, gives a line of tags with spaces between them; an empty line stays empty. A line that is no
UTF-8, or longer than the model can take, is an error with its number, after those before it; with --skip-bad it becomes
an empty line. --json writes an object for each line: its text, and its words, each with its tag and the tag's
log_probability. --trace writes, for one line, all that was recorded while it was tagged, and --out a page that
shows it; with --shard, --out is the folder of the shards. Example:

  heed corpus --pairs 100000 --task tag --split corpus
  heed train --data corpus/train.tsv --dev corpus/dev.tsv --preset tagger --out model --steps 500
  echo "The old birds slept ." | heed tag --model model

--shard is for a corpus that many processes work on; heed translate --help and docs/distributed.md say more.)";

struct Command {
  decode::TagOptions options;
  Flags flags;
  TraceFlag trace;
  GateFlags gates;
  LineInput input;
  ShardFlags shards;
  std::string folder;
  int threads = 0;
  bool words = false, json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    shards.settle(input);
    if (shards.given() && trace.given()) throw UsageError("heed: --trace and --shard came, expected one of them");
    const decode::Tagger tagger(open_engine(folder, threads, models::Task::tag));
    gates.apply(tagger.engine(), options.call);
    trace.check(1, gates.given());  // lines are counted as they come
    if (trace.given()) return write_traced(tagger);
    const auto tag = [&](const Chunk& chunk, const Answer& answer) {
      tagger.tag(chunk.lines, options, [&](size_t i, const decode::Tagging& found) {
        answer(i, json ? json_line(json_of(chunk.lines[i], found)) : shown(found));
      });
    };
    shards.for_each_line(input, folder,
                         {.check = [&](const std::string& line) { tagger.engine().text_model().encode(line); },
                          .run = tag,
                          .skipped = [&](const std::string& error) { return json ? json_error(error) : "\n"; }});
  }

 private:
  void write_traced(const decode::Tagger& tagger) const {
    Lines lines;
    for (const std::string& file : input.files.empty() ? Lines{"-"} : input.files) {
      for (std::string& line : read_lines(file)) lines.push_back(std::move(line));
    }
    trace.check(lines.size(), gates.given());
    const decode::Tagging found = tagger.tag(lines.front(), options);
    write_output(json ? json_line(json_of(lines.front(), found)) : shown(found));
    trace.write(tagger.engine(), lines.front());
  }

  std::string shown(const decode::Tagging& found) const {
    std::string text;
    for (const decode::TaggedToken& one : found) {
      text += text.empty() ? "" : " ";
      if (words) text += one.token + "/";
      text += one.tag;
    }
    return text + "\n";
  }

  static Json json_of(const std::string& line, const decode::Tagging& found) {
    Json words = Json::array();
    for (const decode::TaggedToken& one : found) {
      words.push_back({{"word", one.token}, {"tag", one.tag}, {"log_probability", one.log_probability}});
    }
    return {{"text", line}, {"words", words}};
  }
};

}  // namespace

void add_tag(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("tag", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  command->input.add_flags(*app, "tag");
  app->add_flag("--words", command->words, "Print word/TAG instead of the tag alone");
  app->add_flag("--json", command->json, "Write a JSON object for each line");
  add_threads(*app, command->threads);
  command->trace.add(*app);
  command->shards.add(*app, &command->trace.page);
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
