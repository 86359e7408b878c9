// SPDX-License-Identifier: Apache-2.0
#include "bench/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/decoding.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "heed/analysis/heads.h"
#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/lens.h"
#include "heed/analysis/links.h"
#include "heed/analysis/patch.h"
#include "heed/analysis/rollout.h"
#include "heed/base/error.h"
#include "heed/base/rng.h"
#include "heed/folder/model_folder.h"
#include "heed/grammar/grammar.h"
#include "heed/text/corpus.h"
#include "heed/text/words.h"

namespace heed::bench {
namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::optional<std::vector<double>>;  // of each token of the source
using nn::TextSide;

constexpr uint64_t kSeed = 1;

// What is asked about one text, and where the token that is meant was chosen.
struct Item {
  analysis::Question question;
  int64_t position;
  bool language;

  TextSide side() const { return language ? TextSide::target : TextSide::source; }
  int64_t tokens() const { return std::ssize(language ? question.pair().target : question.pair().source); }
};

struct Method {
  std::string name;
  std::function<Numbers(const nn::Pass&, const Item&)> run;
};

// Of all heads together, from the place where the token was chosen to each token of the source.
Numbers sum_of(const std::vector<analysis::HeadLinks>& links, const Item& item) {
  if (item.language) return {};
  std::vector<double> sum(static_cast<size_t>(item.tokens()));
  for (const analysis::HeadLinks& one : links) {
    if (one.role != nn::AttentionRole::cross) continue;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.links[i];
  }
  return sum;
}

Numbers without_end(std::vector<double> numbers, const Item& item) {
  if (item.language) return {};
  numbers.resize(static_cast<size_t>(item.tokens()));
  return numbers;
}

std::vector<Method> methods(const ExplainBenchOptions& options, bool language) {
  const auto queries = [](const Item& item) { return analysis::Queries{.target = {item.position}}; };
  std::vector<Method> all = {
      {"weights",
       [=](auto& pass, auto& item) { return sum_of(weight_links(pass, item.question, queries(item)), item); }},
      {"values", [=](auto& pass, auto& item) { return sum_of(value_links(pass, item.question, queries(item)), item); }},
      {"rollout",
       [](auto& pass, auto& item) {
         return without_end(analysis::rollout(pass, item.question, TextSide::target, item.position).source, item);
       }},
      {"gradients",
       [=](auto& pass, auto& item) { return sum_of(gradient_links(pass, item.question, queries(item)), item); }},
      {"heads",
       [](auto& pass, auto& item) {
         analysis::head_gradients(pass, item.question);
         return Numbers();
       }},
      {"one head off",
       [](auto& pass, auto& item) {
         analysis::effect_of(pass, item.question, {});
         return Numbers();
       }},
      {"patching",
       [](auto& pass, auto& item) {
         analysis::patched(pass, item.question, item.question, {});
         return Numbers();
       }},
      {"lens",
       [](auto& pass, auto& item) {
         analysis::logit_lens(pass, item.question);
         return Numbers();
       }},
      {fmt::format("integrated, {} steps", options.steps), [&options](auto& pass, auto& item) {
         return without_end(analysis::integrated_gradients(pass, item.question, {.steps = options.steps}).source, item);
       }}};
  if (language) return all;
  all.push_back({"leave-out", [](auto& pass, auto& item) {
                   std::vector<std::vector<int64_t>> each(static_cast<size_t>(item.tokens()));
                   for (size_t i = 0; i < each.size(); ++i) each[i] = {static_cast<int64_t>(i)};
                   std::vector<double> changes;
                   for (const auto& change : analysis::leave_out(pass, item.question, each)) {
                     changes.push_back(change.value_or(0));
                   }
                   return Numbers(changes);
                 }});
  return all;
}

void to_sizes(std::vector<double>& numbers) {
  for (double& number : numbers) number = std::abs(number);
}

// Half the number of a tie's places lies before each of its values.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

size_t largest(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::vector<data::TokenPair> pairs_of(const decode::Engine& engine, const ExplainBenchOptions& options) {
  const data::TextModel& model = engine.text_model();
  std::vector<data::TokenPair> pairs;
  const auto add = [&](const std::string& source, const std::string& target) {
    data::TokenPair pair{model.source().encode(source), model.target().encode(target)};
    const int64_t longest = std::max(std::ssize(pair.source), std::ssize(pair.target));
    if (pair.source.empty() || pair.target.empty() || longest >= model.model().max_length()) return;
    pairs.push_back(std::move(pair));
  };
  if (model.task() == models::Task::language) {
    for (const auto& ids : random_ids(options.sentences, options.length, options.length, model.model().vocabulary())) {
      pairs.push_back({{}, ids});
    }
  } else if (options.data.empty()) {
    grammar::Grammar grammar(kSeed);
    while (std::ssize(pairs) < options.sentences) {
      const grammar::Sentence sentence = grammar.next();
      add(text::detokenise(sentence.source), text::detokenise(sentence.target));
    }
  } else {
    for (const text::Pair& pair : text::read_tsv(options.data).pairs) {
      if (std::ssize(pairs) < options.sentences) add(pair.source, pair.target);
    }
  }
  if (pairs.empty()) throw Error(options.data + " has no pair that the model can take, expected one a line");
  return pairs;
}

std::string line_of(const ExplainFigures& f) {
  const auto cell = [](const std::optional<double>& value, double factor) {
    return value ? fmt::format("{:>9.2f}", factor * *value) : fmt::format("{:>9}", "-");
  };
  return fmt::format("{:<22} {:>10.3f} {:>8.2f} {} {}", f.method, f.ms, f.ratio, cell(f.spearman, 1),
                     cell(f.same_first, 100));
}

Json to_json(const ExplainReport& report) {
  Json rows = Json::array();
  for (const ExplainFigures& f : report.rows) {
    rows.push_back({{"method", f.method},
                    {"ms", rounded(f.ms)},
                    {"times_plain", rounded(f.ratio)},
                    {"spearman", optional(f.spearman)},
                    {"same_first", optional(f.same_first)}});
  }
  return {{"texts", report.texts},
          {"tokens", report.tokens},
          {"plain_ms", rounded(report.plain_ms)},
          {"same_first_by_chance", rounded(report.by_chance)},
          {"rows", rows}};
}

}  // namespace

double spearman(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean), xx += (x[i] - mean) * (x[i] - mean), yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

ExplainReport measure_explain(const decode::Engine& engine, std::span<const data::TokenPair> pairs,
                              const ExplainBenchOptions& options) {
  const models::Model& model = engine.model();
  const bool language = model.task() == models::Task::language;
  const std::vector<Method> all = methods(options, language);
  decode::InferencePass inference(engine, {});
  const nn::Pass& pass = inference;
  const Clock clock = clock_for(engine.parallel());
  ExplainReport report;
  std::vector<double> plain;
  std::vector<std::vector<double>> seconds(all.size()), ratios(all.size());
  Rng rng(kSeed);
  for (const data::TokenPair& pair : pairs) {
    const auto length = static_cast<uint64_t>(pair.target.size());
    const auto position = static_cast<int64_t>(language ? length - 1 : rng.below(length));
    const Item item{analysis::Question(model, pair, {.position = position}, engine.text_model().special()), position,
                    language};
    if (report.texts == 0) item.question.measure(pass);  // what is made once
    plain.push_back(time(clock, [&] { item.question.measure(pass); }));
    std::vector<Numbers> found(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      seconds[i].push_back(time(clock, [&] { found[i] = all[i].run(pass, item); }));
      ratios[i].push_back(seconds[i].back() / plain.back());
    }
    ++report.texts;
    report.tokens += item.tokens();
    if (language) continue;
    report.rows.resize(all.size());
    report.by_chance += 1 / static_cast<double>(item.tokens());
    std::vector<double> measured = *found.back();
    to_sizes(measured);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!found[i]) continue;
      to_sizes(*found[i]);
      ExplainFigures& row = report.rows[i];
      row.spearman = row.spearman.value_or(0) + spearman(*found[i], measured);
      row.same_first = row.same_first.value_or(0) + (largest(*found[i]) == largest(measured) ? 1 : 0);
    }
  }
  const auto texts = static_cast<double>(report.texts);
  report.rows.resize(all.size());
  report.by_chance /= texts;
  report.plain_ms = 1e3 * median(plain);
  for (size_t i = 0; i < all.size(); ++i) {
    ExplainFigures& row = report.rows[i];
    row.method = all[i].name, row.ms = 1e3 * median(seconds[i]), row.ratio = median(ratios[i]);
    if (row.spearman) *row.spearman /= texts;
    if (row.same_first) *row.same_first /= texts;
  }
  return report;
}

void bench_explain(const ExplainBenchOptions& options) {
  if (options.model.empty()) throw Error("--model is missing, expected a folder that heed train made");
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const decode::Engine engine(folder::open(options.model, {.threads = options.threads, .pack = false}),
                              options.threads);
  const models::Task task = engine.text_model().task();
  if (task != models::Task::translate && task != models::Task::language) {
    throw Error(fmt::format("{}: is {}, expected a model that translates or goes on with a text", options.model,
                            data::describe_task(task)));
  }
  const ExplainReport report = measure_explain(engine, pairs_of(engine, options), options);
  print_line(machine_line(engine.parallel().threads()));
  print_line(fmt::format("{}, {} texts, {} tokens; a plain pass takes {:.3f} ms", options.model, report.texts,
                         report.tokens, report.plain_ms));
  print_line(fmt::format("{:<22} {:>10} {:>8} {:>9} {:>9}", "method", "ms", "x plain", "spearman", "first %"));
  for (const ExplainFigures& f : report.rows) print_line(line_of(f));
  if (task == models::Task::translate) {
    print_line(fmt::format("{:<22} {:>10} {:>8} {:>9} {:>9.2f}", "any token", "", "", "", 100 * report.by_chance));
  }
  print_line(fmt::format("peak memory {:.1f} MiB", peak_megabytes()));
  if (!file) return;
  Json all = machine_facts(engine.parallel().threads());
  all["model"] = options.model;
  all.update(to_json(report));
  all["peak_mib"] = rounded(peak_megabytes());
  file->commit(all.dump(2) + "\n");
}

}  // namespace heed::bench
