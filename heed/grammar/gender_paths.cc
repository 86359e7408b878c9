// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/gender_paths.h"

#include <algorithm>
#include <utility>

#include "heed/analysis/heads.h"
#include "heed/analysis/patch.h"
#include "heed/grammar/counterparts.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using nn::TextSide;

// The entry of that name, which is made where there is none yet.
template <class Entry>
Entry& named(std::vector<Entry>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Entry& one) { return one.name == name; });
  if (found != list.end()) return *found;
  list.push_back({.name = name});
  return list.back();
}

std::string name_of(const analysis::HeadValue& one) {
  return one.head < 0 ? one.layer : one.layer + "." + std::to_string(one.head);
}

// Patching of one pair of sentences, added to what is known of all.
class Pair {
 public:
  Pair(const nn::Pass& pass, const GenderQuestion& asked, const analysis::Question& other, PathsOfPairs& to)
      : asked_(asked), patching_(pass, asked.question, other), to_(to) {}

  bool flips() const { return patching_.own() > 0 && patching_.other() < 0; }

  void add() {
    to_.way += patching_.other() - patching_.own();
    for (const analysis::HeadValue& one : patching_.heads()) add(name_of(one), one.value);
    const std::vector<analysis::HeadValue> layers = patching_.layers();
    for (const analysis::HeadValue& one : layers) add(one.layer, one.value);
    const std::pair<const char*, int> words[] = {{"the pronoun", asked_.word.pronoun},
                                                 {"the word that agrees", asked_.word.source}};
    for (const auto& [name, word] : words) {
      const std::vector<int64_t> at = asked_.reading.queries({TextSide::source, static_cast<size_t>(word)}).source;
      std::vector<analysis::PatchSite> together;
      for (const analysis::HeadValue& one : layers) {
        if (!one.layer.starts_with("encoder.")) continue;
        together.push_back({.layer = one.layer, .positions = at});
        add(one.layer + " at " + name, patching_.value({together.back()}));
      }
      if (!together.empty()) add(std::string("the encoder at ") + name, patching_.value(together));
    }
  }

 private:
  void add(const std::string& name, double value) {
    PatchedPath& path = named(to_.patched, name);
    path.flips += value < 0;
    path.change += value - patching_.own();
  }

  const GenderQuestion& asked_;
  const analysis::Patching patching_;
  PathsOfPairs& to_;
};

class Counter {
 public:
  void add(const nn::Pass& pass, const GenderQuestion& asked) {
    if (patch(pass, asked, with_other_adjective(asked.sentence, asked.word), result.adjective)) switch_off(pass, asked);
    patch(pass, asked, with_other_noun(asked.sentence, asked.referent.noun), result.noun);
  }

  GenderPaths result{};

 private:
  static bool patch(const nn::Pass& pass, const GenderQuestion& asked,
                    const std::optional<std::vector<std::string>>& counterpart, PathsOfPairs& to) {
    if (!counterpart) return false;
    data::TokenPair other = asked.reading.with_text(text::detokenise(*counterpart));
    if (other.source.size() != asked.reading.pair().source.size()) return false;  // subwords
    const analysis::Question question = analysis::question_of(asked.question, std::move(other));
    if (asked.question.measure(pass) <= 0) return false;
    ++to.pairs;
    Pair pair(pass, asked, question, to);
    if (!pair.flips()) return false;
    ++to.flipped;
    pair.add();
    return true;
  }

  void switch_off(const nn::Pass& pass, const GenderQuestion& asked) {
    const double own = asked.question.measure(pass);
    for (const analysis::HeadValue& one : analysis::head_gradients(pass, asked.question)) {
      HeadOff& head = named(result.off, name_of(one));
      const double change = analysis::effect_of(pass, asked.question, {{one.layer, one.head, 0}});
      head.flips += own + change < 0;
      head.change += change;
      head.gradient += one.value;
    }
  }
};

}  // namespace

GenderPaths gender_paths(const decode::Engine& engine, std::span<const Sentence> sentences, const GenderCall& call) {
  Counter counter;
  for_each_gender_question(engine, sentences, call,
                           [&](const nn::Pass& pass, const GenderQuestion& asked) { counter.add(pass, asked); });
  return std::move(counter.result);
}

}  // namespace heed::grammar
