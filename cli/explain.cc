// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "cli/flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/trace_flag.h"
#include "heed/analysis/explain.h"
#include "heed/base/error.h"
#include "heed/decode/translate.h"
#include "heed/text/lines.h"
#include "heed/text/utf8.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Translates a sentence and says what the model looked at.

For each word of the translation: the words of the source that it looked at when it chose that word (cross-attention).
With --word, what that word of the source looks at in each head of the encoder; with --head too, in that head alone, as
bars. Sentences come from the command line, or from standard input, a line each (none, or -).

--json writes an object for each sentence: source and translation, source_words, and looks: a word of the translation, or
with --word a layer and a head, with the weights of all words of the source, and of the end of the sentence. --trace
writes, for one sentence, all that was recorded while it was translated, and --out a page that shows it, in one HTML file;
--compare puts another sentence beside it. With --beam, the other hypotheses are there, too. Examples:

  heed explain --model model "The animal didn't cross the street because it was too tired."
  heed explain --model model --word it --head encoder.1.self.0 "The boy bought the apple and ate it."
  heed explain --model model --out page.html --compare "The animal was too wide." "The animal was too tired.")";

constexpr int kBar = 40;  // characters of a weight of 1

// Columns on a terminal: what continues a character of UTF-8 takes none.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string padded(const std::string& text, size_t width) {
  const size_t taken = columns(text);
  return text + std::string(taken < width ? width - taken : 0, ' ');
}

std::string check_top(const std::string& text) {
  int64_t n = 0;
  if (CLI::detail::lexical_cast(text, n) && n >= 1 && n <= 1000) return "";
  return "'" + text + "' is not a number of words, expected 1 to 1000";
}

struct Command {
  analysis::AlignOptions align;
  Flags flags;
  TraceFlag trace;
  std::string folder, word, head, compare;
  std::vector<std::string> sentences;
  int64_t top = 3, beam = 1;
  int threads = 0;
  bool json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(align, visitor); };
  }

  void run() {
    flags.apply(fields());
    if (!head.empty() && word.empty())
      throw UsageError("heed: --head came without --word, expected the word that looks");
    const bool from_input = sentences.empty() || sentences == Lines{"-"};
    trace.check(from_input ? 0 : sentences.size());
    if (!compare.empty() && trace.page.empty()) {
      throw UsageError("heed: --compare came without --out, expected both: they are compared on a page");
    }
    const decode::Translator translator(open_engine(folder, threads, models::Task::translate));
    if (from_input) return explain_input(translator);
    Lines traced = {sentences.front()};
    if (!compare.empty()) traced.push_back(compare);
    // Before anything is explained: also of a model that has no attention.
    trace.write(translator.engine(), traced, {.search = {.beam = beam}});
    for (const std::string& sentence : sentences) explain(translator, sentence);
  }

 private:
  void explain_input(const decode::Translator& translator) const {
    text::LineReader reader("-");
    for (Lines lines = reader.next(1); !lines.empty(); lines = reader.next(1)) {
      try {
        text::check_utf8(lines[0], "line");
        if (text::squeeze_spaces(lines[0]).empty()) continue;
        explain(translator, lines[0]);
      } catch (const Error& error) {
        throw Error(reader.place(0) + ": " + error.what());
      }
    }
  }

  void explain(const decode::Translator& translator, const std::string& sentence) const {
    const decode::Engine& engine = translator.engine();
    decode::InferencePass pass(engine, {});
    const decode::Translation translation = translator.translate(sentence, {.search = {.beam = beam}});
    Json result{{"source", sentence}, {"translation", translation.text}};
    if (!json) print("{}\n{}\n\n", sentence, translation.text);
    if (word.empty()) {
      const auto seen = analysis::explain_target(pass, engine.text_model(), sentence, translation.tokens, align);
      json ? add_target(result, seen) : print_target(seen);
    } else {
      analysis::SourceExplanation seen = analysis::explain_source(pass, engine.text_model(), sentence, word);
      if (!head.empty()) seen.heads = {chosen_head(seen)};
      json ? add_word(result, seen) : print_word(seen);
    }
    json ? write_output(json_line(result)) : print("\n");
    flush_output();
  }

  static std::string full_name(const analysis::HeadLook& one) { return fmt::format("{}.{}", one.layer, one.head); }

  analysis::HeadLook chosen_head(const analysis::SourceExplanation& seen) const {
    for (const analysis::HeadLook& one : seen.heads) {
      if (full_name(one) == head) return one;
    }
    throw Error("--head is '" + head + "', expected " + full_name(seen.heads.front()) + " to " +
                full_name(seen.heads.back()));
  }

  // The last of a look is the end of the sentence.
  static void add_look(Json& to, const analysis::Look& look) {
    to["weights"] = std::vector<double>(look.begin(), look.end() - 1);
    to["end"] = look.back();
  }

  static void add_target(Json& result, const analysis::TargetExplanation& seen) {
    result["source_words"] = seen.source;
    Json& looks = result["looks"] = Json::array();
    for (size_t i = 0; i < seen.target.size(); ++i) {
      Json& look = looks.emplace_back(Json{{"word", seen.target[i]}});
      add_look(look, seen.looks[i]);
    }
  }

  void add_word(Json& result, const analysis::SourceExplanation& seen) const {
    result["source_words"] = seen.words;
    result["word"] = word;
    Json& looks = result["looks"] = Json::array();
    for (const analysis::HeadLook& one : seen.heads) {
      Json& look = looks.emplace_back(Json{{"layer", one.layer}, {"head", one.head}});
      add_look(look, one.look);
    }
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
    if (head.empty()) {
      print("'{}' looks at\n", word);
      for (const analysis::HeadLook& one : looks) print("  {}  {}\n", full_name(one), strongest(words, one.look));
      return;
    }
    const analysis::Look& look = looks.front().look;
    print("'{}' looks at ({})\n", word, head);
    size_t width = 0;
    for (size_t i = 0; i < look.size(); ++i) width = std::max(width, columns(name_of(words, i)));
    for (size_t i = 0; i < look.size(); ++i) {
      const auto bar = static_cast<size_t>(look[i] * kBar + 0.5);
      print("  {}  {:.2f}{}{}\n", padded(name_of(words, i), width), look[i], bar ? "  " : "", std::string(bar, '#'));
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
      ->check(CLI::Validator(check_top, ""))
      ->capture_default_str();
  app->add_option("--beam", command->beam, "Hypotheses of the search; more than one are kept in --trace and --out")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--compare", command->compare, "A second sentence, beside the first on the page of --out")
      ->type_name("TEXT");
  app->add_flag("--json", command->json, "Write a JSON object for each sentence");
  add_threads(*app, command->threads);
  app->add_option("sentences", command->sentences, "Sentences; none, or -: standard input")->type_name("TEXT");
  command->trace.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
