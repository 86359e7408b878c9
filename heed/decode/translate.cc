// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/translate.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "heed/base/parallel_lock.h"
#include "heed/data/batch.h"
#include "heed/decode/streams.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::decode {
namespace {

// Each token a word of its own.
std::vector<int64_t> numbered(size_t tokens) {
  std::vector<int64_t> words(tokens);
  std::iota(words.begin(), words.end(), int64_t{0});
  return words;
}

std::vector<int64_t> words_at_spaces(const text::Tokenizer& tokenizer, std::span<const int32_t> ids,
                                     const std::string& text) {
  return text::words_of_tokens(tokenizer, ids, text, text::words_at_spaces(text));
}

// Sentences on their way into batches, the longest first: those that come together have about the same length, and the
// last ones do not keep others waiting.
class Waiting {
 public:
  Waiting(std::span<const std::vector<int32_t>> sources, const data::GroupOptions& options)
      : sources_(sources), options_(options) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (!sources[i].empty()) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  }

  int64_t left() const { return std::ssize(order_) - next_; }
  // At most `room`, at least one unless there is none.
  std::vector<size_t> take(int64_t room) {
    std::vector<size_t> items;
    while (left() > 0) {
      const size_t item = order_[static_cast<size_t>(next_)];
      const int64_t longest = std::ssize(sources_[items.empty() ? item : items.front()]);
      const bool fits = std::ssize(items) < room && (std::ssize(items) + 1) * longest <= options_.tokens;
      if (!items.empty() && !fits) break;
      items.push_back(item);
      ++next_;
    }
    return items;
  }
  // Nobody takes any more.
  void stop() { next_ = std::ssize(order_); }

 private:
  std::span<const std::vector<int32_t>> sources_;
  const data::GroupOptions& options_;
  std::vector<size_t> order_;
  int64_t next_ = 0;
};

// [rows,n]; nothing where there is no prefix.
Tensor broadcast_prefix(std::span<const int32_t> prefix, int64_t rows) {
  if (prefix.empty()) return {};
  Tensor all = Tensor::uninitialised({rows, std::ssize(prefix)}, DType::i32);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy(prefix.begin(), prefix.end(), all.data<int32_t>() + row * std::ssize(prefix));
  }
  return all;
}

// The tokens that may come for each of these sources; nothing where there is no shortlist.
std::vector<std::vector<int32_t>> shortlists_of(const data::Shortlist* shortlist,
                                                std::span<const std::vector<int32_t>> sources,
                                                std::span<const size_t> items) {
  std::vector<std::vector<int32_t>> lists;
  for (const size_t item : items) {
    if (shortlist) lists.push_back(shortlist->tokens_for(sources[item]));
  }
  return lists;
}

// Below this many sentences for each thread, threads share the rows of one batch instead.
constexpr int64_t kEnoughForThread = 4;

}  // namespace

Translator::Translator(Engine engine) : engine_(std::move(engine)) {
  engine_.text_model().expect(models::Task::translate);
}

Translation Translator::translate(const std::string& sentence, const TranslateOptions& options) const {
  return translate(std::span(&sentence, 1), options).front().front();
}

std::vector<Translations> Translator::translate(std::span<const std::string> sentences, const TranslateOptions& options,
                                                const Done<Translations>& done) const {
  return run(engine_.encode(sentences), sentences, options, done);
}

std::vector<Translations> Translator::translate_ids(std::span<const std::vector<int32_t>> sentences,
                                                    const TranslateOptions& options,
                                                    const Done<Translations>& done) const {
  engine_.check_sources(sentences);
  return run(sentences, {}, options, done);
}

std::vector<Translations> Translator::run(std::span<const std::vector<int32_t>> sources,
                                          std::span<const std::string> texts, const TranslateOptions& options,
                                          const Done<Translations>& done) const {
  const data::TextModel& model = engine_.text_model();
  if (options.shortlist) options.shortlist->expect_sizes(model.model(), "the shortlist");
  std::vector<Translations> results(sources.size());
  Waiting waiting(sources, options.call.batch);
  Exclusive one_at_a_time;  // what the threads share: the sentences that wait, and the caller's `done`
  const auto finish = [&](nn::Pass& pass, size_t item, const std::vector<Hypothesis>& found) {
    for (const Hypothesis& one : found) {
      Translation& translation = results[item].emplace_back();
      translation.tokens = one.tokens;
      translation.score = one.score;
      translation.log_probability = one.log_probability;
      translation.finished = one.finished;
      if (model.has_tokenizers()) translation.text = model.target().decode(one.tokens);
    }
    if (found.empty()) results[item].emplace_back();
    if (options.align && !found.empty()) align(pass, sources, texts, *options.align, results[item], item);
    if (done) one_at_a_time([&] { done(item, results[item]); });
  };
  const auto work = [&](int64_t places) {
    InferencePass pass(engine_, options.call);
    std::vector<size_t> items;  // in the order in which they were taken
    data::Batch batch;
    const NextSentences next = [&](int64_t room) -> std::optional<SearchInput> {
      const std::vector<size_t> more = one_at_a_time([&] { return waiting.take(room); });
      if (more.empty()) return std::nullopt;
      items.insert(items.end(), more.begin(), more.end());
      batch = data::source_batch(gathered(sources, more), model.special());
      return SearchInput{.source = data::source_tokens(batch),
                         .prefix = broadcast_prefix(options.constraints.prefix, std::ssize(more)),
                         .special = model.special(),
                         .streams = numbers_of(more, options.first),
                         .required = options.constraints.required,
                         .forbidden = options.constraints.forbidden,
                         .shortlists = shortlists_of(options.shortlist.get(), sources, more)};
    };
    search_all(pass, model.model(), places, next, options.search,
               {.cancel = options.call.cancel, .done = [&](int64_t row, const std::vector<Hypothesis>& found) {
                  finish(pass, items[static_cast<size_t>(row)], found);
                }});
  };
  {
    InferencePass pass(engine_, options.call);
    for (size_t item = 0; item < sources.size(); ++item) {
      if (sources[item].empty()) finish(pass, item, {});
    }
  }
  const int64_t all = waiting.left(), rows = options.call.batch.rows;
  const int64_t most = options.call.observer ? 1 : std::max<int64_t>(1, all / kEnoughForThread);
  const int64_t workers = std::min<int64_t>(engine_.parallel().threads(), most);
  if (workers == 1) {
    work(rows);
    return results;
  }
  std::exception_ptr failed;
  engine_.parallel().for_each(workers, [&](int64_t, int) {
    try {
      work(std::min(rows, (all + workers - 1) / workers));
    } catch (...) {
      one_at_a_time([&] {
        waiting.stop();
        if (!failed) failed = std::current_exception();
      });
    }
  });
  if (failed) std::rethrow_exception(failed);
  return results;
}

// The model is made to say each hypothesis once more, all of it in one pass, and watched.
void Translator::align(nn::Pass& pass, std::span<const std::vector<int32_t>> sources,
                       std::span<const std::string> texts, const analysis::AlignOptions& options,
                       Translations& translations, size_t item) const {
  const data::TextModel& model = engine_.text_model();
  const std::vector<std::vector<int32_t>> same(translations.size(), sources[item]);
  std::vector<std::vector<int32_t>> targets;
  for (const Translation& one : translations) targets.push_back(one.tokens);
  data::Batch batch = data::source_batch(same, model.special());
  data::add_targets(batch, targets, model.special());
  const Tensor weights = analysis::cross_weights(pass, model.model(), batch, options);
  for (size_t i = 0; i < translations.size(); ++i) {
    Translation& one = translations[i];
    const analysis::WordMap words = texts.empty()
                                        ? analysis::WordMap{numbered(sources[item].size()), numbered(one.tokens.size())}
                                        : analysis::WordMap{words_at_spaces(model.source(), sources[item], texts[item]),
                                                            words_at_spaces(model.target(), one.tokens, one.text)};
    one.alignment = analysis::align_words(weights, static_cast<int64_t>(i), words);
  }
}

}  // namespace heed::decode
