#include "cli/tag.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "heed/decode/tag.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a tag for each word of its input.

The model is one that heed train has made with --preset tagger or self-attentive. Each line of the
files, or of standard input, gives a line of tags with spaces between them; an empty line stays empty. Example:

  heed corpus --pairs 100000 --task tag --split corpus
  heed train --data corpus/train.tsv --dev corpus/dev.tsv --preset tagger --out model --steps 500
  echo "The old birds slept ." | heed tag --model model)";

constexpr size_t kLines = 256;  // read at a time at most

struct Command {
  std::string folder;
  std::vector<std::string> files;
  int threads = 0;
  bool words = false;

  void run() const {
    const decode::Tagger tagger(open_engine(folder, threads, models::Task::tag));
    const auto check = [&](const std::string& line) { tagger.engine().text_model().encode(line); };
    for_each_chunk(files, kLines, check, [&](const Lines& lines) {
      InOrder output;
      tagger.tag(lines, {}, [&](size_t item, const decode::Tagging& found) { output.add(item, shown(found)); });
    });
  }

 private:
  std::string shown(const decode::Tagging& found) const {
    std::string text;
    for (const decode::TaggedToken& one : found) {
      text += text.empty() ? "" : " ";
      if (words) text += one.token + "/";
      text += one.tag;
    }
    return text + "\n";
  }
};

}  // namespace

void add_tag(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("tag", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("files", command->files, "Files to tag; none: standard input")->type_name("FILE");
  app->add_flag("--words", command->words, "Print word/TAG instead of the tag alone");
  add_threads(*app, command->threads);
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
