#include "cli/evaluate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/model_folder.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/base/parallel.h"
#include "heed/decode/evaluate.h"
#include "heed/decode/pronouns.h"
#include "heed/decode/tag.h"
#include "heed/decode/weights.h"
#include "heed/text/grammar/agreement.h"

namespace heed::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Measures a model on pairs that it has not learnt from (TSV, as heed train reads it).

Of what the model writes: BLEU and chrF as sacreBLEU computes them, and how many sentences are the reference to the
letter. Of the references, given to the model word by word: perplexity, and how many tokens it would have chosen. Where
gold alignments stand beside the TSV file (.align, as heed corpus --split writes them) or are named, also the alignment
error rate of its cross-attention. A language model has perplexity and token accuracy alone, a tagger the share of
right tags.

--pronouns says how often a pronoun's translation has the gender of the noun that it stands for, and for each head of
the encoder, how often the noun it looks at most is that noun, from the pronoun and from the word whose translation
shows the gender. It needs .align, .referents and .tags beside the TSV file. --head-off shows what a head is good for: the same numbers without it. Example:

  heed evaluate --model model --data corpus/test.tsv --beam 4 --by-length --pronouns)";

// Line n of a file that stands beside the data, line by line.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {
    const std::vector<std::byte> bytes = read_file(path, int64_t{1} << 32);
    std::string line;
    for (const std::byte byte : bytes) {
      if (byte == std::byte{'\n'}) {
        lines_.push_back(std::move(line));
        line.clear();
      } else {
        line += static_cast<char>(byte);
      }
    }
    if (!line.empty()) lines_.push_back(line);
  }
  const std::string& at(int64_t number) const {  // from 1
    if (number <= std::ssize(lines_)) return lines_[static_cast<size_t>(number - 1)];
    throw Error(fmt::format("{}: has {} lines, expected one for line {} of the data", path_, lines_.size(), number));
  }
  std::string place(int64_t number) const { return fmt::format("{}:{}", path_, number); }

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

// corpus/test.tsv: corpus/test.align
std::string beside(const std::string& data, const char* extension) {
  return std::filesystem::path(data).replace_extension(extension).string();
}

Json json_of(const decode::Scores& scores) {
  Json json{{"sentences", scores.sentences}, {"tokens", scores.tokens}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  add("bleu", scores.bleu);
  add("chrf", scores.chrf);
  add("exact_match", scores.exact);
  json["token_accuracy"] = scores.accuracy;
  json["perplexity"] = scores.perplexity;
  add("alignment_error_rate", scores.alignment_error);
  return json;
}

std::string row(const std::string& name, const decode::Scores& s) {
  const auto cell = [](const std::optional<double>& value, double factor) {
    return value ? fmt::format("{:>8.2f}", factor * *value) : fmt::format("{:>8}", "-");
  };
  return fmt::format("{:<9} {:>9} {} {} {} {:>8.2f} {:>10.3f} {}\n", name, s.sentences, cell(s.bleu, 1),
                     cell(s.chrf, 1), cell(s.exact, 100), 100 * s.accuracy, s.perplexity, cell(s.alignment_error, 100));
}

double percent(int64_t part, int64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, all));
}

struct Command {
  decode::EvaluateOptions options;
  Flags flags;
  std::string folder, data, alignments, head_off;
  int threads = 0;
  bool json = false, lengths = false, pronouns = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options.search, visitor);
      visit_fields(options.align, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    opened_ = open_model(folder);
    if (data.empty()) throw UsageError("heed: --data is missing, expected a TSV file of pairs");
    read();
    if (!head_off.empty()) switch_ = decode::HeadSwitch(head_off);
    Parallel parallel(threads);
    Workspace workspace;
    nn::Pass pass{{parallel, workspace}};
    pass.observer = &switch_;
    if (opened_.model->task() == models::Task::tag) return report_tags(pass);
    const auto judged = decode::judge_pairs(pass, *opened_.model, *opened_.tokenizer, corpus_, options,
                                            [this](int64_t done) { show_progress(done); });
    switch_.check_found();
    Json result = json_of(decode::scores_of(judged, corpus_, gold_));
    result["left_out"] = std::ssize(corpus_.pairs) - std::ssize(judged);
    if (!json) print_table(judged);
    if (lengths) result["by_length"] = by_length(judged);
    if (pronouns) result["pronouns"] = report_pronouns(pass, judged);
    if (json) print("{}\n", result.dump(2));
  }

 private:
  void read() {
    const bool language = opened_.model->task() == models::Task::language;
    if (language && (pronouns || !alignments.empty())) {
      throw Error(folder + ": is a language model, which has no translations to look at");
    }
    const train::RunOptions& trained = opened_.trained;
    corpus_ = text::read_tsv(
        data, language ? text::TsvOptions{0, trained.source_column, trained.tokenizer.lowercase}
                       : text::TsvOptions{trained.source_column, trained.target_column, trained.tokenizer.lowercase});
    if (opened_.model->task() == models::Task::tag && (pronouns || !alignments.empty())) {
      throw Error(folder + ": is a tagger, which has no translations to look at");
    }
    if (opened_.model->task() != models::Task::translate) return;
    const std::string usual = beside(data, ".align");
    options.aligned = !alignments.empty() || (opened_.model->has_cross_attention() && std::filesystem::exists(usual));
    if (alignments.empty()) alignments = usual;
    if (options.aligned) read_alignments();
    if (pronouns) read_sentences();
  }

  void read_alignments() {
    const Lines links(alignments);
    for (const text::Pair& pair : corpus_.pairs) {
      try {
        gold_.push_back(text::parse_alignment(links.at(pair.line)));
      } catch (const Error& error) {
        throw Error(fmt::format("{}: {}", links.place(pair.line), error.what()));
      }
    }
  }

  // What the grammar knows of each pair, for pronouns.
  void read_sentences() {
    const Lines links(alignments), referents(beside(data, ".referents")), tags(beside(data, ".tags"));
    for (const text::Pair& pair : corpus_.pairs) {
      try {
        sentences_.push_back(grammar::sentence_of(pair.source, pair.target, links.at(pair.line),
                                                  referents.at(pair.line), tags.at(pair.line)));
      } catch (const Error& error) {
        throw Error(fmt::format("{}:{}: {}", data, pair.line, error.what()));
      }
    }
  }

  void report_tags(nn::Pass& pass) const {
    const decode::TagScores scores =
        decode::score_tags(pass, *opened_.model, *opened_.tokenizer, *opened_.tags, corpus_);
    switch_.check_found();
    if (json) {
      const Json result{{"sentences", scores.sentences},
                        {"tokens", scores.tokens},
                        {"right", scores.right},
                        {"whole_sentences", scores.whole}};
      return print("{}\n", result.dump(2));
    }
    print("{} sentences, {} words: {:.2f} % of the tags are right, and all of them in {:.2f} % of the sentences\n",
          scores.sentences, scores.tokens, percent(scores.right, scores.tokens),
          percent(scores.whole, scores.sentences));
  }

  void show_progress(int64_t done) const {
    if (json || isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r\x1b[K{} of {} pairs", done, corpus_.pairs.size());
    if (done == std::ssize(corpus_.pairs)) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }

  void print_table(const std::vector<decode::Judged>& judged) const {
    const auto left_out = std::ssize(corpus_.pairs) - std::ssize(judged);
    if (left_out > 0) print("{} pairs are longer than the model can take, and left out\n", left_out);
    print("{:<9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8}\n", "words", "sentences", "BLEU", "chrF", "exact %",
          "token %", "perplexity", "AER %");
    print("{}", row("all", decode::scores_of(judged, corpus_, gold_)));
  }

  Json by_length(const std::vector<decode::Judged>& judged) const {
    Json list = Json::array();
    for (const decode::LengthScores& one : decode::scores_by_length(judged, corpus_, gold_)) {
      if (!json) print("{}", row(fmt::format("{}-{}", one.from, one.to), one.scores));
      Json entry{{"from", one.from}, {"to", one.to}};
      entry.update(json_of(one.scores));
      list.push_back(entry);
    }
    return list;
  }

  Json report_pronouns(nn::Pass& pass, const std::vector<decode::Judged>& judged) const {
    std::vector<grammar::Sentence> sentences;
    std::vector<std::string> translations;
    for (const decode::Judged& one : judged) {
      sentences.push_back(sentences_[static_cast<size_t>(one.pair)]);
      translations.push_back(one.translation);
    }
    const decode::PronounGenders genders = decode::pronoun_genders(sentences, translations);
    const decode::PronounAttention seen =
        decode::pronoun_attention(pass, *opened_.model, *opened_.tokenizer, sentences);
    if (!json) print_pronouns(genders, seen);
    Json heads = Json::array();
    for (const decode::PronounHead& head : seen.heads) {
      heads.push_back({{"layer", head.layer},
                       {"head", head.head},
                       {"found", head.found},
                       {"found_from_agreeing", head.found_from_agreeing}});
    }
    return {
        {"gender",
         {{"pronouns", genders.pronouns},
          {"right", genders.right},
          {"wrong", genders.wrong},
          {"absent", genders.absent}}},
        {"attention",
         {{"pronouns", seen.pronouns}, {"agreeing", seen.agreeing}, {"by_chance", seen.by_chance}, {"heads", heads}}}};
  }

  static void print_pronouns(const decode::PronounGenders& genders, const decode::PronounAttention& seen) {
    print("\npronouns whose gender shows  {}: right {:.1f} %, wrong {:.1f} %, the word is not there {:.1f} %\n",
          genders.pronouns, percent(genders.right, genders.pronouns), percent(genders.wrong, genders.pronouns),
          percent(genders.absent, genders.pronouns));
    if (seen.heads.empty()) return;  // no attention in the encoder
    print(
        "two nouns or more, of which a head of the encoder looks most at the right one, seen from the pronoun ({})\n"
        "and from the word whose translation shows the gender ({}: 'tired' in 'it was tired'), in\n",
        seen.pronouns, seen.agreeing);
    for (const decode::PronounHead& head : seen.heads) {
      print("  {:<24} {:>5.1f} % {:>5.1f} %\n", fmt::format("{}.{}", head.layer, head.head),
            percent(head.found, seen.pronouns), percent(head.found_from_agreeing, seen.agreeing));
    }
    print("  {:<24} {:>5.1f} %\n", "any noun",
          100 * seen.by_chance / static_cast<double>(std::max<int64_t>(1, seen.pronouns)));
  }

  ModelFolder opened_;
  text::Corpus corpus_;
  std::vector<text::Alignment> gold_;
  std::vector<grammar::Sentence> sentences_;
  decode::HeadSwitch switch_;
};

}  // namespace

void add_evaluate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("evaluate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("--data", command->data, "Pairs to measure with: TSV")->type_name("FILE");
  app->add_option("--alignments", command->alignments, "Gold alignments, line by line; by default .align beside --data")
      ->type_name("FILE");
  app->add_option("--head-off", command->head_off, "Switch one head off: encoder.0.self.2")->type_name("LAYER.HEAD");
  add_threads(*app, command->threads);
  app->add_flag("--by-length", command->lengths, "Also by length of the sentence");
  app->add_flag("--pronouns", command->pronouns, "Also whether pronouns are understood");
  app->add_flag("--json", command->json, "One JSON object on standard output");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
