// SPDX-License-Identifier: Apache-2.0
#include "cli/gender_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace heed::cli {
namespace {

using grammar::From;

constexpr std::array<From, 3> kFrom = {From::pronoun, From::agreeing, From::target};
constexpr const char* kMethods[] = {"weights", "values", "gradients", "rollout", "integrated", "leave-out"};

double percent(double part, int64_t all) { return 100 * part / static_cast<double>(std::max<int64_t>(1, all)); }
double mean(double sum, int64_t count) { return sum / static_cast<double>(std::max<int64_t>(1, count)); }

// "86.2 % encoder.1.self.2", or a dash.
std::string cell(const grammar::NounFinder* one, From from, int64_t all) {
  const auto found = one ? one->found[static_cast<size_t>(from)] : std::nullopt;
  if (!found) return "-";
  return fmt::format("{:5.1f} % {}", percent(static_cast<double>(*found), all), one->head);
}

std::string row(const std::string& name, const std::array<std::string, 3>& cells) {
  std::string line = fmt::format("  {:<22}{:<26}{:<26}{}", name, cells[0], cells[1], cells[2]);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

Json json_of(const grammar::PathsOfPairs& pairs) {
  Json list = Json::array();
  for (const grammar::PatchedPath& one : pairs.patched) {
    list.push_back({{"name", one.name}, {"flips", one.flips}, {"change", mean(one.change, pairs.flipped)}});
  }
  return {{"pairs", pairs.pairs},
          {"flipped", pairs.flipped},
          {"change", mean(pairs.way, pairs.flipped)},
          {"patched", list}};
}

// Those that flip most, by the size of what they change where they flip alike.
template <class List>
std::vector<const typename List::value_type*> strongest(const List& list, size_t top) {
  std::vector<const typename List::value_type*> all;
  for (const auto& one : list) all.push_back(&one);
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return a->flips != b->flips ? a->flips > b->flips : a->change < b->change;
  });
  all.resize(std::min(all.size(), top));
  return all;
}

std::string table(const grammar::PathsOfPairs& pairs, const char* what, size_t top) {
  std::string text = fmt::format(
      "\n{}: {} pairs, of which it flips {:.1f} %, by {:+.2f} nats; with outputs taken from there, of these\n", what,
      pairs.pairs, percent(static_cast<double>(pairs.flipped), pairs.pairs), mean(pairs.way, pairs.flipped));
  for (const grammar::PatchedPath* one : strongest(pairs.patched, top)) {
    text += fmt::format("  {:<42} {:>5.1f} % flip {:>+8.2f} nats, {:>4.0f} % of the way\n", one->name,
                        percent(static_cast<double>(one->flips), pairs.flipped), mean(one->change, pairs.flipped),
                        pairs.way != 0 ? 100 * one->change / pairs.way : 0);
  }
  return text;
}

}  // namespace

Json json_of(const grammar::NounFinding& finding) {
  Json list = Json::array();
  for (const grammar::NounFinder& one : finding.finders) {
    Json& entry = list.emplace_back(Json{{"method", one.method}});
    if (!one.head.empty()) entry["head"] = one.head;
    for (const From from : kFrom) {
      const auto at = static_cast<size_t>(from);
      if (one.found[at]) entry[grammar::kFromNames[at]] = *one.found[at];
    }
  }
  return {{"words", finding.words}, {"right", finding.right}, {"by_chance", finding.by_chance}, {"finders", list}};
}

Json json_of(const grammar::GenderPaths& paths) {
  Json off = Json::array();
  for (const grammar::HeadOff& one : paths.off) {
    off.push_back({{"name", one.name},
                   {"flips", one.flips},
                   {"change", mean(one.change, paths.adjective.flipped)},
                   {"gradient", mean(one.gradient, paths.adjective.flipped)}});
  }
  return {{"adjective", json_of(paths.adjective)}, {"noun", json_of(paths.noun)}, {"off", off}};
}

std::string text_of(const grammar::NounFinding& finding) {
  std::string text = fmt::format(
      "\nwords that agree with a pronoun, where the nouns differ in gender  {}: the model prefers the right form in "
      "{:.1f} %\nof these, the noun that gets most is the right one (by chance {:.1f} %)\n",
      finding.words, percent(static_cast<double>(finding.right), finding.words),
      percent(finding.by_chance, finding.right));
  text += row("", {"from the pronoun", "from the word that agrees", "from the word chosen"});
  for (const std::string method : kMethods) {
    const auto all = std::find_if(finding.finders.begin(), finding.finders.end(),
                                  [&](const auto& one) { return one.method == method && one.head.empty(); });
    if (all == finding.finders.end()) continue;
    std::array<std::string, 3> best, sum;
    bool heads = false;
    for (size_t i = 0; i < kFrom.size(); ++i) {
      const grammar::NounFinder* one = finding.best(method, kFrom[i]);
      heads = heads || one;
      best[i] = cell(one, kFrom[i], finding.right), sum[i] = cell(&*all, kFrom[i], finding.right);
    }
    if (heads) text += row(method + ", best head", best);
    text += row(heads ? method + ", all heads" : method, sum);
  }
  return text;
}

std::string text_of(const grammar::GenderPaths& paths, size_t top) {
  std::string text = table(paths.adjective, "the other noun's adjective ('too wide' for 'too tired')", top);
  text += table(paths.noun, "a noun of the other gender in the referent's place", top);
  text += "\nswitched off, in the sentences whose adjective was changed\n";
  for (const grammar::HeadOff* one : strongest(paths.off, top)) {
    text += fmt::format("  {:<42} {:>5.1f} % flip {:>+8.2f} nats, {:>+8.2f} by its gradient\n", one->name,
                        percent(static_cast<double>(one->flips), paths.adjective.flipped),
                        mean(one->change, paths.adjective.flipped), -mean(one->gradient, paths.adjective.flipped));
  }
  return text;
}

}  // namespace heed::cli
