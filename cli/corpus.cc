// SPDX-License-Identifier: Apache-2.0
#include "cli/corpus.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output.h"
#include "heed/grammar/files.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/statistics.h"
#include "heed/text/words.h"

namespace heed::cli {

namespace {

using namespace grammar;
using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Writes sentences of the built-in grammar: English, a tab, Spanish, one pair a line, no pair twice.

The n-th pair depends on the seed alone. Words and the marks . , ? ¿ are tokens, counted from 0. --show and --json add
what the grammar knows: the alignment in Pharaoh's format (2-3: source token 2 is translated by target token 3; 2p3: it
only has a share in it), the referents (8-1: the pronoun at 8 stands for the noun at 1), a tag for each source token.
--split writes train, dev and test instead: dev and test combine nouns with adjectives, and nouns with pronouns, as
training never does. Beside each .tsv stand .align, .referents and .tags, line by line the same sentences.)";

constexpr int64_t kMostPairs = 10'000'000;

struct CorpusOptions {
  int64_t pairs = 0;
  uint64_t seed = 1;
  Task task = Task::translate;
  std::string split;
  std::vector<std::string> show;
  bool json = false, stats = false;
};

const std::vector<std::string> kColumns{"alignment", "referents", "tags"};

Json pairs_of(const Sentence& sentence, Certainty certainty) {
  Json links = Json::array();
  for (const Link& link : sentence.alignment) {
    if (link.certainty == certainty) links.push_back({link.source, link.target});
  }
  return links;
}

std::string json_line(const Sentence& sentence) {
  Json referents = Json::array(), tags = Json::array();
  for (const Referent& referent : sentence.referents) referents.push_back({referent.pronoun, referent.noun});
  for (const Tag tag : sentence.tags) tags.push_back(name(tag));
  return Json{{"source", text::detokenise(sentence.source)},
              {"target", text::detokenise(sentence.target)},
              {"source_tokens", sentence.source},
              {"target_tokens", sentence.target},
              {"alignment", pairs_of(sentence, Certainty::sure)},
              {"possible", pairs_of(sentence, Certainty::possible)},
              {"referents", referents},
              {"tags", tags}}
      .dump();
}

std::string tsv_line(const Sentence& sentence, const CorpusOptions& options) {
  std::string line = tsv(sentence, options.task);
  for (const std::string& column : options.show) {
    line += '\t';
    line += column == "alignment"   ? pharaoh(sentence.alignment)
            : column == "referents" ? to_string(sentence.referents)
                                    : to_string(sentence.tags);
  }
  return line;
}

void print_sentences(const CorpusOptions& options) {
  Grammar sentences(options.seed);
  for (int64_t n = 0; n < options.pairs; ++n) {
    const Sentence sentence = sentences.next();
    write_output((options.json ? json_line(sentence) : tsv_line(sentence, options)) + "\n");
  }
}

std::string guesses_line(const std::string& pronoun, const Guesses& guesses) {
  const auto percent = [&](int64_t right) {
    return 100.0 * static_cast<double>(right) / static_cast<double>(std::max<int64_t>(guesses.pronouns, 1));
  };
  return fmt::format("{:<10} {:>10} {:>12.1f} {:>12.1f} {:>12.1f}\n", pronoun, guesses.pronouns, percent(guesses.first),
                     percent(guesses.nearest), percent(guesses.agreeing));
}

void print_statistics(const CorpusOptions& options) {
  Grammar sentences(options.seed);
  Statistics statistics;
  for (int64_t n = 0; n < options.pairs; ++n) statistics.add(sentences.next());
  const auto mean = [&](int64_t tokens) {
    return static_cast<double>(tokens) / static_cast<double>(statistics.sentences());
  };
  print("sentences       {}, {} with a pronoun\n", statistics.sentences(), statistics.with_pronoun());
  print("English tokens  {:.1f} a sentence, {} to {}, {} different\n", mean(statistics.source_tokens()),
        statistics.shortest(), statistics.longest(), statistics.source_words());
  print("Spanish tokens  {:.1f} a sentence, {} different\n\n", mean(statistics.target_tokens()),
        statistics.target_words());
  print("{:<10} {:>10} {:>12} {:>12} {:>12}\n", "pronoun", "number", "first noun", "nearest", "agreeing");
  for (const auto& [pronoun, guesses] : statistics.by_pronoun()) write_output(guesses_line(pronoun, guesses));
  write_output(guesses_line("all", statistics.all_pronouns()));
}

void run_corpus(const CorpusOptions& options) {
  if (!options.split.empty()) {
    write_split({.pairs = options.pairs, .seed = options.seed, .task = options.task}, options.split);
  } else if (options.stats) {
    print_statistics(options);
  } else {
    print_sentences(options);
  }
}

std::string check_pairs(const std::string& text) {
  int64_t n = 0;
  if (CLI::detail::lexical_cast(text, n) && n >= 1 && n <= kMostPairs) return "";
  return fmt::format("'{}' is not a number of pairs, expected 1 to {}", text, kMostPairs);
}

std::string check_seed(const std::string& text) {
  uint64_t seed = 0;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  return digits && CLI::detail::lexical_cast(text, seed) ? "" : "'" + text + "' is not a seed, expected 0 or more";
}

std::string check_column(const std::string& text) {
  if (std::ranges::find(kColumns, text) != kColumns.end()) return "";
  return "'" + text + "' is not a column, expected alignment, referents or tags";
}

std::string check_task(const std::string& text) {
  return text == "translate" || text == "tag" ? "" : "'" + text + "' is not a task, expected translate or tag";
}

}  // namespace

void add_corpus(CLI::App& heed, Action& action) {
  CLI::App* corpus = heed.add_subcommand("corpus", kHelp);
  auto options = std::make_shared<CorpusOptions>();
  auto task = std::make_shared<std::string>("translate");
  corpus->add_option("--pairs", options->pairs, "How many sentences; with --split, of training")
      ->type_name("N")
      ->required()
      ->check(CLI::Validator(check_pairs, ""));
  corpus->add_option("--seed", options->seed, "Another seed, another corpus")
      ->type_name("S")
      ->capture_default_str()
      ->check(CLI::Validator(check_seed, ""));
  corpus->add_option("--task", *task, "translate: English, Spanish. tag: English tokens, their parts of speech")
      ->type_name("TASK")
      ->capture_default_str()
      ->check(CLI::Validator(check_task, ""));
  CLI::Option* split =
      corpus->add_option("--split", options->split, "Write train, dev and test to this folder instead");
  split->type_name("DIR");
  CLI::Option* show = corpus->add_option("--show", options->show, "Add columns: alignment, referents, tags");
  show->type_name("COLUMN,...")->delimiter(',')->check(CLI::Validator(check_column, ""))->excludes(split);
  CLI::Option* json = corpus->add_flag("--json", options->json, "One JSON object a line, with all that is known");
  json->excludes(split)->excludes(show);
  corpus->add_flag("--stats", options->stats, "Sizes, and how often simple rules find a pronoun's noun")
      ->excludes(split)
      ->excludes(show)
      ->excludes(json);
  corpus->callback([options, task, &action] {
    options->task = *task == "tag" ? Task::tag : Task::translate;
    action = [options] { run_corpus(*options); };
  });
}

}  // namespace heed::cli
