// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/gender_question.h"

#include <algorithm>
#include <optional>

#include "heed/grammar/counterparts.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

// All nouns, where one has the other gender than the referent; else none.
std::vector<int> nouns_that_differ(const Sentence& sentence, const Referent& referent) {
  const auto noun_at = [&](int place) { return noun_form_of(sentence.source[static_cast<size_t>(place)]).noun; };
  const Noun* meant = noun_at(referent.noun);
  std::vector<int> nouns;
  bool differ = false;
  for (int i = 0; i < static_cast<int>(sentence.tags.size()); ++i) {
    if (sentence.tags[static_cast<size_t>(i)] != Tag::noun) continue;
    nouns.push_back(i);
    differ = differ || (meant && noun_at(i) && noun_at(i)->gender != meant->gender);
  }
  return differ ? nouns : std::vector<int>();
}

// The tokens of the reference, and the first of them that is another one with the word in its other gender.
std::optional<analysis::Target> contrast(const data::TextModel& model, const Sentence& sentence,
                                         const AgreeingWord& word, const std::vector<int32_t>& output) {
  std::vector<std::string> words = sentence.target;
  words[static_cast<size_t>(word.target)] = word.other;
  const std::vector<int32_t> other = model.target().encode(text::detokenise(words));
  const auto [mine, its] = std::mismatch(output.begin(), output.end(), other.begin(), other.end());
  const int32_t unknown = model.special().unknown;
  if (mine == output.end() || its == other.end() || *mine == unknown || *its == unknown) return {};
  return analysis::Target{.position = mine - output.begin(), .token = *mine, .against = *its};
}

}  // namespace

void for_each_gender_question(const decode::Engine& engine, std::span<const Sentence> sentences, const GenderCall& call,
                              const std::function<void(const nn::Pass&, const GenderQuestion&)>& each) {
  const data::TextModel& model = engine.text_model();
  decode::InferencePass inference(engine, call.call);
  const nn::Pass& pass = inference;
  int64_t done = 0;
  for (const Sentence& sentence : sentences) {
    check_cancel(call.call.cancel);
    if (call.progress) call.progress(done++);
    const std::string text = text::detokenise(sentence.source);
    const std::vector<int32_t> output = model.target().encode(text::detokenise(sentence.target));
    const auto tokens = std::max(std::ssize(output), std::ssize(model.source().encode(text)));
    if (tokens >= model.model().max_length()) continue;
    for (const AgreeingWord& word : agreeing_words(sentence)) {
      const auto referent = std::find_if(sentence.referents.begin(), sentence.referents.end(),
                                         [&](const Referent& one) { return one.pronoun == word.pronoun; });
      const std::vector<int> nouns = nouns_that_differ(sentence, *referent);
      const auto target = nouns.empty() ? std::nullopt : contrast(model, sentence, word, output);
      if (!target) continue;
      const analysis::Reading reading(model, text, output);
      each(pass, {sentence, word, *referent, nouns, reading,
                  analysis::Question(model.model(), reading.pair(), *target, model.special())});
    }
  }
}

}  // namespace heed::grammar
