// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/noun_finding.h"

#include <algorithm>

#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/rollout.h"
#include "heed/analysis/word_links.h"
#include "heed/grammar/counterparts.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using nn::TextSide;

class Counter {
 public:
  explicit Counter(const NounFindingOptions& options) : options_(options) {}

  void add(const nn::Pass& pass, const GenderQuestion& asked) {
    ++result.words;
    if (asked.question.measure(pass) <= 0) return;
    ++result.right;
    result.by_chance += 1 / static_cast<double>(asked.nouns.size());
    for (const auto& [from, place] : places(asked)) {
      links(pass, asked, from, place);
      rollout(pass, asked, from, place);
    }
    whole(pass, asked);
  }

  NounFinding result{};

 private:
  using Place = std::pair<From, analysis::WordPlace>;
  static std::array<Place, 3> places(const GenderQuestion& asked) {
    return {Place{From::pronoun, {TextSide::source, static_cast<size_t>(asked.word.pronoun)}},
            Place{From::agreeing, {TextSide::source, static_cast<size_t>(asked.word.source)}},
            Place{From::target, {TextSide::target, static_cast<size_t>(asked.word.target)}}};
  }

  // Of a number for each word of the source, the largest of a noun: is it that of the right one?
  void count(const GenderQuestion& asked, const std::string& method, const std::string& head, From from,
             const std::vector<double>& words) {
    const auto strongest = std::max_element(asked.nouns.begin(), asked.nouns.end(), [&](int a, int b) {
      return words[static_cast<size_t>(a)] < words[static_cast<size_t>(b)];
    });
    std::optional<int64_t>& found = finder(method, head).found[static_cast<size_t>(from)];
    found = found.value_or(0) + (*strongest == asked.referent.noun);
  }

  NounFinder& finder(const std::string& method, const std::string& head) {
    for (NounFinder& one : result.finders) {
      if (one.method == method && one.head == head) return one;
    }
    return result.finders.emplace_back(NounFinder{method, head, {}});
  }

  void links(const nn::Pass& pass, const GenderQuestion& asked, From from, const analysis::WordPlace& place) {
    using analysis::LinkMethod;
    for (const auto& [name, method] : {std::pair{"weights", LinkMethod::weights},
                                       {"values", LinkMethod::values},
                                       {"gradients", LinkMethod::gradients}}) {
      std::vector<double> sum(asked.sentence.source.size());
      for (const analysis::WordLinks& one : analysis::word_links(pass, asked.reading, asked.question, place, method)) {
        if (one.keys != TextSide::source) continue;
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.links.words[i];
        count(asked, name, one.layer + "." + std::to_string(one.head), from, one.links.words);
      }
      count(asked, name, "", from, sum);
    }
  }

  void rollout(const nn::Pass& pass, const GenderQuestion& asked, From from, const analysis::WordPlace& place) {
    const analysis::Queries queries = asked.reading.queries(place);
    const std::vector<int64_t>& tokens = place.side == TextSide::source ? queries.source : queries.target;
    std::vector<double> sum(asked.sentence.source.size());
    for (const int64_t token : tokens) {
      const std::vector<double> shares = analysis::rollout(pass, asked.question, place.side, token).source;
      const analysis::ByWord words = asked.reading.by_word(TextSide::source, shares);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += words.words[i];
    }
    count(asked, "rollout", "", from, sum);
  }

  // What is asked of the whole model, and so from the word that it chose.
  void whole(const nn::Pass& pass, const GenderQuestion& asked) {
    if (options_.steps > 0) {
      const auto shares = analysis::integrated_gradients(pass, asked.question, {.steps = options_.steps});
      count(asked, "integrated", "", From::target, asked.reading.by_word(TextSide::source, shares.source).words);
    }
    const std::vector<std::vector<int64_t>> tokens = asked.reading.tokens_of_words();
    std::vector<std::vector<int64_t>> of_nouns;
    of_nouns.reserve(asked.nouns.size());
    for (const int noun : asked.nouns) of_nouns.push_back(tokens[static_cast<size_t>(noun)]);
    const auto changes = analysis::leave_out(pass, asked.question, of_nouns);
    std::vector<double> drops(asked.sentence.source.size());
    for (size_t i = 0; i < of_nouns.size(); ++i) drops[static_cast<size_t>(asked.nouns[i])] = -changes[i].value_or(0);
    count(asked, "leave-out", "", From::target, drops);
  }

  const NounFindingOptions options_;
};

}  // namespace

const NounFinder* NounFinding::best(const std::string& method, From from) const {
  const NounFinder* best = nullptr;
  const auto at = static_cast<size_t>(from);
  for (const NounFinder& one : finders) {
    if (one.method != method || one.head.empty() || !one.found[at]) continue;
    if (!best || one.found[at] > best->found[at]) best = &one;
  }
  return best;
}

NounFinding find_nouns(const decode::Engine& engine, std::span<const Sentence> sentences,
                       const NounFindingOptions& options, const GenderCall& call) {
  Counter counter(options);
  for_each_gender_question(engine, sentences, call,
                           [&](const nn::Pass& pass, const GenderQuestion& asked) { counter.add(pass, asked); });
  return std::move(counter.result);
}

}  // namespace heed::grammar
