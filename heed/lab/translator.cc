// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/translator.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "heed/data/batches.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/split.h"
#include "heed/models/presets.h"
#include "heed/text/words.h"

namespace heed::lab {
namespace {

std::shared_ptr<const text::Tokenizer> side_words(const std::vector<grammar::Sentence>& sentences,
                                                  std::vector<std::string> grammar::Sentence::*side) {
  std::vector<std::string> lines;
  for (const grammar::Sentence& sentence : sentences) lines.push_back(grammar::join(sentence.*side));
  return text::train_tokenizer(lines, {.kind = text::TokenizerKind::words});
}

}  // namespace

data::Tokenizers words_of(const std::vector<grammar::Sentence>& sentences) {
  return {side_words(sentences, &grammar::Sentence::source), side_words(sentences, &grammar::Sentence::target)};
}

Sentences draw_sentences(const SentenceOptions& options) {
  Sentences sentences;
  const grammar::Split split(options.seed);
  grammar::Grammar grammar(options.seed);
  const auto missing = [](const auto& list, int64_t wanted) { return std::ssize(list) < wanted; };
  while (missing(sentences.train, options.train) || missing(sentences.unseen, options.unseen)) {
    grammar::Sentence sentence = grammar.next();
    if (sentence.source.size() > options.longest) continue;
    const auto part = split.part_of(sentence);
    if (part == grammar::Subset::train && missing(sentences.train, options.train)) {
      sentences.train.push_back(std::move(sentence));
    } else if (part == grammar::Subset::test && missing(sentences.unseen, options.unseen)) {
      sentences.unseen.push_back(std::move(sentence));
    }
  }
  sentences.tokenizers = words_of(sentences.train);
  return sentences;
}

data::TokenPair Sentences::ids(const grammar::Sentence& sentence) const {
  return {tokenizers.source->encode(grammar::join(sentence.source)),
          tokenizers.target->encode(grammar::join(sentence.target))};
}

text::Corpus corpus_of(const std::vector<grammar::Sentence>& sentences) {
  text::Corpus corpus;
  for (const grammar::Sentence& sentence : sentences) {
    corpus.pairs.push_back({text::detokenise(sentence.source), text::detokenise(sentence.target)});
  }
  return corpus;
}

std::vector<text::Alignment> alignments_of(const std::vector<grammar::Sentence>& sentences) {
  std::vector<text::Alignment> all;
  for (const grammar::Sentence& sentence : sentences) {
    text::Alignment& links = all.emplace_back();
    for (const grammar::Link& link : sentence.alignment) {
      links.push_back({link.source, link.target, link.certainty == grammar::Certainty::sure});
    }
  }
  return all;
}

models::ModelOptions small_transformer() {
  return models::TransformerOptions{
      .width = 64, .heads = 4, .inner = 128, .encoder_layers = 2, .decoder_layers = 2, .dropout = 0};
}

namespace {

void set_words(models::ModelOptions& options, const data::Tokenizers& words) {
  models::set_vocabularies(options, {.source = words.source->size(), .target = words.target->size()});
}

}  // namespace

data::TextModel untrained_translator(const Sentences& sentences, models::ModelOptions options, uint64_t seed) {
  set_words(options, sentences.tokenizers);
  return data::TextModel(models::make_model(options, seed), sentences.tokenizers);
}

data::TextModel train_translator(Context& context, const Sentences& sentences, models::ModelOptions options,
                                 const TrainingOptions& training) {
  set_words(options, sentences.tokenizers);
  const data::Batches batches(corpus_of(sentences.train), *sentences.tokenizers.source, *sentences.tokenizers.target,
                              {.tokens = 1024, .seed = training.seed});
  return data::TextModel(trained(context, options, batches, training), sentences.tokenizers);
}

int64_t translator_steps(const Context& context) { return context.size<int64_t>(1200, 60); }

const Translator& small_translator(Context& context, uint64_t seed) {
  static std::map<std::pair<uint64_t, int64_t>, Translator> kept;  // by seed and steps
  const int64_t steps = translator_steps(context);
  const auto found = kept.find({seed, steps});
  if (found != kept.end()) {
    context.step(steps);
    return found->second;
  }
  Sentences sentences = draw_sentences(
      {.train = context.size<int64_t>(20000, 3000), .unseen = context.size<int64_t>(150, 30), .seed = seed});
  data::TextModel model =
      train_translator(context, sentences, small_transformer(), {.steps = steps, .rate = 4e-3, .seed = seed});
  return kept.emplace(std::pair(seed, steps), Translator{std::move(sentences), std::move(model)}).first->second;
}

}  // namespace heed::lab
