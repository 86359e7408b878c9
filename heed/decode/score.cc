#include "heed/decode/score.h"

#include <algorithm>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

[[noreturn]] void refuse(size_t pair, const std::string& what) {
  throw Error("pair " + std::to_string(pair) + ": " + what);
}

void check_ids(size_t pair, const char* side, std::span<const int32_t> ids, int64_t known) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < known) continue;
    refuse(pair, std::string("an id of the ") + side + " is " + std::to_string(id) + ", expected 0 to " +
                     std::to_string(known - 1));
  }
}

// Of `tokens` labels of one row, from the log-probabilities [T,V] of what comes next.
template <class T>
Score score_row(const T* rows, int64_t V, std::span<const int32_t> labels) {
  Score score;
  for (size_t t = 0; t < labels.size(); ++t) {
    const T* row = rows + static_cast<int64_t>(t) * V;
    score.log_probabilities.push_back(double{row[labels[t]]});
    score.correct += std::max_element(row, row + V) - row == labels[t];
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

std::vector<Score> Scorer::score(std::span<const text::Pair> pairs, const ScoreOptions& options,
                                 const Done<Score>& done) const {
  const data::TextModel& model = engine_.text_model();
  std::vector<data::TokenPair> ids;
  for (size_t i = 0; i < pairs.size(); ++i) {
    try {
      ids.push_back({model.source().encode(pairs[i].source), model.target().encode(pairs[i].target)});
    } catch (const Error& error) {
      refuse(i, error.what());
    }
  }
  return score_ids(ids, options, done);
}

void Scorer::check(std::span<const data::TokenPair> pairs) const {
  const data::TextModel& model = engine_.text_model();
  const models::Task task = model.task();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [source, target] = pairs[i];
    check_ids(i, "source", source, model.model().source_vocabulary());
    check_ids(i, task == models::Task::tag ? "tags" : "target", target, model.model().outputs());
    if (task == models::Task::language && !source.empty())
      refuse(i, "a source came, expected none: the text is the target");
    if (task != models::Task::language && source.empty()) refuse(i, "the source has no token, expected at least 1");
    if (task == models::Task::tag && source.size() != target.size()) {
      refuse(i, std::to_string(source.size()) + " tokens and " + std::to_string(target.size()) +
                    " tags, expected as many");
    }
    try {
      model.check_length(std::max(std::ssize(source), std::ssize(target)));
    } catch (const Error& error) {
      refuse(i, error.what());
    }
  }
}

std::vector<Score> Scorer::score_ids(std::span<const data::TokenPair> pairs, const ScoreOptions& options,
                                     const Done<Score>& done) const {
  check(pairs);
  const models::Model& model = engine_.model();
  const text::SpecialTokens special = engine_.text_model().special();
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
        return score_row(rows.data<decltype(type)>() + static_cast<int64_t>(row) * T * V, V, labels);
      });
      if (done) done(items[row], results[items[row]]);
    }
  });
  return results;
}

}  // namespace heed::decode
