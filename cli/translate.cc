#include "cli/translate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/flags.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/decode/align.h"
#include "heed/decode/batch_tokens.h"
#include "heed/decode/search.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates lines of text with a model that heed train has made: from files, or from standard input.

Each line of input gives one line of output (--nbest N: N lines), in the same order. An empty line stays empty. A line
longer than the model can take is refused with its number. --align adds, after a tab, which word of the source the model
looked at for each word of its translation: 0-1 is the first word of the source and the second of the translation, as
spaces cut them. Example:

  echo "The cat sleeps." | heed translate --model model --beam 4)";

constexpr size_t kBatch = 32;  // sentences

struct Command {
  decode::SearchOptions options;
  decode::AlignOptions align_options;
  Flags flags;
  std::string folder;
  std::vector<std::string> files;
  int threads = 0;
  bool scores = false, align = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options, visitor);
      visit_fields(align_options, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    opened_ = open_model(folder);
    opened_.expect(models::Task::translate);
    parallel_ = std::make_unique<Parallel>(threads);
    if (files.empty()) return translate(std::cin, "standard input");
    for (const std::string& file : files) {
      std::ifstream in(file);
      if (!in) throw Error(file + ": cannot read: " + std::strerror(errno));
      translate(in, file);
    }
  }

 private:
  void translate(std::istream& in, const std::string& name) {
    std::vector<std::string> lines;
    int64_t first = 1;
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      lines.push_back(line);
      if (lines.size() < kBatch) continue;
      translate_lines(lines, name, first);
      first += std::ssize(lines);
      lines.clear();
    }
    if (in.bad()) throw Error(name + ": cannot read: " + std::strerror(errno));
    translate_lines(lines, name, first);
  }

  void translate_lines(const std::vector<std::string>& lines, const std::string& name, int64_t first) {
    std::vector<std::vector<int32_t>> sources;
    std::vector<size_t> places;  // of the lines that are not empty
    for (size_t i = 0; i < lines.size(); ++i) {
      std::vector<int32_t> ids = opened_.encode(lines[i], fmt::format("{}:{}", name, first + static_cast<int64_t>(i)));
      if (ids.empty()) continue;
      sources.push_back(std::move(ids));
      places.push_back(i);
    }
    std::vector<std::vector<std::string>> results(lines.size(), {""});
    if (!sources.empty()) {
      Workspace workspace;
      nn::Pass pass{{*parallel_, workspace}};
      const text::Batch batch = text::source_batch(sources);
      const auto found = decode::search(pass, *opened_.model, decode::source_of(batch),
                                        {text::kBegin, text::kEnd, text::kPad}, options);
      for (size_t i = 0; i < places.size(); ++i) {
        results[places[i]] = shown(pass, lines[places[i]], sources[i], found[i]);
      }
    }
    for (const std::vector<std::string>& each : results) {
      for (const std::string& text : each) print("{}\n", text);
    }
    flush_output();
  }

  // A line of output for each hypothesis of one line of input.
  std::vector<std::string> shown(nn::Pass& pass, const std::string& line, const std::vector<int32_t>& source,
                                 const std::vector<decode::Hypothesis>& found) const {
    std::vector<std::string> result;
    for (const decode::Hypothesis& one : found) {
      const std::string text = opened_.tokenizer->decode(one.tokens);
      result.push_back(scores ? fmt::format("{:.4f}\t{}", one.score, text) : text);
      if (align) result.back() += "\t" + alignment(pass, line, source, text, one.tokens);
    }
    return result;
  }

  std::string alignment(nn::Pass& pass, const std::string& line, const std::vector<int32_t>& source,
                        const std::string& translation, const std::vector<int32_t>& target) const {
    text::Batch batch = text::source_batch({&source, 1});
    text::add_targets(batch, {&target, 1});
    const decode::WordMap words{
        text::words_of_tokens(*opened_.tokenizer, source, line, text::words_at_spaces(line)),
        text::words_of_tokens(*opened_.tokenizer, target, translation, text::words_at_spaces(translation))};
    return text::to_string(
        decode::align_words(decode::cross_weights(pass, *opened_.model, batch, align_options), 0, words));
  }

  ModelFolder opened_;
  std::unique_ptr<Parallel> parallel_;
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
