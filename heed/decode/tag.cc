// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/tag.h"

#include <algorithm>
#include <utility>

#include "heed/data/batch.h"
#include "heed/ops/softmax.h"
#include "heed/text/tokenizer_pieces.h"
#include "heed/text/tokenizer_text.h"

namespace heed::decode {
namespace {

// The tokens of a text as it spells them, also those that the tokenizer does not know.
std::vector<std::string> spelled_tokens(const text::Tokenizer& tokenizer, std::span<const int32_t> ids,
                                        const std::string* text) {
  std::vector<std::string> tokens;
  if (text && tokenizer.kind() == text::TokenizerKind::words) {
    for (const std::string& piece : text::split_words(text::squeeze_spaces(*text))) {
      const bool space = piece.starts_with(text::kBlock) && piece.size() > text::kBlock.size();
      tokens.push_back(piece.substr(space ? text::kBlock.size() : 0));
    }
    if (tokens.size() == ids.size()) return tokens;
    tokens.clear();
  }
  for (const int32_t id : ids) tokens.push_back(tokenizer.decode({&id, 1}));
  return tokens;
}

}  // namespace

Tagger::Tagger(Engine engine) : engine_(std::move(engine)) { engine_.text_model().expect(models::Task::tag); }

Tagging Tagger::tag(const std::string& sentence, const TagOptions& options) const {
  return tag(std::span(&sentence, 1), options).front();
}

std::vector<Tagging> Tagger::tag(std::span<const std::string> sentences, const TagOptions& options,
                                 const Done<Tagging>& done) const {
  return run(engine_.encode(sentences), sentences, options, done);
}

std::vector<Tagging> Tagger::tag_ids(std::span<const std::vector<int32_t>> sentences, const TagOptions& options,
                                     const Done<Tagging>& done) const {
  engine_.check_sources(sentences);
  return run(sentences, {}, options, done);
}

std::vector<Tagging> Tagger::run(std::span<const std::vector<int32_t>> sentences, std::span<const std::string> texts,
                                 const TagOptions& options, const Done<Tagging>& done) const {
  const data::TextModel& model = engine_.text_model();
  std::vector<Tagging> results(sentences.size());
  InferencePass pass(engine_, options.call);
  for_each_group(lengths_of(sentences), options.call, [&](std::span<const size_t> items) {
    const data::Batch batch = data::source_batch(gathered(sentences, items), model.special());
    const Tensor rows = ops::log_softmax(pass, model.model().logits(pass, data::source_tokens(batch), {}))
                            .value()
                            .converted(DType::f32);
    const int64_t tags = rows.shape(2);
    for (size_t row = 0; row < items.size(); ++row) {
      const std::vector<int32_t>& ids = sentences[items[row]];
      Tagging& tagging = results[items[row]];
      std::vector<std::string> tokens(ids.size());
      if (model.has_tokenizers())
        tokens = spelled_tokens(model.source(), ids, texts.empty() ? nullptr : &texts[items[row]]);
      for (size_t s = 0; s < ids.size(); ++s) {  // the end has none
        const int64_t place = static_cast<int64_t>(row) * batch.source_length + static_cast<int64_t>(s);
        const float* log_probabilities = rows.data<float>() + place * tags;
        const float* best = std::max_element(log_probabilities, log_probabilities + tags);
        TaggedToken& token = tagging.emplace_back();
        token.token_id = ids[s];
        token.tag_id = static_cast<int32_t>(best - log_probabilities);
        token.log_probability = double{*best};
        token.token = std::move(tokens[s]);
        if (model.has_tokenizers()) token.tag = model.target().decode({&token.tag_id, 1});
      }
      if (done) done(items[row], tagging);
    }
  });
  return results;
}

}  // namespace heed::decode
