// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/score.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

void check_range(const char* side, std::span<const int32_t> ids, int64_t known) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < known) continue;
    throw Error(std::string("an id of the ") + side + " is " + std::to_string(id) + ", expected 0 to " +
                std::to_string(known - 1));
  }
}

// An error of one pair of many says which.
template <class Function>
auto of_pair(size_t pair, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw Error("pair " + std::to_string(pair) + ": " + error.what());
  }
}

// Of `tokens` labels of one row, from the log-probabilities [T,V] of what comes next. To say 'unknown' of an unknown
// token is no success.
template <class T>
Score score_row(const T* rows, int64_t V, std::span<const int32_t> labels, std::optional<int32_t> unknown) {
  Score score;
  for (size_t t = 0; t < labels.size(); ++t) {
    const T* row = rows + static_cast<int64_t>(t) * V;
    score.log_probabilities.push_back(double{row[labels[t]]});
    score.correct += labels[t] != unknown && std::max_element(row, row + V) - row == labels[t];
  }
  return score;
}

}  // namespace

Scorer::Scorer(Engine engine) : engine_(std::move(engine)) {
  const models::Task task = engine_.text_model().task();
  if (task != models::Task::classify && task != models::Task::encode) return;
  throw Error(engine_.text_model().name() + ": is " + data::describe_task(task) +
              ", expected a model that translates, tags, or goes on with a text");
}

Score Scorer::score(const text::Pair& pair, const ScoreOptions& options) const {
  return score(std::span(&pair, 1), options).front();
}

void Scorer::check(const text::Pair& pair) const { check_ids(encode(pair)); }

data::TokenPair Scorer::encode(const text::Pair& pair) const {
  const data::TextModel& model = engine_.text_model();
  return {model.source().encode(pair.source), model.target().encode(pair.target)};
}

std::vector<Score> Scorer::score(std::span<const text::Pair> pairs, const ScoreOptions& options,
                                 const Done<Score>& done) const {
  std::vector<data::TokenPair> ids;
  ids.reserve(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) ids.push_back(of_pair(i, [&] { return encode(pairs[i]); }));
  return score_ids(ids, options, done);
}

void Scorer::check_ids(const data::TokenPair& pair) const {
  const data::TextModel& model = engine_.text_model();
  const models::Task task = model.task();
  const auto& [source, target] = pair;
  check_range("source", source, model.model().source_vocabulary());
  check_range(task == models::Task::tag ? "tags" : "target", target, model.model().outputs());
  if (task == models::Task::language && !source.empty()) {
    throw Error("a source came, expected none: the text is the target");
  }
  if (task != models::Task::language && source.empty()) throw Error("the source has no token, expected at least 1");
  if (task == models::Task::tag && source.size() != target.size()) {
    throw Error(std::to_string(source.size()) + " tokens and " + std::to_string(target.size()) +
                " tags, expected as many");
  }
  model.check_length(std::max(std::ssize(source), std::ssize(target)));
}

std::vector<Score> Scorer::score_ids(std::span<const data::TokenPair> pairs, const ScoreOptions& options,
                                     const Done<Score>& done) const {
  for (size_t i = 0; i < pairs.size(); ++i) of_pair(i, [&] { check_ids(pairs[i]); });
  const models::Model& model = engine_.model();
  const text::SpecialTokens special = engine_.text_model().special();
  std::optional<int32_t> unknown;  // ids alone are all known
  if (engine_.text_model().has_tokenizers()) unknown = engine_.text_model().target().special().unknown;
  std::vector<int64_t> lengths;
  for (const auto& [source, target] : pairs) lengths.push_back(std::max(std::ssize(source), std::ssize(target)) + 1);
  std::vector<Score> results(pairs.size());
  InferencePass pass(engine_, options.call);
  for_each_group(lengths, options.call, [&](std::span<const size_t> items) {
    const data::Batch batch = data::pair_batch(pairs, items, special);
    const Var logits = model.logits(pass, data::source_tokens(batch), data::target_tokens(batch, model.task()));
    const Tensor rows = ops::log_softmax(pass, logits).value();
    const int64_t T = rows.shape(1), V = rows.shape(2), end = model.task() == models::Task::tag ? 0 : 1;
    for (size_t row = 0; row < items.size(); ++row) {
      const std::span<const int32_t> labels(batch.target_out.data() + static_cast<int64_t>(row) * batch.target_length,
                                            pairs[items[row]].target.size() + static_cast<size_t>(end));
      results[items[row]] = with_float("score", rows.dtype(), [&](auto type) {
        return score_row(rows.data<decltype(type)>() + static_cast<int64_t>(row) * T * V, V, labels, unknown);
      });
      if (done) done(items[row], results[items[row]]);
    }
  });
  return results;
}

}  // namespace heed::decode
