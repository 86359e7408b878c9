// SPDX-License-Identifier: Apache-2.0
// While a translator chooses a word, does it look at the word that it translates? The grammar knows which one that is.
// And is it true that the first word needs the first source word or two?
//
// Four translators, with cross-attention of four kinds, aligned by where most of each word's attention is (in the mean
// of the last layer's heads). AER is the alignment error rate of unseen sentences; beside it, that of a rule which
// has not read the sentence: target word t of T belongs to source word t S / T.
#include "heed/analysis/align.h"
#include "heed/lab/experiments.h"
#include "heed/lab/translator.h"
#include "heed/models/presets.h"

namespace heed::lab {
namespace {

constexpr const char* kModels[] = {"transformer", "rnn-attention", "rnn-dot", "rnn-self-attention"};

// What is measured of one translator.
struct Looks {
  double error = 0;           // AER
  double first = 0, any = 0;  // attention of the first target word, and of all, to the first two source words
};

Looks looks(const Sentences& sentences, const data::TextModel& model, nn::Pass& pass) {
  Looks result;
  std::vector<text::Alignment> found;
  double rows = 0;
  for (const grammar::Sentence& sentence : sentences.unseen) {
    const data::TokenPair pair = sentences.ids(sentence);
    const size_t item = 0;
    const data::Batch batch = data::pair_batch(std::span(&pair, 1), std::span(&item, 1));
    const Tensor weights = analysis::cross_weights(pass, model.model(), batch);  // [1,T,S]: row t predicts word t
    analysis::WordMap words;                                                     // a token each; -1 is the end
    for (int64_t s = 0; s < weights.shape(2); ++s) words.source.push_back(s + 1 < weights.shape(2) ? s : -1);
    for (int64_t t = 0; t < weights.shape(1); ++t) words.target.push_back(t + 1 < weights.shape(1) ? t : -1);
    found.push_back(analysis::align_words(weights, 0, words));
    for (int64_t t = 0; t + 1 < weights.shape(1); ++t, ++rows) {
      const float* row = weights.data<float>() + t * weights.shape(2);
      result.any += double{row[0]} + row[1];
      if (t == 0) result.first += (double{row[0]} + row[1]) / static_cast<double>(sentences.unseen.size());
    }
  }
  result.any /= rows;
  result.error = text::alignment_error_rate(found, alignments_of(sentences.unseen));
  return result;
}

// A rule that has read nothing: target word t of T belongs to source word t S / T.
double diagonal_error(const Sentences& sentences) {
  std::vector<text::Alignment> found;
  for (const grammar::Sentence& sentence : sentences.unseen) {
    text::Alignment& links = found.emplace_back();
    for (size_t t = 0; t < sentence.target.size(); ++t) {
      links.push_back(
          {static_cast<int64_t>(t * sentence.source.size() / sentence.target.size()), static_cast<int64_t>(t)});
    }
  }
  return text::alignment_error_rate(found, alignments_of(sentences.unseen));
}

// Of the grammar: how often the first target word translates one of the first two of the source, and no other.
double first_from_two(const Sentences& sentences) {
  double count = 0;
  for (const grammar::Sentence& sentence : sentences.unseen) {
    bool none_later = true, one = false;
    for (const grammar::Link& link : sentence.alignment) {
      if (link.target != 0 || link.certainty != grammar::Certainty::sure) continue;
      one = true, none_later = none_later && link.source < 2;
    }
    count += one && none_later;
  }
  return count / static_cast<double>(sentences.unseen.size());
}

// Of the smallest width, and no dropout: the grammar has no noise.
models::ModelOptions options_of(const std::string& name) {
  if (name == "transformer") return small_transformer();
  models::ModelOptions options = models::preset_named(name).options;
  options.as<models::RnnSeq2SeqOptions>().width = 64;
  models::set_dropout(options, 0);
  return options;
}

Result run_alignment(Context& context) {
  context.expect(translator_steps(context) * std::ssize(kModels) * std::ssize(context.seeds()));
  std::vector<std::vector<double>> errors(std::size(kModels)), first(errors), any(errors);
  std::vector<double> rule, grammars;
  for (const uint64_t seed : context.seeds()) {
    const Translator& shared = small_translator(context, seed);
    const Sentences& sentences = shared.sentences;
    rule.push_back(diagonal_error(sentences)), grammars.push_back(first_from_two(sentences));
    Workspace workspace;
    nn::Pass pass{{context.parallel(), workspace}};
    for (size_t i = 0; i < std::size(kModels); ++i) {
      const data::TextModel model =
          i == 0 ? shared.model
                 : train_translator(context, sentences, options_of(kModels[i]),
                                    {.steps = translator_steps(context), .rate = 4e-3, .seed = seed});
      const Looks one = looks(sentences, model, pass);
      errors[i].push_back(one.error), first[i].push_back(one.first), any[i].push_back(one.any);
    }
  }

  Table table{.title = "Where a translator looks while it chooses a word",
              .columns = {"model", "AER", "first word: attention to source words 1 and 2", "all words: to 1 and 2"}};
  Plot plot{.title = "Alignment error rate of unseen sentences",
            .y = {.label = "AER", .low = 0},
            .series = {{"attention"}, {"a rule that reads nothing"}},
            .marks = page::Marks::bars,
            .categories = {std::begin(kModels), std::end(kModels)},
            .note = "Lowest to highest of the seeds."};
  Finding aligned{.held = true, .measured = {}}, begins{.held = true, .measured = {}};
  for (size_t i = 0; i < std::size(kModels); ++i) {
    const Spread error = spread_of(errors[i]), at_first = spread_of(first[i]);
    table.rows.push_back({kModels[i], percent(error), percent(at_first), percent(spread_of(any[i]))});
    plot.series[0].points.push_back(point(static_cast<double>(i), error));
    plot.series[1].points.push_back(point(static_cast<double>(i), spread_of(rule)));
    aligned.held = aligned.held && error.high < spread_of(rule).low;
    begins.held = begins.held && at_first.low > 0.5;
    aligned.measured += std::string(kModels[i]) + " " + percent(error) + ", ";
    begins.measured += std::string(i ? ", " : "") + kModels[i] + " " + percent(at_first);
  }
  aligned.measured += "the rule " + percent(spread_of(rule));
  begins.measured += "; by the grammar, " + percent(spread_of(grammars)) + " of the first words need no other";
  return {.findings = {aligned, begins}, .tables = {table}, .plots = {plot}};
}

}  // namespace

Experiment alignment() {
  return {
      .name = "alignment",
      .claim = "A translator looks at the word that it translates; the first word needs the first or the first two.",
      .method =
          "Four translators with cross-attention, Transformer and recurrent ones, learn the built-in grammar "
          "for as long. Each word of an unseen translation is aligned to the source word that got most of "
          "its attention (the last layer, mean of the heads), and that is compared with the grammar's own "
          "alignment: AER, the share of errors.",
      .tests = {"for all four, the AER of the worst seed is below that of a rule which has read nothing, 'word t of "
                "T belongs to source word t S / T': languages that are in about the same order are aligned by it",
                "for all four and every seed, the first target word has more than half of its attention at the "
                "first two source words: more than at all others together"},
      .run = run_alignment};
}

}  // namespace heed::lab
