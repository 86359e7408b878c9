#include "cli/translate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/flags.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "heed/decode/translate.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates lines of text with a model that heed train has made: from files, or from standard input.

Each line of input gives one line of output (--nbest N: N lines), in the same order, as soon as it is known: a line on a
terminal is answered at once, and lines that are there already are translated together. An empty line stays empty. A
line longer than the model can take is an error with its number. --align adds, after a tab, which word of the source the model
looked at for each word of its translation: 0-1 is the first word of the source and the second of the translation, as
spaces cut them. Example:

  echo "The cat sleeps." | heed translate --model model --beam 4)";

constexpr size_t kLines = 1024;  // read at a time at most, so that sentences of one length can go together

struct Command {
  decode::TranslateOptions options;
  analysis::AlignOptions align_options;
  Flags flags;
  std::string folder;
  std::vector<std::string> files;
  int threads = 0;
  bool scores = false, align = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options.search, visitor);
      visit_fields(align_options, visitor);
      visit_fields(options.call.batch, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    if (align) options.align = align_options;
    const decode::Translator translator(open_engine(folder, threads, models::Task::translate));
    const auto check = [&](const std::string& line) { translator.engine().text_model().encode(line); };
    for_each_chunk(files, kLines, check, [&](const Lines& lines) {
      InOrder output;
      translator.translate(lines, options,
                           [&](size_t item, const decode::Translations& found) { output.add(item, shown(found)); });
    });
  }

 private:
  // A line of output for each hypothesis.
  std::string shown(const decode::Translations& found) const {
    std::string text;
    for (const decode::Translation& one : found) {
      const bool empty = one.tokens.empty() && found.size() == 1;
      if (scores && !empty) text += fmt::format("{:.4f}\t", one.score);
      text += one.text;
      if (align && !empty) text += "\t" + text::to_string(one.alignment);
      text += "\n";
    }
    return text;
  }
};

}  // namespace

void add_translate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("translate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("files", command->files, "Files to translate; none: standard input")->type_name("FILE");
  add_threads(*app, command->threads);
  app->add_flag("--scores", command->scores, "Print each score before its translation");
  app->add_flag("--align", command->align, "Print which words belong together after each translation");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
