// SPDX-License-Identifier: Apache-2.0
#include "bench/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/measure.h"
#include "bench/report.h"
#include "heed/base/error.h"
#include "heed/grammar/grammar.h"
#include "heed/text/lines.h"
#include "heed/text/words.h"

namespace heed::bench {
namespace {

using Json = nlohmann::ordered_json;

// Of random ids, and of outputs that no training has taught to end.
constexpr int64_t kShortest = 8, kLongest = 24, kForced = 24;
constexpr uint64_t kGrammarSeed = 1;

Ids sources_of_file(const decode::Engine& engine, const std::string& path, int64_t most) {
  std::vector<std::string> sentences;
  auto lines = text::open_lines(path);
  for (std::string line; std::ssize(sentences) < most && lines.next(line);) {
    line.resize(std::min(line.size(), line.find('\t')));
    if (!line.empty()) sentences.push_back(line);
  }
  if (sentences.empty()) throw Error(path + " has no sentence, expected one a line");
  return engine.encode(sentences);
}

// Nothing where a word is not known.
std::optional<Ids> sources_of_grammar(const decode::Engine& engine, int64_t count) {
  if (!engine.text_model().has_tokenizers()) return std::nullopt;
  grammar::Grammar grammar(kGrammarSeed);
  std::vector<std::string> sentences(static_cast<size_t>(count));
  for (std::string& sentence : sentences) sentence = text::detokenise(grammar.next().source);
  Ids sources = engine.encode(sentences);
  const int32_t unknown = engine.text_model().special().unknown;
  const bool fits = std::none_of(sources.begin(), sources.end(), [&](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), unknown) != ids.end();
  });
  return fits ? std::optional(std::move(sources)) : std::nullopt;
}

decode::TranslateOptions call_options(const TranslateBenchOptions& options, int64_t beam, int64_t batch) {
  const bool random = options.subject.model.empty();
  const int64_t forced = options.length > 0 ? options.length : random && options.max_length == 0 ? kForced : 0;
  decode::TranslateOptions call;
  call.search.beam = beam;
  call.search.min_length = forced;
  call.search.max_length = forced > 0 ? forced : options.max_length;
  call.call.batch.rows = batch;
  return call;
}

Json to_json(const TranslateFigures& f, const TranslateBenchOptions& options) {
  Json row = {{"beam", f.beam},
              {"batch", f.batch},
              {"seconds", rounded(f.seconds)},
              {"tokens", f.tokens},
              {"tokens_per_second", rounded(f.tokens_per_second())}};
  if (options.ids) row["outputs"] = f.outputs;
  return row;
}

void check_list(const char* flag, const std::vector<int64_t>& values) {
  if (values.empty()) throw Error(fmt::format("{} is empty, expected numbers such as 1,4", flag));
  for (const int64_t value : values) {
    if (value < 1 || value > 1024) throw Error(fmt::format("{} has {}, expected 1 to 1024", flag, value));
  }
}

}  // namespace

Ids translate_sources(const decode::Engine& engine, const TranslateBenchOptions& options) {
  if (!options.data.empty()) return sources_of_file(engine, options.data, options.sentences);
  if (auto sources = sources_of_grammar(engine, options.sentences)) return *std::move(sources);
  return random_ids(options.sentences, kShortest, kLongest, engine.model().source_vocabulary());
}

std::vector<TranslateFigures> measure_translate(const decode::Translator& translator, const Ids& sources,
                                                const TranslateBenchOptions& options) {
  std::vector<TranslateFigures> rows;
  for (const int64_t batch : options.batches) {
    for (const int64_t beam : options.beams) rows.push_back({.beam = beam, .batch = batch});
  }
  std::vector<std::vector<double>> seconds(rows.size());
  for (int64_t round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      TranslateFigures& row = rows[i];
      const decode::TranslateOptions call = call_options(options, row.beam, row.batch);
      std::vector<decode::Translations> found;
      const double taken = time(Clock::wall, [&] { found = translator.translate_ids(sources, call); });
      if (round > 0) {
        seconds[i].push_back(taken);
        continue;
      }
      for (const decode::Translations& best_first : found) {
        row.outputs.push_back(best_first.front().tokens);
        row.tokens += std::ssize(row.outputs.back());
      }
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) rows[i].seconds = median(seconds[i]);
  return rows;
}

void bench_translate(const TranslateBenchOptions& options) {
  check_list("--beam", options.beams);
  check_list("--batch", options.batches);
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const Subject subject = open_subject(options.subject, models::Task::translate, options.threads);
  const decode::Translator translator(subject.engine);
  const Ids sources = translate_sources(subject.engine, options);
  int64_t source_tokens = 0;
  for (const std::vector<int32_t>& source : sources) source_tokens += std::ssize(source);
  print_line(line_of(subject));
  print_line(fmt::format("{} sentences of {} tokens, {} rounds", sources.size(), source_tokens, options.rounds));
  print_line(fmt::format("{:>6} {:>6} {:>10} {:>10} {:>10}", "batch", "beam", "ms", "tokens", "tokens/s"));
  Json all = facts_of(subject);
  all["rounds"] = options.rounds;
  all["sentences"] = sources.size();
  all["source_tokens"] = source_tokens;
  all["rows"] = Json::array();
  for (const TranslateFigures& f : measure_translate(translator, sources, options)) {
    print_line(fmt::format("{:>6} {:>6} {:>10.2f} {:>10} {:>10.1f}", f.batch, f.beam, 1e3 * f.seconds, f.tokens,
                           f.tokens_per_second()));
    all["rows"].push_back(to_json(f, options));
  }
  print_line(fmt::format("peak memory {:.1f} MiB", peak_megabytes()));
  all["peak_mib"] = rounded(peak_megabytes());
  if (options.ids) all["sources"] = sources;
  if (file) file->commit(all.dump(options.ids ? -1 : 2) + "\n");
}

}  // namespace heed::bench
