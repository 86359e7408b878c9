// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/agreement.h"

#include <algorithm>
#include <array>
#include <map>

#include "heed/base/error.h"
#include "heed/grammar/lexicon.h"
#include "heed/grammar/spanish.h"
#include "heed/text/metrics.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

// Every form that shows a gender, with the form of the other.
using OtherForms = std::map<std::string, std::string, std::less<>>;

void add_both(OtherForms& forms, const std::string& masculine, const std::string& feminine) {
  if (masculine == feminine) return;
  forms.emplace(masculine, feminine);
  forms.emplace(feminine, masculine);
}

const OtherForms& pronouns() {
  static const OtherForms kForms = [] {
    OtherForms forms;
    add_both(forms, "lo", "la");
    add_both(forms, "los", "las");
    return forms;
  }();
  return kForms;
}

const OtherForms& predicates() {
  static const OtherForms kForms = [] {
    OtherForms forms;
    for (const Adjective& one : adjectives()) {
      for (const Number number : {Number::singular, Number::plural}) {
        add_both(forms, spanish::adjective_form(one, {Gender::masculine, number}),
                 spanish::adjective_form(one, {Gender::feminine, number}));
      }
    }
    return forms;
  }();
  return kForms;
}

// The adjectives of 'it was not too old and dirty', from behind 'it' on.
std::vector<int> predicate_after(const Sentence& sentence, int pronoun) {
  const auto tag = [&](size_t i) { return i < sentence.tags.size() ? sentence.tags[i] : Tag::punct; };
  auto i = static_cast<size_t>(pronoun) + 1;
  std::vector<int> found;
  if (tag(i) != Tag::aux) return found;
  ++i;
  while (tag(i) == Tag::part || tag(i) == Tag::adv) ++i;
  while (tag(i) == Tag::adj) {
    found.push_back(static_cast<int>(i));
    if (tag(i + 1) != Tag::cconj) break;
    i += 2;
  }
  return found;
}

void add_translations(const Sentence& sentence, int pronoun, int source, const OtherForms& forms,
                      std::vector<AgreeingWord>& words) {
  for (const Link& link : sentence.alignment) {
    if (link.source != source || link.certainty != Certainty::sure) continue;
    const auto other = forms.find(sentence.target[static_cast<size_t>(link.target)]);
    if (other != forms.end()) words.push_back({pronoun, source, link.target, other->second});
  }
}

// Which token of b stands at each place of a, by the fewest edits; -1 where none does.
std::vector<int> places(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<size_t>> cost(n + 1, std::vector<size_t>(m + 1));  // of a from i on, b from j on
  for (size_t i = n + 1; i-- > 0;) {
    for (size_t j = m + 1; j-- > 0;) {
      if (i == n || j == m) {
        cost[i][j] = n - i + (m - j);
      } else {
        cost[i][j] = std::min({cost[i + 1][j + 1] + (a[i] != b[j]), cost[i + 1][j] + 1, cost[i][j + 1] + 1});
      }
    }
  }
  std::vector<int> result(n, -1);
  for (size_t i = 0, j = 0; i < n && j < m;) {
    if (cost[i][j] == cost[i + 1][j + 1] + (a[i] != b[j])) {
      result[i++] = static_cast<int>(j++);
    } else if (cost[i][j] == cost[i + 1][j] + 1) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

std::vector<Tag> tags_of(const std::string& text) {
  std::vector<Tag> tags;
  for (const std::string& word : text::words_and_marks(text)) {
    int found = -1;
    for (int i = 0; i <= static_cast<int>(Tag::verb); ++i) {
      if (name(static_cast<Tag>(i)) == word) found = i;
    }
    if (found < 0) throw Error("'" + word + "' is no tag, expected such as NOUN");
    tags.push_back(static_cast<Tag>(found));
  }
  return tags;
}

}  // namespace

std::vector<AgreeingWord> agreeing_words(const Sentence& sentence) {
  std::vector<AgreeingWord> words;
  for (const Referent& referent : sentence.referents) {
    add_translations(sentence, referent.pronoun, referent.pronoun, pronouns(), words);
    for (const int adjective : predicate_after(sentence, referent.pronoun)) {
      add_translations(sentence, referent.pronoun, adjective, predicates(), words);
    }
  }
  return words;
}

Verdict judge(const AgreeingWord& word, const std::vector<std::string>& reference,
              const std::vector<std::string>& translation) {
  const auto at = static_cast<size_t>(word.target);
  const int place = places(reference, translation).at(at);
  if (place < 0) return Verdict::absent;
  const std::string& there = translation[static_cast<size_t>(place)];
  return there == reference[at] ? Verdict::right : there == word.other ? Verdict::wrong : Verdict::absent;
}

Sentence sentence_of(const std::string& source, const std::string& target, const std::string& alignment,
                     const std::string& referents, const std::string& tags) {
  Sentence sentence;
  sentence.source = text::words_and_marks(source);
  sentence.target = text::words_and_marks(target);
  sentence.tags = tags_of(tags);
  const auto check = [](const char* what, int64_t number, size_t count) {
    if (number < static_cast<int64_t>(count)) return;
    throw Error(std::string(what) + " " + std::to_string(number) + " is not there, expected below " +
                std::to_string(count));
  };
  if (sentence.tags.size() != sentence.source.size()) {
    throw Error(std::to_string(sentence.tags.size()) + " tags for " + std::to_string(sentence.source.size()) +
                " tokens, expected as many");
  }
  for (const text::AlignmentLink& link : text::parse_alignment(alignment)) {
    check("source token", link.source, sentence.source.size());
    check("target token", link.target, sentence.target.size());
    sentence.alignment.push_back({static_cast<int>(link.source), static_cast<int>(link.target),
                                  link.sure ? Certainty::sure : Certainty::possible});
  }
  for (const text::AlignmentLink& link : text::parse_alignment(referents)) {  // the same form: pronoun-noun
    check("pronoun", link.source, sentence.source.size());
    check("noun", link.target, sentence.source.size());
    sentence.referents.push_back({static_cast<int>(link.source), static_cast<int>(link.target)});
  }
  return sentence;
}

}  // namespace heed::grammar
