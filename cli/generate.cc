#include "cli/generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/decode/search.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes text with a language model that heed train has made (--preset lm-small), after a prompt or from nothing.

The best continuation, by --beam, or one drawn at random with --sample; the same seed draws the same. --nbest writes
several, a line each. Example:

  heed generate --model model --prompt "The cat" --sample --temperature 0.8 --seed 3)";

struct Command {
  decode::SearchOptions options;
  Flags flags;
  std::string folder, prompt;
  int threads = 0;
  bool scores = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    const ModelFolder opened = open_model(folder);
    opened.expect(models::Task::language);
    const std::vector<int32_t> ids = opened.encode(prompt, "--prompt");
    Tensor prefix;
    if (!ids.empty()) prefix = Tensor::of({1, std::ssize(ids)}, std::span<const int32_t>(ids));
    Parallel parallel(threads);
    Workspace workspace;
    nn::Pass pass{{parallel, workspace}};
    const auto found = decode::search(pass, *opened.model, {}, {text::kBegin, text::kEnd, text::kPad}, options, prefix);
    for (const decode::Hypothesis& one : found[0]) {
      if (scores) print("{:.4f}\t", one.score);
      print("{}\n", opened.tokenizer->decode(one.tokens));
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
