#include "heed/decode/pronouns.h"

#include <algorithm>
#include <map>

#include "heed/decode/batch_tokens.h"
#include "heed/decode/weights.h"
#include "heed/text/grammar/agreement.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::decode {
namespace {

constexpr size_t kBatch = 32;  // sentences

std::vector<int> nouns_of(const grammar::Sentence& sentence) {
  std::vector<int> nouns;
  for (size_t i = 0; i < sentence.tags.size(); ++i) {
    if (sentence.tags[i] == grammar::Tag::noun) nouns.push_back(static_cast<int>(i));
  }
  return nouns;
}

// The noun that the tokens of word `from` look at most. `weights` [T,S] of one head, `words` by token.
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
  Counter(nn::Pass& pass, const models::Model& model, const text::Tokenizer& tokenizer)
      : pass_(pass), model_(model), tokenizer_(tokenizer) {}

  void add(std::span<const grammar::Sentence> sentences) {
    std::vector<std::vector<int32_t>> sources;
    std::vector<std::vector<int64_t>> words;
    for (const grammar::Sentence& sentence : sentences) {
      const std::string text = text::detokenise(sentence.source);
      sources.push_back(tokenizer_.encode(text));
      words.push_back(text::words_of_tokens(tokenizer_, sources.back(), text, sentence.source));
    }
    WeightRecorder recorder(nn::AttentionRole::self, pass_.parallel, pass_.observer);
    nn::Pass watched = pass_;
    watched.observer = &recorder;
    const text::Batch batch = text::source_batch(sources);
    model_.begin(watched, source_of(batch));
    for (size_t i = 0; i < sentences.size(); ++i) count(sentences[i], static_cast<int64_t>(i), words[i], recorder);
  }

  PronounAttention result{};

 private:
  void count(const grammar::Sentence& sentence, int64_t row, const std::vector<int64_t>& words,
             const WeightRecorder& recorder) {
    const std::vector<int> nouns = nouns_of(sentence);
    if (nouns.size() < 2) return;
    const std::vector<grammar::AgreeingWord> agreeing = grammar::agreeing_words(sentence);
    for (const grammar::Referent& referent : sentence.referents) {
      ++result.pronouns;
      result.by_chance += 1 / static_cast<double>(nouns.size());
      look(row, words, recorder, referent.pronoun, nouns, referent.noun, &PronounHead::found);
      for (const grammar::AgreeingWord& word : agreeing) {
        if (word.pronoun != referent.pronoun) continue;
        ++result.agreeing;
        look(row, words, recorder, word.source, nouns, referent.noun, &PronounHead::found_from_agreeing);
      }
    }
  }

  // From a word of one row, with every head: whether it finds the noun.
  void look(int64_t row, const std::vector<int64_t>& words, const WeightRecorder& recorder, int from,
            const std::vector<int>& nouns, int noun, int64_t PronounHead::*found) {
    size_t place = 0;
    for (const WeightRecorder::Layer& layer : recorder.layers()) {
      const int64_t H = layer.weights.shape(1), T = layer.weights.shape(2), S = layer.weights.shape(3);
      for (int64_t h = 0; h < H; ++h, ++place) {
        if (place == result.heads.size()) result.heads.push_back({layer.path, h});
        const float* weights = layer.weights.data<float>() + (row * H + h) * T * S;
        result.heads[place].*found += strongest_noun(weights, S, words, from, nouns) == noun;
      }
    }
  }

  nn::Pass& pass_;
  const models::Model& model_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace

PronounGenders pronoun_genders(std::span<const grammar::Sentence> sentences,
                               std::span<const std::string> translations) {
  PronounGenders result;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::vector<std::string> translation = text::words_and_marks(translations[i]);
    std::map<int, grammar::Verdict> verdicts;  // of a pronoun: the worst of its words
    for (const grammar::AgreeingWord& word : grammar::agreeing_words(sentences[i])) {
      const grammar::Verdict verdict = grammar::judge(word, sentences[i].target, translation);
      const auto [known, first] = verdicts.emplace(word.pronoun, verdict);
      if (first || known->second == grammar::Verdict::wrong) continue;
      if (verdict != grammar::Verdict::right) known->second = verdict;
    }
    for (const auto& [pronoun, verdict] : verdicts) {
      ++result.pronouns;
      result.right += verdict == grammar::Verdict::right;
      result.wrong += verdict == grammar::Verdict::wrong;
      result.absent += verdict == grammar::Verdict::absent;
    }
  }
  return result;
}

PronounAttention pronoun_attention(nn::Pass& pass, const models::Model& model, const text::Tokenizer& tokenizer,
                                   std::span<const grammar::Sentence> sentences) {
  Counter counter(pass, model, tokenizer);
  for (size_t i = 0; i < sentences.size(); i += kBatch) {
    counter.add(sentences.subspan(i, std::min(kBatch, sentences.size() - i)));
  }
  return counter.result;
}

}  // namespace heed::decode
