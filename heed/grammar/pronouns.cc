// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/pronouns.h"

#include <algorithm>
#include <map>

#include "heed/analysis/weights.h"
#include "heed/data/batch.h"
#include "heed/grammar/agreement.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

std::vector<int> nouns_of(const Sentence& sentence) {
  std::vector<int> nouns;
  for (size_t i = 0; i < sentence.tags.size(); ++i) {
    if (sentence.tags[i] == Tag::noun) nouns.push_back(static_cast<int>(i));
  }
  return nouns;
}

// The noun that the tokens of word `from` attend to most. `weights` [T,S] of one head, `words` by token.
int strongest_noun(const float* weights, int64_t S, const std::vector<int64_t>& words, int from,
                   const std::vector<int>& nouns) {
  std::map<int, double> seen;
  for (const int noun : nouns) seen[noun] = 0;
  for (size_t t = 0; t < words.size(); ++t) {
    if (words[t] != from) continue;
    for (size_t s = 0; s < words.size(); ++s) {
      const auto noun = seen.find(static_cast<int>(words[s]));
      if (noun != seen.end()) noun->second += double{weights[static_cast<int64_t>(t) * S + static_cast<int64_t>(s)]};
    }
  }
  return std::max_element(seen.begin(), seen.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
}

class Counter {
 public:
  explicit Counter(const decode::Engine& engine) : engine_(engine) {}

  // Those of `sentences` that have these numbers.
  void add(nn::Pass& pass, std::span<const Sentence> sentences, std::span<const std::vector<int32_t>> sources,
           std::span<const size_t> items) {
    const data::TextModel& model = engine_.text_model();
    analysis::WeightRecorder recorder(nn::AttentionRole::self, pass.parallel, pass.observer);
    nn::Pass watched = pass;
    watched.observer = &recorder;
    const data::Batch batch = data::source_batch(decode::gathered(sources, items), model.special());
    model.model().begin(watched, data::source_tokens(batch));
    for (size_t row = 0; row < items.size(); ++row) {
      const Sentence& sentence = sentences[items[row]];
      const std::string text = text::detokenise(sentence.source);
      count(sentence, static_cast<int64_t>(row),
            text::words_of_tokens(model.source(), sources[items[row]], text, sentence.source), recorder);
    }
  }

  PronounAttention result{};

 private:
  void count(const Sentence& sentence, int64_t row, const std::vector<int64_t>& words,
             const analysis::WeightRecorder& recorder) {
    const std::vector<int> nouns = nouns_of(sentence);
    if (nouns.size() < 2) return;
    const std::vector<AgreeingWord> agreeing = agreeing_words(sentence);
    for (const Referent& referent : sentence.referents) {
      ++result.pronouns;
      result.by_chance += 1 / static_cast<double>(nouns.size());
      look(row, words, recorder, referent.pronoun, nouns, referent.noun, &PronounHead::found);
      for (const AgreeingWord& word : agreeing) {
        if (word.pronoun != referent.pronoun) continue;
        ++result.agreeing;
        look(row, words, recorder, word.source, nouns, referent.noun, &PronounHead::found_from_agreeing);
      }
    }
  }

  // From a word of one row, for every head: whether its attention is highest at the noun.
  void look(int64_t row, const std::vector<int64_t>& words, const analysis::WeightRecorder& recorder, int from,
            const std::vector<int>& nouns, int noun, int64_t PronounHead::*found) {
    size_t place = 0;
    for (const analysis::WeightRecorder::Layer& layer : recorder.layers()) {
      const int64_t H = layer.weights.shape(1), T = layer.weights.shape(2), S = layer.weights.shape(3);
      for (int64_t h = 0; h < H; ++h, ++place) {
        if (place == result.heads.size()) result.heads.push_back({layer.path, h});
        const float* weights = layer.weights.data<float>() + (row * H + h) * T * S;
        result.heads[place].*found += strongest_noun(weights, S, words, from, nouns) == noun;
      }
    }
  }

  const decode::Engine& engine_;
};

}  // namespace

PronounGenders pronoun_genders(std::span<const Sentence> sentences, std::span<const std::string> translations) {
  PronounGenders result;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::vector<std::string> translation = text::words_and_marks(translations[i]);
    std::map<int, Verdict> verdicts;  // of a pronoun: the worst of its words
    for (const AgreeingWord& word : agreeing_words(sentences[i])) {
      const Verdict verdict = judge(word, sentences[i].target, translation);
      const auto [known, first] = verdicts.emplace(word.pronoun, verdict);
      if (first || known->second == Verdict::wrong) continue;
      if (verdict != Verdict::right) known->second = verdict;
    }
    for (const auto& [pronoun, verdict] : verdicts) {
      ++result.pronouns;
      result.right += verdict == Verdict::right;
      result.wrong += verdict == Verdict::wrong;
      result.absent += verdict == Verdict::absent;
    }
  }
  return result;
}

PronounAttention pronoun_attention(const decode::Engine& engine, std::span<const Sentence> sentences,
                                   const decode::CallOptions& call) {
  std::vector<std::string> texts;
  for (const Sentence& sentence : sentences) texts.push_back(text::detokenise(sentence.source));
  const std::vector<std::vector<int32_t>> sources = engine.encode(texts);
  Counter counter(engine);
  decode::InferencePass pass(engine, call);
  decode::for_each_group(decode::lengths_of(sources), call,
                         [&](std::span<const size_t> items) { counter.add(pass, sentences, sources, items); });
  return counter.result;
}

}  // namespace heed::grammar
