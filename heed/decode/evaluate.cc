#include "heed/decode/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/decode/batch_tokens.h"
#include "heed/ops/softmax.h"
#include "heed/text/bleu.h"
#include "heed/text/chrf.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::decode {
namespace {

constexpr int64_t kBatchTokens = 1024, kLengthStep = 5;

class Judge {
 public:
  Judge(nn::Pass& pass, const models::Model& model, const text::Tokenizer& tokenizer, const text::Corpus& corpus,
        const EvaluateOptions& options)
      : pass_(pass), model_(model), tokenizer_(tokenizer), corpus_(corpus), options_(options) {}

  std::vector<Judged> judge(const text::Batch& batch) {
    std::vector<Judged> all(static_cast<size_t>(batch.rows));
    for (size_t i = 0; i < all.size(); ++i) all[i].pair = batch.pairs[i];
    foretell(batch, all);
    if (batch.source_length == 0) return all;  // a language model
    const auto found = search(pass_, model_, source_of(batch), {text::kBegin, text::kEnd, text::kPad}, options_.search);
    for (size_t i = 0; i < all.size(); ++i) all[i].translation = tokenizer_.decode(found[i][0].tokens);
    if (options_.aligned) align(batch, all);
    return all;
  }

 private:
  void foretell(const text::Batch& batch, std::vector<Judged>& all) {
    const Tensor rows = ops::log_softmax(pass_, model_.logits(pass_, source_of(batch), target_of(batch))).value();
    const int64_t V = rows.shape(2);
    for (int64_t b = 0; b < batch.rows; ++b) {
      Judged& one = all[static_cast<size_t>(b)];
      one.tokens = batch.target_lengths[static_cast<size_t>(b)];
      for (int64_t t = 0; t < one.tokens; ++t) {
        const int64_t place = b * batch.target_length + t;
        const float* row = rows.data<float>() + place * V;
        const int32_t token = batch.target_out[static_cast<size_t>(place)];
        one.loss -= double{row[token]};
        one.right += std::max_element(row, row + V) - row == token;
      }
    }
  }

  void align(const text::Batch& batch, std::vector<Judged>& all) {
    const Tensor weights = cross_weights(pass_, model_, batch, options_.align);
    for (int64_t b = 0; b < batch.rows; ++b) {
      const auto row = [&](const std::vector<int32_t>& ids, int64_t length) {
        return std::span(ids).subspan(static_cast<size_t>(b * length), static_cast<size_t>(length));
      };
      Judged& one = all[static_cast<size_t>(b)];
      const text::Pair& pair = corpus_.pairs[static_cast<size_t>(one.pair)];
      one.alignment = align_words(weights, b,
                                  {words_of(row(batch.source, batch.source_length), pair.source),
                                   words_of(row(batch.target_out, batch.target_length), pair.target)});
    }
  }

  std::vector<int64_t> words_of(std::span<const int32_t> ids, const std::string& text) const {
    return text::words_of_tokens(tokenizer_, ids, text, text::words_and_marks(text));
  }

  nn::Pass& pass_;
  const models::Model& model_;
  const text::Tokenizer& tokenizer_;
  const text::Corpus& corpus_;
  const EvaluateOptions& options_;
};

}  // namespace

std::vector<Judged> judge_pairs(nn::Pass& pass, const models::Model& model, const text::Tokenizer& tokenizer,
                                const text::Corpus& corpus, const EvaluateOptions& options,
                                const std::function<void(int64_t)>& progress) {
  const text::Batches batches(corpus, tokenizer, tokenizer,
                              {std::max(kBatchTokens, model.max_length()), model.max_length()});
  Judge judge(pass, model, tokenizer, corpus, options);
  std::vector<Judged> all;
  for (const text::Batch& batch : batches.in_order()) {
    for (Judged& one : judge.judge(batch)) all.push_back(std::move(one));
    if (progress) progress(std::ssize(all));
  }
  std::sort(all.begin(), all.end(), [](const Judged& a, const Judged& b) { return a.pair < b.pair; });
  return all;
}

Scores scores_of(const std::vector<Judged>& judged, const text::Corpus& corpus,
                 const std::vector<text::Alignment>& gold) {
  Scores scores{.sentences = std::ssize(judged)};
  if (judged.empty()) return scores;
  double loss = 0;
  int64_t right = 0;
  std::vector<std::string> translations, references;
  std::vector<text::Alignment> found, expected;
  for (const Judged& one : judged) {
    loss += one.loss;
    scores.tokens += one.tokens;
    right += one.right;
    const text::Pair& pair = corpus.pairs[static_cast<size_t>(one.pair)];
    if (!pair.source.empty()) translations.push_back(one.translation), references.push_back(pair.target);
    if (!gold.empty()) found.push_back(one.alignment), expected.push_back(gold[static_cast<size_t>(one.pair)]);
  }
  const auto tokens = static_cast<double>(scores.tokens);
  scores.perplexity = std::exp(loss / tokens);
  scores.accuracy = static_cast<double>(right) / tokens;
  if (!references.empty()) {
    scores.bleu = text::bleu(translations, references).score;
    scores.chrf = text::chrf(translations, references);
    scores.exact = text::exact_match(translations, references);
  }
  if (!gold.empty()) scores.alignment_error = text::alignment_error_rate(found, expected);
  return scores;
}

std::vector<LengthScores> scores_by_length(const std::vector<Judged>& judged, const text::Corpus& corpus,
                                           const std::vector<text::Alignment>& gold) {
  std::map<int64_t, std::vector<Judged>> by_length;
  for (const Judged& one : judged) {
    const text::Pair& pair = corpus.pairs[static_cast<size_t>(one.pair)];
    const auto words = std::ssize(text::words_at_spaces(pair.source.empty() ? pair.target : pair.source));
    by_length[(words - 1) / kLengthStep].push_back(one);
  }
  std::vector<LengthScores> result;
  for (const auto& [step, some] : by_length) {
    result.push_back({step * kLengthStep + 1, (step + 1) * kLengthStep, scores_of(some, corpus, gold)});
  }
  return result;
}

}  // namespace heed::decode
