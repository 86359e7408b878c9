// SPDX-License-Identifier: Apache-2.0
#include "cli/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/search_flags.h"
#include "cli/trace_flag.h"
#include "heed/base/error.h"
#include "heed/decode/generate.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes text with a language model that heed train has made (--preset lm-small), after a prompt or from nothing.

The best continuation, by --beam, or one drawn at random with --sample; the same seed draws the same. --nbest writes
several, a line each. The prompt stands before its continuation as it came. Files have a prompt on each line, and each
gives its lines in their order. --json writes an object for each prompt, with text, score, log_probability, finished and
tokens of each continuation. --trace writes, for one --prompt, all that was recorded while it was gone on with, and --out a page
that shows it. Examples:

  heed generate --model model --prompt "The cat" --sample --temperature 0.8 --seed 3
  heed generate --model model --sample --nbest 5 --json prompts.txt)";

struct Command {
  decode::GenerateOptions options;
  decode::ConstraintTexts phrases;
  StorageOptions storage;
  Flags flags;
  TraceFlag trace;
  GateFlags gates;
  LineInput input;
  std::string folder, prompt;
  int threads = 0;
  bool scores = false, json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options.search, visitor);
      visit_fields(options.call.batch, visitor);
      visit_fields(storage, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    settle_search(flags, options.search);
    check_phrases(phrases, options.search);
    trace.check(input.files.empty() ? 1 : input.files.size() + 1, gates.given());
    if (storage.cache != NumberFormat::f32) options.call.cache = dtype_of(storage.cache);
    const decode::Generator generator(open_engine(folder, threads, models::Task::language, storage));
    options.constraints = decode::constraints_of(generator.engine().text_model(), phrases);
    gates.apply(generator.engine(), options.call);
    if (!input.files.empty() && !prompt.empty()) {
      throw UsageError("heed: --prompt and files came, expected one of them: files have a prompt on each line");
    }
    if (input.files.empty()) return write_one(generator);
    check_files();
    const auto generate = [&](const Chunk& chunk, const Answer& answer) {
      options.first = chunk.first;
      generator.generate(chunk.lines, options, [&](size_t i, const decode::Generations& found) {
        answer(i, shown(generator, chunk.lines[i], found));
      });
    };
    for_each_line(input, {.check = [&](const std::string& line) { check(generator, line); },
                          .run = generate,
                          .skipped =
                              [&](const std::string& error) {
                                return json ? json_error(error)
                                            : std::string(static_cast<size_t>(options.search.nbest), '\n');
                              }});
  }

 private:
  void check_files() const {
    for (const std::string& file : input.files) {
      if (file == "-" || std::filesystem::exists(file)) continue;
      throw Error(file + ": cannot read: No such file or directory; a prompt itself comes with --prompt");
    }
  }

  // One token is left for what follows.
  static void check(const decode::Generator& generator, const std::string& prompt) {
    const data::TextModel& model = generator.engine().text_model();
    model.check_length(std::ssize(model.encode(prompt)) + 1);
  }

  void write_one(const decode::Generator& generator) const {
    try {
      check(generator, prompt);
    } catch (const Error& error) {
      throw Error(std::string("--prompt: ") + error.what());
    }
    write_output(shown(generator, prompt, generator.generate(std::span(&prompt, 1), options).front()));
    trace.write(generator.engine(), prompt, {.search = options.search, .constraints = options.constraints});
  }

  std::string shown(const decode::Generator& generator, const std::string& begin,
                    const decode::Generations& found) const {
    std::string text;
    Json all = Json::array();
    for (const decode::Generation& one : found) {
      if (json) all.push_back(json_hypothesis(one, generator.engine().text_model().target()));
      if (scores) text += fmt::format("{:.4f}\t", one.score);
      text += one.text + "\n";
    }
    return json ? json_line({{"prompt", begin}, {"continuations", all}}) : text;
  }
};

}  // namespace

void add_generate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("generate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("--prompt", command->prompt, "What the text begins with")->type_name("TEXT");
  app->add_option("files", command->input.files, "Files of prompts, a line each; - is standard input")
      ->type_name("FILE");
  app->add_flag("--skip-bad", command->input.skip_bad, "Go on after a prompt that is no UTF-8 or too long");
  add_threads(*app, command->threads);
  app->add_flag("--scores", command->scores, "Print each score before its text");
  app->add_flag("--json", command->json, "Write a JSON object for each prompt");
  add_phrases(*app, command->phrases);
  command->trace.add(*app);
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
