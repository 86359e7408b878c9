#include "cli/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/open.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/decode/generate.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes text with a language model that heed train has made (--preset lm-small), after a prompt or from nothing.

The best continuation, by --beam, or one drawn at random with --sample; the same seed draws the same. --nbest writes
several, a line each. Example:

  heed generate --model model --prompt "The cat" --sample --temperature 0.8 --seed 3)";

struct Command {
  decode::GenerateOptions options;
  Flags flags;
  std::string folder, prompt;
  int threads = 0;
  bool scores = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options.search, visitor); };
  }

  void run() {
    flags.apply(fields());
    const decode::Generator generator(open_engine(folder, threads, models::Task::language));
    try {
      generator.engine().text_model().encode(prompt);
    } catch (const Error& error) {
      throw Error(std::string("--prompt: ") + error.what());
    }
    const auto found = generator.generate(std::span(&prompt, 1), options);
    for (const decode::Generation& one : found.front()) {
      if (scores) print("{:.4f}\t", one.score);
      print("{}\n", one.text);
    }
  }
};

}  // namespace

void add_generate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("generate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("--prompt", command->prompt, "What the text begins with")->type_name("TEXT");
  add_threads(*app, command->threads);
  app->add_flag("--scores", command->scores, "Print each score before its text");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
