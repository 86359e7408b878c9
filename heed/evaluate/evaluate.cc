// SPDX-License-Identifier: Apache-2.0
#include "heed/evaluate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/text/bleu.h"
#include "heed/text/chrf.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::evaluate {
namespace {

constexpr int64_t kLengthStep = 5;

std::vector<int64_t> words_of(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, const std::string& text) {
  return text::words_of_tokens(tokenizer, ids, text, text::words_and_marks(text));
}

// The word alignment of source and reference, by cross-attention.
void align(const decode::Engine& engine, const TestSet& set, const EvaluateOptions& options,
           std::vector<Judged>& judged) {
  const data::TextModel& model = engine.text_model();
  std::vector<int64_t> lengths;
  for (const auto& [source, target] : set.pairs()) lengths.push_back(std::max(std::ssize(source), std::ssize(target)));
  decode::InferencePass pass(engine, options.translation.call);
  decode::for_each_group(lengths, options.translation.call, [&](std::span<const size_t> items) {
    const data::Batch batch = data::pair_batch(set.pairs(), items, model.special());
    const Tensor weights = analysis::cross_weights(pass, model.model(), batch,
                                                   options.translation.align.value_or(analysis::AlignOptions{}));
    for (size_t row = 0; row < items.size(); ++row) {
      const auto& [source, target] = set.pairs()[items[row]];
      const text::Pair& text = set.corpus().pairs[static_cast<size_t>(set.line(items[row]))];
      judged[items[row]].alignment = analysis::align_words(
          weights, static_cast<int64_t>(row),
          {words_of(model.source(), source, text.source), words_of(model.target(), target, text.target)});
    }
  });
}

std::string percent(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * rate);
  return text;
}

// Links between words that are there.
void check_links(const text::Alignment& links, const text::Pair& pair) {
  const auto check = [](const char* side, int64_t word, const std::string& text) {
    const auto words = std::ssize(text::words_and_marks(text));
    if (word < words) return;
    throw Error("a link goes to word " + std::to_string(word) + " of the " + side + ", expected one below " +
                std::to_string(words) + ": it has " + std::to_string(words) + (words == 1 ? " word" : " words") +
                ", marks apart, counted from 0");
  };
  for (const text::AlignmentLink& link : links) {
    check("source", link.source, pair.source);
    check("target", link.target, pair.target);
  }
}

}  // namespace

std::string describe(const UnknownOfPairs& unknown) {
  std::string rates = unknown.source.tokens == 0 ? percent(unknown.target.rate()) + " of the tokens are unknown"
                                                 : percent(unknown.source.rate()) + " of the source's tokens and " +
                                                       percent(unknown.target.rate()) + " of the target's are unknown";
  if (!unknown.many()) return rates;
  return "warning: " + rates + ": a larger vocabulary or subwords would know more of them";
}

TestSet::TestSet(text::Corpus corpus, const data::Tokenizers& tokenizers, models::Task task, int64_t max_length,
                 const std::string& file)
    : corpus_(std::move(corpus)),
      unknown_source_(tokenizers.source->special().unknown),
      unknown_target_(tokenizers.target->special().unknown) {
  for (size_t i = 0; i < corpus_.pairs.size(); ++i) {
    const text::Pair& pair = corpus_.pairs[i];
    data::TokenPair ids{tokenizers.source->encode(pair.source), tokenizers.target->encode(pair.target)};
    if (task == models::Task::tag && ids.source.size() != ids.target.size()) {
      throw Error((file.empty() ? "line " : file + ":") + std::to_string(pair.line) + ": " +
                  std::to_string(ids.source.size()) + " tokens and " + std::to_string(ids.target.size()) +
                  " tags, expected as many");
    }
    const bool dropped = ids.source.empty() && !pair.source.empty();  // characters that have no token
    if (dropped || std::max(std::ssize(ids.source), std::ssize(ids.target)) + 1 > max_length) continue;
    pairs_.push_back(std::move(ids));
    numbers_.push_back(static_cast<int64_t>(i));
  }
  if (pairs_.empty()) {
    throw Error((file.empty() ? "" : file + ": ") + "none of " + counted(std::ssize(corpus_.pairs), "pair") +
                " has at most " + counted(max_length, "token"));
  }
}

UnknownOfPairs TestSet::unknown(size_t pair) const {
  const auto count = [](const std::vector<int32_t>& ids, int32_t unknown) {
    return UnknownTokens{std::ssize(ids), std::count(ids.begin(), ids.end(), unknown)};
  };
  return {count(pairs_[pair].source, unknown_source_), count(pairs_[pair].target, unknown_target_)};
}

UnknownOfPairs TestSet::unknown() const {
  UnknownOfPairs all;
  for (size_t pair = 0; pair < pairs_.size(); ++pair) all += unknown(pair);
  return all;
}

std::vector<Judged> judge(const decode::Engine& engine, const TestSet& set, const EvaluateOptions& options) {
  const bool translates = options.translate && engine.text_model().task() == models::Task::translate;
  std::vector<Judged> judged(set.pairs().size());
  int64_t done = 0;
  const auto count_pair = [&](bool last) {
    if (last && options.progress) options.progress(++done);
  };
  decode::ScoreOptions scoring;
  scoring.call.cancel = options.translation.call.cancel;
  scoring.call.observer = options.translation.call.observer;
  decode::Scorer(engine).score_ids(set.pairs(), scoring, [&](size_t i, const decode::Score& score) {
    judged[i].pair = set.line(i);
    judged[i].loss = -score.log_probability();
    judged[i].tokens = score.tokens();
    judged[i].correct = score.correct;
    judged[i].unknown = set.unknown(i);
    count_pair(!translates);
  });
  if (!translates) return judged;
  if (options.align) align(engine, set, options, judged);
  std::vector<std::vector<int32_t>> sources;
  for (const data::TokenPair& pair : set.pairs()) sources.push_back(pair.source);
  decode::TranslateOptions translation = options.translation;
  translation.align.reset();  // it is the reference that is aligned
  decode::Translator(engine).translate_ids(sources, translation, [&](size_t i, const decode::Translations& found) {
    judged[i].translation = found.front().text;
    count_pair(true);
  });
  return judged;
}

std::vector<text::Alignment> read_alignments(const std::string& path, const text::Corpus& corpus) {
  const text::ParallelLines lines(path);
  const int64_t known = std::max(corpus.report.lines, corpus.pairs.empty() ? 0 : corpus.pairs.back().line);
  if (lines.count() > known) {
    throw Error(path + ": has " + std::to_string(lines.count()) + " lines, expected " + std::to_string(known) +
                " as the corpus has");
  }
  std::vector<text::Alignment> gold;
  for (const text::Pair& pair : corpus.pairs) {
    const std::string& line = lines.at(pair.line);
    try {
      gold.push_back(text::parse_alignment(line));
      check_links(gold.back(), pair);
    } catch (const Error& error) {
      throw Error(lines.place(pair.line) + ": " + error.what());
    }
  }
  return gold;
}

Scores scores_of(const std::vector<Judged>& judged, const text::Corpus& corpus,
                 const std::vector<text::Alignment>& gold) {
  Scores scores{.sentences = std::ssize(judged)};
  if (judged.empty()) return scores;
  std::vector<std::string> translations, references;
  std::vector<text::Alignment> found, expected;
  for (const Judged& one : judged) {
    scores.loss += one.loss;
    scores.tokens += one.tokens;
    scores.correct += one.correct;
    scores.whole += one.correct == one.tokens;
    scores.unknown += one.unknown;
    const text::Pair& pair = corpus.pairs[static_cast<size_t>(one.pair)];
    if (one.translation) translations.push_back(*one.translation), references.push_back(pair.target);
    if (!gold.empty()) found.push_back(one.alignment), expected.push_back(gold[static_cast<size_t>(one.pair)]);
  }
  const auto tokens = static_cast<double>(std::max<int64_t>(1, scores.tokens));
  scores.loss /= tokens;
  scores.perplexity = std::exp(scores.loss);
  scores.accuracy = static_cast<double>(scores.correct) / tokens;
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
  result.reserve(by_length.size());
  for (const auto& [step, some] : by_length) {
    result.push_back({step * kLengthStep + 1, (step + 1) * kLengthStep, scores_of(some, corpus, gold)});
  }
  return result;
}

}  // namespace heed::evaluate
