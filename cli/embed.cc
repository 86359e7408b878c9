// SPDX-License-Identifier: Apache-2.0
#include "cli/embed.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/shard_flags.h"
#include "heed/decode/embed.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a vector for each line of text: the states of a model's encoder, pooled.

Each line of the files, or of standard input, gives a line of numbers with spaces between them. Any model will do; of a
language model it is its own states. An empty line gives the vector of a sentence that ends at once. A line that is no
UTF-8, or longer than the model can take, is an error with its number, after those before it; with --skip-bad it becomes
an empty line. Example:

  echo "The cat sleeps." | heed embed --model model --normalize

--shard is for a corpus that many processes work on; heed translate --help and docs/distributed.md say more.)";

struct Command {
  decode::EmbedOptions options;
  Flags flags;
  GateFlags gates;
  LineInput input;
  ShardFlags shards;
  std::string folder;
  int threads = 0;
  bool json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    shards.settle(input);
    const decode::Embedder embedder(open_engine(folder, threads));
    gates.apply(embedder.engine(), options.call);
    const auto embed = [&](const Chunk& chunk, const Answer& answer) {
      embedder.embed(chunk.lines, options, [&](size_t i, const decode::Embedding& found) {
        answer(i, json ? json_line({{"text", chunk.lines[i]}, {"vector", found.vector}})
                       : fmt::format("{}\n", fmt::join(found.vector, " ")));
      });
    };
    shards.for_each_line(input, folder,
                         {.check = [&](const std::string& line) { embedder.engine().text_model().encode(line); },
                          .run = embed,
                          .skipped = [&](const std::string& error) { return json ? json_error(error) : "\n"; }});
  }
};

}  // namespace

void add_embed(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("embed", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  command->input.add_flags(*app, "embed");
  app->add_flag("--json", command->json, "Write a JSON object for each line: its text and its vector");
  add_threads(*app, command->threads);
  command->shards.add(*app);
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
