#include "cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>

#include "cli/flags.h"
#include "cli/open.h"
#include "cli/output.h"
#include "heed/analysis/explain.h"
#include "heed/base/error.h"
#include "heed/decode/translate.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates a sentence and says what the model looked at.

For each word of the translation: the words of the source that it looked at when it chose that word (cross-attention).
With --word, what that word of the source looks at in each head of the encoder; with --head too, in that head alone, as
bars. Sentences come from the command line, or from standard input, a line each. Examples:

  heed explain --model model "The animal didn't cross the street because it was too tired."
  heed explain --model model --word it --head encoder.1.self.0 "The boy bought the apple and ate it.")";

constexpr int kBar = 40;  // characters of a weight of 1

// Columns on a terminal: what continues a character of UTF-8 takes none.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string padded(const std::string& text, size_t width) {
  const size_t taken = columns(text);
  return text + std::string(taken < width ? width - taken : 0, ' ');
}

struct Command {
  analysis::AlignOptions align;
  Flags flags;
  std::string folder, word, head;
  std::vector<std::string> sentences;
  int64_t top = 3;
  int threads = 0;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(align, visitor); };
  }

  void run() {
    flags.apply(fields());
    if (!head.empty() && word.empty()) throw Error("--head came without --word, expected the word that looks");
    const decode::Translator translator(open_engine(folder, threads, models::Task::translate));
    for (const std::string& sentence : sentences) explain(translator, sentence);
    if (!sentences.empty()) return;
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty()) explain(translator, line);
    }
  }

 private:
  void explain(const decode::Translator& translator, const std::string& sentence) const {
    const decode::Engine& engine = translator.engine();
    decode::InferencePass pass(engine, {});
    const decode::Translation translation = translator.translate(sentence);
    print("{}\n{}\n\n", sentence, translation.text);
    if (word.empty()) {
      print_target(analysis::explain_target(pass, engine.text_model(), sentence, translation.tokens, align));
    } else {
      print_word(analysis::explain_source(pass, engine.text_model(), sentence, word));
    }
    print("\n");
  }

  static std::string name_of(const std::vector<std::string>& words, size_t i) {
    return i < words.size() ? words[i] : "(end)";
  }

  // "tired 0.71  animal 0.12"
  std::string strongest(const std::vector<std::string>& words, const analysis::Look& look) const {
    std::vector<size_t> order(look.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return look[a] > look[b]; });
    std::string text;
    for (size_t i = 0; i < std::min(order.size(), static_cast<size_t>(top)); ++i) {
      text += fmt::format("{}{} {:.2f}", i ? "  " : "", name_of(words, order[i]), look[order[i]]);
    }
    return text;
  }

  void print_target(const analysis::TargetExplanation& seen) const {
    size_t width = 0;
    for (const std::string& each : seen.target) width = std::max(width, columns(each));
    for (size_t i = 0; i < seen.target.size(); ++i) {
      print("  {}  looks at  {}\n", padded(seen.target[i], width), strongest(seen.source, seen.looks[i]));
    }
  }

  void print_word(const analysis::SourceExplanation& seen) const {
    const auto& [words, looks] = seen;
    const auto full_name = [](const analysis::HeadLook& one) { return fmt::format("{}.{}", one.layer, one.head); };
    if (head.empty()) {
      print("'{}' looks at\n", word);
      for (const analysis::HeadLook& one : looks) print("  {}  {}\n", full_name(one), strongest(words, one.look));
      return;
    }
    const auto chosen =
        std::find_if(looks.begin(), looks.end(), [&](const analysis::HeadLook& one) { return full_name(one) == head; });
    if (chosen == looks.end()) {
      throw Error("--head is '" + head + "', expected " + full_name(looks.front()) + " to " + full_name(looks.back()));
    }
    print("'{}' looks at ({})\n", word, head);
    size_t width = 0;
    for (size_t i = 0; i < chosen->look.size(); ++i) width = std::max(width, columns(name_of(words, i)));
    for (size_t i = 0; i < chosen->look.size(); ++i) {
      const auto bar = static_cast<size_t>(chosen->look[i] * kBar + 0.5);
      print("  {}  {:.2f}{}{}\n", padded(name_of(words, i), width), chosen->look[i], bar ? "  " : "",
            std::string(bar, '#'));
    }
  }
};

}  // namespace

void add_explain(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("explain", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("--word", command->word, "A word of the source: what it looks at")->type_name("WORD");
  app->add_option("--head", command->head, "One head of the encoder: encoder.1.self.0")->type_name("LAYER.HEAD");
  app->add_option("--top", command->top, "Words to show of each look")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}))
      ->capture_default_str();
  add_threads(*app, command->threads);
  app->add_option("sentences", command->sentences, "Sentences; none: standard input")->type_name("TEXT");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
