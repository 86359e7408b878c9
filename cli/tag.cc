#include "cli/tag.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/flags.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/decode/tag.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a tag for each word of its input.

The model is one that heed train has made with --preset tagger or self-attentive. Each line of standard input gives a line
of tags with spaces between them; an empty line stays empty. Example:

  heed corpus --pairs 100000 --task tag --split corpus
  heed train --data corpus/train.tsv --dev corpus/dev.tsv --preset tagger --out model --steps 500
  echo "The old birds slept ." | heed tag --model model)";

struct Command {
  std::string folder;
  int threads = 0;
  bool words = false;

  void run() const {
    const ModelFolder opened = open_model(folder);
    opened.expect(models::Task::tag);
    Parallel parallel(threads);
    Workspace workspace;
    nn::Pass pass{{parallel, workspace}};
    int64_t number = 0;
    for (std::string line; std::getline(std::cin, line);) {
      const std::vector<int32_t> ids = opened.encode(line, fmt::format("standard input:{}", ++number));
      std::string text;
      if (!ids.empty()) {
        const auto tags = decode::tag(pass, *opened.model, {&ids, 1});
        for (size_t i = 0; i < ids.size(); ++i) {
          text += i ? " " : "";
          if (words) text += opened.tokenizer->decode({&ids[i], 1}) + "/";
          text += opened.tags->decode({&tags[0][i], 1});
        }
      }
      print("{}\n", text);
      flush_output();
    }
  }
};

}  // namespace

void add_tag(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("tag", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_flag("--words", command->words, "Print word/TAG instead of the tag alone");
  add_threads(*app, command->threads);
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
