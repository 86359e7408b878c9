// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/leave_out.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"

namespace heed::analysis {
namespace {

bool has(const std::vector<int64_t>& word, int64_t position) {
  return std::find(word.begin(), word.end(), position) != word.end();
}

std::vector<int32_t> without(const std::vector<int32_t>& ids, const std::vector<int64_t>& word) {
  std::vector<int32_t> rest;
  for (int64_t i = 0; i < std::ssize(ids); ++i) {
    if (!has(word, i)) rest.push_back(ids[static_cast<size_t>(i)]);
  }
  return rest;
}

// The question about the text without the word; none where there is no such.
std::optional<Question> question_without(const Question& question, const std::vector<int64_t>& word) {
  const models::Task task = question.model().task();
  data::TokenPair pair = question.pair();
  Target target = question.target();
  std::vector<int32_t>& text = task == models::Task::language ? pair.target : pair.source;
  for (const int64_t position : word) {
    if (position >= 0 && position < std::ssize(text)) continue;
    throw Error("leave out: a token of a word is " + std::to_string(position) + ", expected 0 to " +
                std::to_string(std::ssize(text) - 1));
  }
  if (const bool one_text = task == models::Task::tag || task == models::Task::language; one_text && target.position) {
    const int64_t at = *target.position;
    const bool too_late = std::any_of(word.begin(), word.end(), [&](int64_t i) { return i >= at; });
    if (task == models::Task::tag ? has(word, at) : too_late) return {};
    target.token = target.token.value_or(question.labels()[static_cast<size_t>(at)]);
    target.position = at - std::count_if(word.begin(), word.end(), [&](int64_t i) { return i < at; });
  }
  text = without(text, word);
  if (task == models::Task::tag) pair.target = without(pair.target, word);
  if (text.empty() && task != models::Task::language) return {};
  return Question(question.model(), pair, target, question.special());
}

}  // namespace

std::vector<std::optional<double>> leave_out(const nn::Pass& pass, const Question& question,
                                             std::span<const std::vector<int64_t>> words) {
  const models::Task task = question.model().task();
  if ((task == models::Task::tag || task == models::Task::language) && !question.target().position) {
    throw Error(
        "leave out: the target is the whole output, expected a position: without a word, the output is another");
  }
  const double whole = question.measure(pass);
  std::vector<std::optional<double>> changes;
  changes.reserve(words.size());
  for (const std::vector<int64_t>& word : words) {
    const std::optional<Question> rest = question_without(question, word);
    changes.push_back(rest ? std::optional(rest->measure(pass) - whole) : std::nullopt);
  }
  return changes;
}

}  // namespace heed::analysis
