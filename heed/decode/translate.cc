#include "heed/decode/translate.h"

#include <numeric>
#include <utility>

#include "heed/data/batch.h"
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
  std::vector<Translations> results(sources.size());
  InferencePass pass(engine_, options.call);
  const auto finish = [&](size_t item, const std::vector<Hypothesis>& found) {
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
    if (done) done(item, results[item]);
  };
  for_each_group(lengths_of(sources), options.call, [&](std::span<const size_t> group) {
    std::vector<size_t> items;
    for (const size_t item : group) {
      sources[item].empty() ? finish(item, {}) : items.push_back(item);
    }
    if (items.empty()) return;
    const data::Batch batch = data::source_batch(gathered(sources, items), model.special());
    search(pass, model.model(),
           {.source = data::source_tokens(batch),
            .special = model.special(),
            .streams = std::vector<int64_t>(items.begin(), items.end())},
           options.search,
           {.cancel = options.call.cancel, .done = [&](int64_t row, const std::vector<Hypothesis>& found) {
              finish(items[static_cast<size_t>(row)], found);
            }});
  });
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
