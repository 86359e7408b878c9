// SPDX-License-Identifier: Apache-2.0
// What links 'it' to its noun? All sentences are of one kind,
//
//   The animal didn't cross the street because it was too tired (wide).
//
// over beasts and ways of the grammar's lexicon that differ in gender: Spanish says 'cansado' or 'cansada' as the noun
// has it, so the gender that a small Transformer says tells which noun it took 'it' for. Pairs of nouns that are tested
// on are not among those of training. Of each head of the encoder:
//
//   looks     how often 'it', or the word that tells ('tired'), puts more weight on the right noun than on the other
//   patching  the head's outputs are those for the other sentence ('wide' in the place of 'tired'): by how much the
//             log-odds of the two genders move towards the other noun's
//   off       how many points of gender accuracy are lost without the head
//
// And rollout, which knows no heads: how often the right noun has the larger share of the Spanish word.
#include <array>
#include <string>
#include <vector>

#include "heed/analysis/gates.h"
#include "heed/analysis/kept_attention.h"
#include "heed/analysis/patch.h"
#include "heed/analysis/rollout.h"
#include "heed/grammar/agreement.h"
#include "heed/lab/experiments.h"
#include "heed/lab/reasons.h"

namespace heed::lab {
namespace {

using grammar::Sentence;

// The share of sentences whose right gender is the likelier one. The pass may have gates.
double gender_accuracy(const models::Model& model, const Reasons& reasons, const nn::Pass& pass) {
  double right = 0, all = 0;
  for (const ReasonPair& one : reasons.unseen) {
    for (const Sentence& sentence : one) right += reasons.question(model, sentence).measure(pass) > 0, ++all;
  }
  return right / all;
}

// Of a head of the encoder, each in the mean over sentences; `looks` from 'it' or the telling word, whichever is more.
struct Head {
  std::string layer{};
  int64_t head = 0;
  double from_it = 0, from_telling = 0, patching = 0, off = 0;
  double looks() const { return std::max(from_it, from_telling); }
};

std::vector<Head> looks_of(const models::Model& model, const Reasons& reasons, const nn::Pass& pass) {
  std::vector<Head> heads;
  const double share = 1 / static_cast<double>(2 * reasons.unseen.size());
  for (const ReasonPair& one : reasons.unseen) {
    for (const Sentence& sentence : one) {
      const auto [noun, rival] = nouns_of(sentence);
      const grammar::AgreeingWord telling = grammar::agreeing_words(sentence).at(0);
      const analysis::Question question = reasons.question(model, sentence);
      size_t place = 0;
      for (const analysis::KeptAttention& layer : analysis::kept_attention(pass, question)) {
        if (layer.role != nn::AttentionRole::self) continue;
        const std::vector<int64_t> queries{telling.pronoun, telling.source};
        const Tensor weights = layer.weights(pass, queries);  // [H,2,S]
        for (int64_t h = 0; h < layer.heads(); ++h, ++place) {
          if (place == heads.size()) heads.push_back({layer.path, h});
          const double *it = weights.data<double>() + 2 * h * layer.keys(), *word = it + layer.keys();
          heads[place].from_it += it[noun] > it[rival] ? share : 0;
          heads[place].from_telling += word[noun] > word[rival] ? share : 0;
        }
      }
    }
  }
  return heads;
}

void measure_effects(std::vector<Head>& heads, const models::Model& model, const Reasons& reasons,
                     const nn::Pass& pass) {
  const double share = 1 / static_cast<double>(2 * reasons.unseen.size());
  const double accuracy = gender_accuracy(model, reasons, pass);
  for (Head& head : heads) {
    for (const ReasonPair& one : reasons.unseen) {
      for (const size_t i : {0, 1}) {
        const auto question = reasons.question(model, one[i]), other = reasons.question(model, one[1 - i]);
        const double patched = analysis::patched(pass, question, other, {{head.layer, head.head}});
        head.patching += share * (question.measure(pass) - patched);
      }
    }
    analysis::Gates gates({{head.layer, head.head, 0}});
    nn::Pass gated = pass;
    gated.observer = &gates;
    head.off = accuracy - gender_accuracy(model, reasons, gated);
  }
}

double found_by_rollout(const models::Model& model, const Reasons& reasons, const nn::Pass& pass) {
  double right = 0, all = 0;
  for (const ReasonPair& one : reasons.unseen) {
    for (const Sentence& sentence : one) {
      const auto [noun, rival] = nouns_of(sentence);
      const analysis::Question question = reasons.question(model, sentence);
      const auto shares =
          analysis::rollout(pass, question, nn::TextSide::target, question.target().position.value_or(0)).source;
      right += shares[static_cast<size_t>(noun)] > shares[static_cast<size_t>(rival)], ++all;
    }
  }
  return right / all;
}

Result run_pronoun(Context& context) {
  const int64_t steps = context.size(240, 60), quarter = steps / 4;
  context.expect(std::ssize(context.seeds()) * steps);
  std::vector<Series> accuracies, best_looks;
  std::vector<double> rollout, best_found;
  Table table{.title = "Heads of the encoder, of the first seed",
              .columns = {"head", "'it' looks at its noun", "the telling word does", "patching", "off: points lost"}};
  Finding same{.held = true, .measured = {}}, solved{.held = true, .measured = {}};
  for (const uint64_t seed : context.seeds()) {
    const Reasons reasons(seed);
    Workspace workspace;
    const nn::Pass pass{{context.parallel(), workspace}};
    Series accuracy, found;
    const data::TextModel model = train_translator(
        context, reasons.sentences, small_transformer(),
        {.steps = steps,
         .rate = 3e-3,
         .seed = seed,
         .every = quarter,
         .look = [&](int64_t step, const models::Model& now) {
           const std::vector<Head> heads = looks_of(now, reasons, pass);
           const Head& best = *std::ranges::max_element(heads, {}, &Head::looks);
           accuracy.points.push_back(point(static_cast<double>(step), gender_accuracy(now, reasons, pass)));
           found.points.push_back(point(static_cast<double>(step), best.looks()));
         }});
    std::vector<Head> heads = looks_of(model.model(), reasons, pass);
    measure_effects(heads, model.model(), reasons, pass);
    if (accuracies.empty()) {
      for (const Head& head : heads) {
        table.rows.push_back({head.layer + "." + std::to_string(head.head), percent(head.from_it),
                              percent(head.from_telling), shown(head.patching), shown(100 * head.off)});
      }
    }
    const Head& looking = *std::ranges::max_element(heads, {}, &Head::looks);
    const Head& carrying = *std::ranges::max_element(heads, {}, &Head::off);
    same.held = same.held && &looking == &carrying;
    same.measured += (same.measured.empty() ? "" : "; ") + looking.layer + "." + std::to_string(looking.head) +
                     " looks " + percent(looking.looks()) + " and costs " + shown(100 * looking.off) + " points, " +
                     carrying.layer + "." + std::to_string(carrying.head) + " costs most, " + shown(100 * carrying.off);
    solved.held = solved.held && accuracy.points.back().y > 0.9;
    solved.measured += (solved.measured.empty() ? "" : ", ") + percent(accuracy.points.back().y);
    rollout.push_back(found_by_rollout(model.model(), reasons, pass));
    best_found.push_back(looking.looks());
    accuracies.push_back(accuracy), best_looks.push_back(found);
  }
  const Spread by_rollout = spread_of(rollout), by_head = spread_of(best_found);
  const Finding beaten{by_rollout.high < by_head.low,
                       "rollout " + percent(by_rollout) + ", the best head " + percent(by_head)};
  return {
      .findings = {solved, same, beaten},
      .tables = {table},
      .plots = {{.title = "During training",
                 .x = {.label = "steps"},
                 .y = {.label = "share of unseen sentences", .low = 0, .high = 1},
                 .series = {mean_of("right gender", accuracies), mean_of("best head looks at the noun", best_looks)}}}};
}

}  // namespace

Experiment pronoun() {
  return {
      .name = "pronoun",
      .claim = "One head links 'it' to its noun: it looks there, and the gender of the translation hangs on it.",
      .method =
          "A small Transformer learns sentences of one kind, 'The animal didn't cross the street because it was "
          "too tired' (or wide), with two nouns of different gender, so that the gender of 'cansado' tells which "
          "noun 'it' was taken for. Over pairs of nouns that it never saw together: where each head of the "
          "encoder looks, what it does to the odds of the genders (patched from the other sentence) and to the "
          "accuracy (switched off), and what rollout says.",
      .tests = {"for every seed the trained model has the right gender in more than 90 % of the sentences: there is "
                "something to explain (a coin has 50 %)",
                "for every seed, the head that looks at the right noun most often is, of all eight, the one whose "
                "switching off loses most accuracy (by chance one in eight for each seed)",
                "the best head finds the noun more often, for the worst seed, than rollout for the best one: the link "
                "is in a head, and is lost in the mean of all"},
      .run = run_pronoun};
}

}  // namespace heed::lab
