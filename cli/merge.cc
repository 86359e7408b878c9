// SPDX-License-Identifier: Apache-2.0
#include "cli/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>

#include "cli/lines.h"
#include "cli/output.h"
#include "heed/base/count.h"
#include "heed/shard/merge.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Puts the shards of a corpus together: the output that the command would have written without --shard.

The folder is the --out of heed translate, tag, embed or score with --shard. Every shard has to be there, of one run, and
with the bytes that were written, which their sums tell; otherwise it is an error that names the shards to work on again,
and nothing is written. Example:

  for i in 1 2 3 4; do heed translate --model model --shard $i/4 --in corpus.txt --out work & done; wait
  heed merge work --out translations.txt)";

struct Command {
  std::string folder, out;

  void run() const {
    if (folder.empty()) throw UsageError("heed: the folder is missing, expected the --out of a command with --shard");
    if (out.empty()) throw UsageError("heed: --out is missing, expected a file, or - for standard output");
    const shard::Merge merge(folder);
    if (out == "-") {
      merge.write([](std::span<const std::byte>) {});  // a broken one is found before anything is written
      merge.write([](std::span<const std::byte> bytes) {
        write_output({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      });
    } else {
      shard::merge_to(merge, out);
      print("{}: {} of {}\n", out, counted(merge.lines(), "line"), counted(merge.shards(), "shard"));
    }
    report_skipped({.lines = merge.skipped(), .first_error = merge.first_error()}, merge.lines());
  }
};

}  // namespace

void add_merge(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("merge", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("folder", command->folder, "Folder of the shards")->type_name("DIR");
  app->add_option("--out", command->out, "File to write; - is standard output")->type_name("FILE");
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
