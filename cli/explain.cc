#include "cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>
#include <numeric>

#include "cli/flags.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/decode/align.h"
#include "heed/decode/batch_tokens.h"
#include "heed/decode/look.h"
#include "heed/decode/search.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

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

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Columns on a terminal: what continues a character of UTF-8 takes none.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string padded(const std::string& text, size_t width) {
  const size_t taken = columns(text);
  return text + std::string(taken < width ? width - taken : 0, ' ');
}

struct Command {
  decode::AlignOptions align;
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
    opened_ = open_model(folder);
    opened_.expect(models::Task::translate);
    parallel_ = std::make_unique<Parallel>(threads);
    for (const std::string& sentence : sentences) explain(sentence);
    if (!sentences.empty()) return;
    for (std::string line; std::getline(std::cin, line);) {
      if (!line.empty()) explain(line);
    }
  }

 private:
  void explain(const std::string& sentence) {
    Workspace workspace;
    nn::Pass pass{{*parallel_, workspace}};
    const std::vector<int32_t> source = opened_.encode(sentence, "'" + sentence + "'");
    if (source.empty()) throw Error("the sentence '" + sentence + "' has no word in it, expected at least one");
    const std::vector<std::string> words = text::words_and_marks(sentence);
    const std::vector<int64_t> map = text::words_of_tokens(*opened_.tokenizer, source, sentence, words);
    text::Batch batch = text::source_batch({&source, 1});
    const auto found =
        decode::search(pass, *opened_.model, decode::source_of(batch), {text::kBegin, text::kEnd, text::kPad}, {});
    const std::vector<int32_t>& target = found.at(0).at(0).tokens;
    const std::string translation = opened_.tokenizer->decode(target);
    print("{}\n{}\n\n", sentence, translation);
    if (word.empty()) {
      text::add_targets(batch, {&target, 1});
      const std::vector<std::string> said = text::words_and_marks(translation);
      const decode::WordMap both{map, text::words_of_tokens(*opened_.tokenizer, target, translation, said)};
      print_target(words, said,
                   decode::target_looks(decode::cross_weights(pass, *opened_.model, batch, align), both,
                                        {std::ssize(words), std::ssize(said)}));
    } else {
      print_word(pass, words, source, map);
    }
    print("\n");
  }

  static std::string name_of(const std::vector<std::string>& words, size_t i) {
    return i < words.size() ? words[i] : "(end)";
  }

  // "tired 0.71  animal 0.12"
  std::string strongest(const std::vector<std::string>& words, const decode::Look& look) const {
    std::vector<size_t> order(look.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return look[a] > look[b]; });
    std::string text;
    for (size_t i = 0; i < std::min(order.size(), static_cast<size_t>(top)); ++i) {
      text += fmt::format("{}{} {:.2f}", i ? "  " : "", name_of(words, order[i]), look[order[i]]);
    }
    return text;
  }

  void print_target(const std::vector<std::string>& words, const std::vector<std::string>& said,
                    const std::vector<decode::Look>& looks) const {
    size_t width = 0;
    for (const std::string& each : said) width = std::max(width, columns(each));
    for (size_t i = 0; i < said.size(); ++i) {
      print("  {}  looks at  {}\n", padded(said[i], width), strongest(words, looks[i]));
    }
  }

  void print_word(nn::Pass& pass, const std::vector<std::string>& words, const std::vector<int32_t>& source,
                  const std::vector<int64_t>& map) const {
    const auto at =
        std::find_if(words.begin(), words.end(), [&](const std::string& each) { return lower(each) == lower(word); });
    if (at == words.end()) throw Error("--word is '" + word + "', expected a word of the sentence");
    const auto looks = decode::source_looks(pass, *opened_.model, source, map, std::ssize(words), at - words.begin());
    const auto full_name = [](const decode::HeadLook& one) { return fmt::format("{}.{}", one.layer, one.head); };
    if (head.empty()) {
      print("'{}' looks at\n", word);
      for (const decode::HeadLook& one : looks) print("  {}  {}\n", full_name(one), strongest(words, one.look));
      return;
    }
    const auto chosen =
        std::find_if(looks.begin(), looks.end(), [&](const decode::HeadLook& one) { return full_name(one) == head; });
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

  ModelFolder opened_;
  std::unique_ptr<Parallel> parallel_;
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
