// SPDX-License-Identifier: Apache-2.0
#include "cli/shortlist.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/elapsed.h"
#include "cli/flags.h"
#include "cli/open.h"
#include "cli/output.h"
#include "heed/base/count.h"
#include "heed/data/shortlist.h"
#include "heed/folder/model_folder.h"
#include "heed/text/corpus.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Makes a model's shortlist: which target tokens are likely for each source token.

heed translate --shortlist then chooses among the tokens of a line's own list, instead of the whole vocabulary: the --best
tokens for each of its source tokens, and the --frequent ones, which every line has. That pays where the vocabulary is large
beside the model, tens of thousands of tokens over a few hundred numbers of width; a small vocabulary is faster without.
A token outside the list cannot come, so compare translations with and without.

The list is learnt from the pairs that the model was trained on, by IBM model 1, and kept in the model's folder. That is done
once, by one thread, in time that grows with source length times target length of each pair; it takes memory for the tokens of
all pairs, and for at most --candidates target tokens of each source token. Examples:

  heed shortlist --model model --data corpus/train.tsv
  heed translate --model model --shortlist < sentences.txt)";

// The pairs to learn from, named as heed train names them.
struct DataOptions {
  std::string data, source, target;
  int64_t source_column{1}, target_column{2};

  static void describe(DataOptions& o, auto&& field) {
    field("data", o.data, "pairs to learn from: TSV, a pair a line; gzip or not; -: standard input");
    field("source", o.source, "in place of data: sentences, one a line");
    field("target", o.target, "and their translations, line by line");
    field("source_column", o.source_column, "of the TSV file, from 1", Range::at_least(1));
    field("target_column", o.target_column, "of the TSV file, from 1", Range::at_least(1));
  }

  std::unique_ptr<text::PairSource> open() const {
    if (data.empty() == (source.empty() && target.empty()) || source.empty() != target.empty()) {
      throw UsageError("heed: expected --data, or --source and --target: the pairs to learn from");
    }
    const text::TsvOptions options{.source_column = source_column, .target_column = target_column};
    if (data.empty()) return std::make_unique<text::ParallelFiles>(source, target, options);
    return std::make_unique<text::TsvFile>(data, options);
  }
};

struct Command {
  DataOptions data;
  data::ShortlistOptions options;
  Flags flags;
  std::string folder;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(data, visitor);
      visit_fields(options, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    const decode::Engine engine = open_engine(folder, 1, models::Task::translate);
    const std::unique_ptr<text::PairSource> pairs = data.open();
    std::optional<Elapsed> elapsed(std::in_place, "learning which tokens translate which", isatty(STDERR_FILENO) != 0);
    const data::LearntShortlist learnt = data::learn_shortlist(*pairs, engine.text_model(), options);
    folder::save_shortlist(folder, learnt.shortlist);
    elapsed.reset();
    print("{}: {}; {} for {}\n", folder::Layout(folder).shortlist(), learnt.report.to_string(),
          counted(learnt.shortlist.size(), "target token"),
          counted(learnt.shortlist.source_vocabulary(), "source token"));
  }
};

}  // namespace

void add_shortlist(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("shortlist", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
