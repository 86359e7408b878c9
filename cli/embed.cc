#include "cli/embed.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "heed/decode/embed.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a vector for each line of text: the states of a model's encoder, pooled.

Each line of the files, or of standard input, gives a line of numbers with spaces between them. Any model will do; of a
language model it is its own states. Example:

  echo "The cat sleeps." | heed embed --model model --normalize)";

constexpr size_t kLines = 256;  // read at a time at most

struct Command {
  decode::EmbedOptions options;
  Flags flags;
  std::string folder;
  std::vector<std::string> files;
  int threads = 0;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    const decode::Embedder embedder(open_engine(folder, threads));
    const auto check = [&](const std::string& line) { embedder.engine().text_model().encode(line); };
    for_each_chunk(files, kLines, check, [&](const Lines& lines) {
      InOrder output;
      embedder.embed(lines, options, [&](size_t item, const decode::Embedding& found) {
        output.add(item, fmt::format("{}\n", fmt::join(found.vector, " ")));
      });
    });
  }
};

}  // namespace

void add_embed(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("embed", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("files", command->files, "Files to embed; none: standard input")->type_name("FILE");
  add_threads(*app, command->threads);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
