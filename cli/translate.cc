#include "cli/translate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/flags.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/decode/search.h"
#include "heed/text/batching.h"
#include "heed/text/tokenizer.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates lines of text with a model that heed train has made: from files, or from standard input.

Each line of input gives one line of output (--nbest N: N lines), in the same order. An empty line stays empty. A line
longer than the model can take is refused with its number. Example:

  echo "The cat sleeps." | heed translate --model model --beam 4)";

constexpr size_t kBatch = 32;  // sentences

struct Command {
  decode::SearchOptions options;
  Flags flags;
  std::string model;
  std::vector<std::string> files;
  int threads = 0;
  bool scores = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    if (model.empty()) throw Error("--model is missing, expected a folder that heed train made");
    loaded_ = models::load_model(model);
    tokenizer_ = text::load_tokenizer((std::filesystem::path(model) / "tokenizer").string());
    parallel_ = std::make_unique<Parallel>(threads);
    if (files.empty()) return translate(std::cin, "standard input");
    for (const std::string& file : files) {
      std::ifstream in(file);
      if (!in) throw Error(file + ": cannot read");
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
    translate_lines(lines, name, first);
  }

  void translate_lines(const std::vector<std::string>& lines, const std::string& name, int64_t first) {
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = 0; i < lines.size(); ++i) {
      std::vector<int32_t> ids = tokenizer_->encode(lines[i]);
      if (ids.empty()) continue;
      const int64_t most = loaded_->max_length() - 1;  // and one for the end
      if (std::ssize(ids) > most) {
        throw Error(fmt::format("{}:{}: {} tokens came, expected at most {}", name, first + static_cast<int64_t>(i),
                                ids.size(), most));
      }
      sources.push_back(std::move(ids));
    }
    std::vector<std::vector<decode::Hypothesis>> found;
    if (!sources.empty()) {
      const text::Batch batch = text::source_batch(sources);
      Workspace workspace;
      nn::Pass pass{{*parallel_, workspace}};
      const models::Tokens source{Tensor::of({batch.rows, batch.source_length}, std::span<const int32_t>(batch.source)),
                                  batch.source_lengths};
      found = decode::search(pass, *loaded_, source, {text::kBegin, text::kEnd, text::kPad}, options);
    }
    size_t next = 0;
    for (const std::string& line : lines) print(line, found, next);
    std::fflush(stdout);
  }

  void print(const std::string& line, const std::vector<std::vector<decode::Hypothesis>>& found, size_t& next) const {
    if (tokenizer_->encode(line).empty()) {
      fmt::print("\n");
      return;
    }
    for (const decode::Hypothesis& one : found[next]) {
      const std::string text = tokenizer_->decode(one.tokens);
      if (scores) {
        fmt::print("{:.4f}\t{}\n", one.score, text);
      } else {
        fmt::print("{}\n", text);
      }
    }
    ++next;
  }

  std::unique_ptr<models::Model> loaded_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<Parallel> parallel_;
};

}  // namespace

void add_translate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("translate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->model, "Folder of the model")->type_name("DIR");
  app->add_option("files", command->files, "Files to translate; none: standard input")->type_name("FILE");
  app->add_option("--threads", command->threads, "Threads to use; 0: all that the machine has")
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--scores", command->scores, "Print each score before its translation");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
