// SPDX-License-Identifier: Apache-2.0
#include "cli/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/action.h"
#include "cli/output.h"
#include "heed/folder/model_folder.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Writes a model folder with smaller weights, for inference: the same that --weights int8 makes when a model is opened.

Matrices of linear layers become integers of 8 bits, each row with its scale; embeddings, norms and the matrices of
recurrent layers stay as they are. Tokenizers, shortlist and model card come along. Every command that runs a model
takes the folder; it cannot be trained. Compare translations with those before, as rounding may change some. Example:

  heed convert --weights int8 model model-int8)";

struct Command {
  std::string weights, from, to;

  void run() const {
    if (weights != "int8") {
      throw UsageError(fmt::format("heed: --weights is '{}', expected int8: what to convert to", weights));
    }
    if (from.empty() || to.empty()) {
      throw UsageError("heed: two folders are expected: of the model, and to be written");
    }
    folder::save_int8(from, to);
    const auto bytes = [](const std::string& folder) {
      return static_cast<double>(std::filesystem::file_size(folder::Layout(folder).parameters())) / 1e6;
    };
    print("{}: {:.1f} MB of parameters, before {:.1f} MB\n", to, bytes(to), bytes(from));
  }
};

}  // namespace

void add_convert(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("convert", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--weights", command->weights, "What weights become: int8")->type_name("FORMAT");
  app->add_option("in", command->from, "Folder of the model")->type_name("DIR");
  app->add_option("out", command->to, "Folder to write")->type_name("DIR");
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
