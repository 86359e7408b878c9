// SPDX-License-Identifier: Apache-2.0
#include "cli/evaluate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/gender_report.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/search_flags.h"
#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/evaluate/evaluate.h"
#include "heed/folder/model_folder.h"
#include "heed/grammar/files.h"
#include "heed/grammar/pronouns.h"
#include "heed/train/run.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Measures a model on pairs that it has not learnt from (TSV, as heed train reads it).

Of what the model writes: BLEU and chrF as sacreBLEU computes them, and how many sentences are the reference to the
letter. Of the references, given to the model word by word: perplexity, and how many tokens it would have chosen. Where
gold alignments stand beside the TSV file (.align, as heed corpus --split writes them) or are named, also the alignment
error rate of its cross-attention. A language model has perplexity and token accuracy alone, a tagger the share of
right tags. An unknown token (<unk>) of a reference is never chosen rightly, but counts in perplexity as any other, so
that their rate is told beside it.

--hypotheses-out writes what the model wrote: a line for each line of --data, empty where that is empty or too long.
--hypotheses measures such a file, or anybody's output, without a model: against the targets of --data, or the lines of
--references.

--pronouns says how often a pronoun's translation has the gender of the noun that it stands for, and for each head of
the encoder, how often the noun it looks at most is that noun, from the pronoun and from the word whose translation
shows the gender. It needs .align, .referents and .tags beside the TSV file. --gate encoder.1.self.2=0 shows what a
head is good for: the same numbers without it.

--paths, beside --pronouns, asks by which path the gender of that noun reaches the translation (a Transformer's): which
method finds the noun, from the pronoun, from the word that agrees with it ('tired') and from the word that was chosen
('cansado'); and how often the model then prefers the wrong gender, if a head is off, or gives what it gave for the
sentence with another adjective or noun. docs/explaining.md has the methods. Examples:

  heed evaluate --model model --data corpus/test.tsv --beam 4 --by-length --pronouns
  heed evaluate --model model --data corpus/test.tsv --pronouns --paths
  heed evaluate --hypotheses theirs.txt --references reference.txt)";

Json json_of(const evaluate::Scores& scores) {
  Json json{{"sentences", scores.sentences}};
  if (scores.tokens > 0) json["tokens"] = scores.tokens;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
  };
  add("bleu", scores.bleu);
  add("chrf", scores.chrf);
  add("exact_match", scores.exact);
  if (scores.tokens > 0) {  // else no model has read the references
    json["token_accuracy"] = scores.accuracy;
    json["perplexity"] = scores.perplexity;
  }
  add("alignment_error_rate", scores.alignment_error);
  if (scores.unknown.source.tokens > 0) json["unknown_source"] = scores.unknown.source.rate();
  json["unknown_target"] = scores.unknown.target.rate();
  return json;
}

std::string row(const std::string& name, const evaluate::Scores& s) {
  const auto cell = [](const std::optional<double>& value, double factor) {
    return value ? fmt::format("{:>8.2f}", factor * *value) : fmt::format("{:>8}", "-");
  };
  const bool read = s.tokens > 0;  // the references, by a model
  return fmt::format("{:<9} {:>9} {} {} {} {} {:>10} {}\n", name, s.sentences, cell(s.bleu, 1), cell(s.chrf, 1),
                     cell(s.exact, 100), cell(read ? std::optional(s.accuracy) : std::nullopt, 100),
                     read ? fmt::format("{:.3f}", s.perplexity) : "-", cell(s.alignment_error, 100));
}

constexpr size_t kShownPaths = 12;  // of each table

double percent(int64_t part, int64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, all));
}

struct Command {
  evaluate::EvaluateOptions options;
  analysis::AlignOptions align;
  Flags flags;
  GateFlags gates;
  std::string folder, data, alignments, hypotheses, hypotheses_out, references;
  int threads = 0;
  bool json = false, lengths = false, pronouns = false, paths = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(options.translation.search, visitor);
      visit_fields(align, visitor);
      visit_fields(options.translation.call.batch, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    settle_search(flags, options.translation.search);
    data = file_to_open(data);
    if (!hypotheses.empty()) return run_without_model();
    if (!references.empty()) throw UsageError("heed: --references came without --hypotheses, expected both");
    if (paths && !pronouns) throw UsageError("heed: --paths came without --pronouns, expected both");
    const decode::Engine engine = paths ? open_for_analysis(folder, threads) : open_engine(folder, threads);
    if (data.empty()) throw UsageError("heed: --data is missing, expected a TSV file of pairs");
    read(engine.model());
    // Opened before the work is done: a name that cannot be written to is known at once.
    std::optional<AtomicFile> output;
    if (!hypotheses_out.empty()) output.emplace(hypotheses_out);
    gates.apply(engine, options.translation.call);
    options.translation.align = align;
    std::optional<Progress> progress;
    if (!json) progress.emplace("pairs", std::ssize(corpus_.pairs));
    options.progress = [&](int64_t done) {
      if (progress) progress->show(done);
    };
    const evaluate::TestSet set(corpus_, engine.text_model().tokenizers(), engine.text_model().task(),
                                engine.model().max_length(), data);
    const auto judged = evaluate::judge(engine, set, options);
    progress.reset();
    if (output) write_hypotheses(judged, *output);
    if (engine.text_model().task() == models::Task::tag) return report_tags(judged);
    Json result = report(judged, set.left_out());
    if (pronouns) {
      const std::vector<grammar::Sentence> sentences = sentences_of(judged);
      result["pronouns"] = report_pronouns(engine, judged, sentences);
      if (paths) report_paths(engine, sentences, result["pronouns"]);
    }
    if (json) print("{}\n", result.dump(2));
  }

 private:
  // Somebody's output, which is all there is.
  void run_without_model() {
    for (const auto& [flag, came] : {std::pair{"--model", !folder.empty()},
                                     {"--hypotheses-out", !hypotheses_out.empty()},
                                     {"--pronouns", pronouns},
                                     {"--paths", paths},
                                     {"--alignments", !alignments.empty()},
                                     {"--gate", gates.given()}}) {
      if (came) throw UsageError(fmt::format("heed: {} and --hypotheses came, expected one of them", flag));
    }
    if (data.empty() == references.empty()) {
      throw UsageError(data.empty() ? "heed: --hypotheses came alone, expected --data or --references to compare with"
                                    : "heed: --data and --references came, expected one of them");
    }
    const Lines found = read_lines(hypotheses);
    read_references();
    if (std::ssize(found) != corpus_.report.lines) {
      throw Error(fmt::format("{}: has {} lines, expected {} as {} has", hypotheses, found.size(), corpus_.report.lines,
                              data.empty() ? references : data));
    }
    std::vector<evaluate::Judged> judged;
    judged.reserve(corpus_.pairs.size());
    for (const text::Pair& pair : corpus_.pairs) {
      judged.push_back({.pair = std::ssize(judged), .translation = found[static_cast<size_t>(pair.line - 1)]});
    }
    const Json result = report(judged, 0);
    if (json) print("{}\n", result.dump(2));
  }

  void read_references() {
    if (!data.empty()) {
      corpus_ = text::read_tsv(data);
      return;
    }
    for (std::string& line : read_lines(references)) {
      corpus_.pairs.push_back({.source = "", .target = std::move(line), .line = ++corpus_.report.lines});
    }
    if (corpus_.pairs.empty()) throw Error(references + ": is empty, expected a reference on each line");
  }

  // A line for each line of the data, also where that was left out.
  void write_hypotheses(const std::vector<evaluate::Judged>& judged, AtomicFile& file) const {
    Lines lines(static_cast<size_t>(corpus_.report.lines));
    for (const evaluate::Judged& one : judged) {
      const text::Pair& pair = corpus_.pairs[static_cast<size_t>(one.pair)];
      lines[static_cast<size_t>(pair.line - 1)] = one.translation.value_or("");
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    file.append(std::as_bytes(std::span(text)));
    file.commit();
  }

  Json report(const std::vector<evaluate::Judged>& judged, int64_t left_out) const {
    Json result = json_of(evaluate::scores_of(judged, corpus_, gold_));
    result["left_out"] = left_out;
    if (!json) print_table(judged, left_out);
    if (lengths) result["by_length"] = by_length(judged);
    return result;
  }

  void read(const models::Model& model) {
    const models::Task task = model.task();
    if (task != models::Task::translate && (pronouns || !alignments.empty() || !hypotheses_out.empty())) {
      throw Error(fmt::format("{}: is {}, which has no translations to look at", folder, data::describe_task(task)));
    }
    train::RunOptions trained;  // the usual columns where the folder does not tell
    folder::read_training(folder, trained);
    corpus_ = text::read_tsv(data, train::columns_of(trained, task));
    if (task != models::Task::translate) return;
    const std::string usual = grammar::file_beside(data, ".align");
    options.align = !alignments.empty() || (model.has_cross_attention() && std::filesystem::exists(usual));
    if (options.align) gold_ = evaluate::read_alignments(alignments.empty() ? usual : alignments, corpus_);
    if (pronouns) sentences_ = grammar::read_sentences(data, corpus_);
  }

  void report_tags(const std::vector<evaluate::Judged>& judged) const {
    const evaluate::Scores scores = evaluate::scores_of(judged, corpus_);
    if (json) {
      const Json result{{"sentences", scores.sentences},
                        {"tokens", scores.tokens},
                        {"right", scores.correct},
                        {"unknown_source", scores.unknown.source.rate()},
                        {"unknown_target", scores.unknown.target.rate()},
                        {"whole_sentences", scores.whole}};
      return print("{}\n", result.dump(2));
    }
    print("{} sentences, {} words: {:.2f} % of the tags are right, and all of them in {:.2f} % of the sentences\n",
          scores.sentences, scores.tokens, percent(scores.correct, scores.tokens),
          percent(scores.whole, scores.sentences));
    print("{}\n", describe(scores.unknown));
  }

  void print_table(const std::vector<evaluate::Judged>& judged, int64_t left_out) const {
    const evaluate::Scores all = evaluate::scores_of(judged, corpus_, gold_);
    if (left_out > 0) {
      print("{} longer than the model can take, and left out\n", counted(left_out, "pair is", "pairs are"));
    }
    print("{}\n", describe(all.unknown));
    print("{:<9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8}\n", "words", "sentences", "BLEU", "chrF", "exact %",
          "token %", "perplexity", "AER %");
    print("{}", row("all", all));
  }

  Json by_length(const std::vector<evaluate::Judged>& judged) const {
    Json list = Json::array();
    for (const evaluate::LengthScores& one : evaluate::scores_by_length(judged, corpus_, gold_)) {
      if (!json) print("{}", row(fmt::format("{}-{}", one.from, one.to), one.scores));
      Json entry{{"from", one.from}, {"to", one.to}};
      entry.update(json_of(one.scores));
      list.push_back(entry);
    }
    return list;
  }

  std::vector<grammar::Sentence> sentences_of(const std::vector<evaluate::Judged>& judged) const {
    std::vector<grammar::Sentence> sentences;
    for (const evaluate::Judged& one : judged) sentences.push_back(sentences_[static_cast<size_t>(one.pair)]);
    return sentences;
  }

  void report_paths(const decode::Engine& engine, const std::vector<grammar::Sentence>& sentences, Json& to) const {
    std::optional<Progress> progress;
    const grammar::GenderCall call{.call = options.translation.call, .progress = [&](int64_t done) {
                                     if (progress) progress->show(done);
                                   }};
    const auto show = [&](const char* name, const auto& made, const auto& text) {
      if (!json) progress.emplace("sentences", std::ssize(sentences));
      const auto found = made();
      progress.reset();
      to[name] = cli::json_of(found);
      if (!json) print("{}", text(found));
      flush_output();
    };
    show(
        "finding", [&] { return grammar::find_nouns(engine, sentences, {}, call); },
        [](const grammar::NounFinding& found) { return text_of(found); });
    show(
        "paths", [&] { return grammar::gender_paths(engine, sentences, call); },
        [](const grammar::GenderPaths& found) { return text_of(found, kShownPaths); });
  }

  Json report_pronouns(const decode::Engine& engine, const std::vector<evaluate::Judged>& judged,
                       const std::vector<grammar::Sentence>& sentences) const {
    std::vector<std::string> translations;
    for (const evaluate::Judged& one : judged) translations.push_back(one.translation.value_or(""));
    const grammar::PronounGenders genders = grammar::pronoun_genders(sentences, translations);
    const grammar::PronounAttention seen = grammar::pronoun_attention(engine, sentences, options.translation.call);
    if (!json) print_pronouns(genders, seen);
    Json heads = Json::array();
    for (const grammar::PronounHead& head : seen.heads) {
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

  static void print_pronouns(const grammar::PronounGenders& genders, const grammar::PronounAttention& seen) {
    print("\npronouns whose gender shows  {}: right {:.1f} %, wrong {:.1f} %, the word is not there {:.1f} %\n",
          genders.pronouns, percent(genders.right, genders.pronouns), percent(genders.wrong, genders.pronouns),
          percent(genders.absent, genders.pronouns));
    if (seen.heads.empty()) return;  // no attention in the encoder
    print(
        "two nouns or more, of which a head of the encoder looks most at the right one, seen from the pronoun ({})\n"
        "and from the word whose translation shows the gender ({}: 'tired' in 'it was tired'), in\n",
        seen.pronouns, seen.agreeing);
    for (const grammar::PronounHead& head : seen.heads) {
      print("  {:<24} {:>5.1f} % {:>5.1f} %\n", fmt::format("{}.{}", head.layer, head.head),
            percent(head.found, seen.pronouns), percent(head.found_from_agreeing, seen.agreeing));
    }
    print("  {:<24} {:>5.1f} %\n", "any noun",
          100 * seen.by_chance / static_cast<double>(std::max<int64_t>(1, seen.pronouns)));
  }

  text::Corpus corpus_;
  std::vector<text::Alignment> gold_;
  std::vector<grammar::Sentence> sentences_;
};

}  // namespace

void add_evaluate(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("evaluate", kHelp);
  auto command = std::make_shared<Command>();
  app->add_option("--model", command->folder, "Folder of the model")->type_name("DIR");
  app->add_option("--data", command->data, "Pairs to measure with: TSV; - is standard input")->type_name("FILE");
  app->add_option("--hypotheses-out", command->hypotheses_out, "Write what the model writes to this file, a line each")
      ->type_name("FILE");
  app->add_option("--hypotheses", command->hypotheses,
                  "Measure this output instead of a model's, a line for each of --data")
      ->type_name("FILE");
  app->add_option("--references", command->references, "Lines to compare --hypotheses with, in place of --data")
      ->type_name("FILE");
  app->add_option("--alignments", command->alignments, "Gold alignments, line by line; by default .align beside --data")
      ->type_name("FILE");
  add_threads(*app, command->threads);
  app->add_flag("--by-length", command->lengths, "Also by length of the sentence");
  app->add_flag("--pronouns", command->pronouns, "Also whether pronouns are understood");
  app->add_flag("--paths", command->paths, "Also by which path their gender reaches the translation");
  app->add_flag("--json", command->json, "One JSON object on standard output");
  command->gates.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
