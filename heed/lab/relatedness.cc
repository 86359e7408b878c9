// SPDX-License-Identifier: Apache-2.0
// Which words are related is decided by the task. Self-attention without parameters has nothing but the words' own
// vectors x to learn:
//
//   c_t = sum_s softmax_s(x_t . x_s) x_s
//
// All sentences are 'the cat walks': a noun (a beast or a person) and a verb (moves or stays). At each word a label is
// predicted from [x ; c]: the kind of the noun in one task, that of the verb in the other. Nothing else differs, so
// what differs in the learned dot products is due to the task.
#include <array>
#include <numeric>

#include "heed/lab/experiments.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

// 'the', then nouns (the first half: beasts), then verbs (the first half move).
constexpr int32_t kKinds = 6, kThe = kFirstId, kNouns = kThe + 1, kVerbs = kNouns + kKinds,
                  kEndOfWords = kVerbs + kKinds;

enum class Asked { noun, verb };

Draw sentence_of(Asked asked) {
  return [asked](Rng& rng) {
    const auto noun = static_cast<int32_t>(rng.below(kKinds)), verb = static_cast<int32_t>(rng.below(kKinds));
    const int32_t label = kFirstId + ((asked == Asked::noun ? noun : verb) < kKinds / 2 ? 0 : 1);
    return data::TokenPair{{kThe, kNouns + noun, kVerbs + verb}, {label, label, label}};
  };
}

// The mean of x_t . x_s over all sentences; t and s are 'the', the noun or the verb.
using Products = std::array<std::array<double, 3>, 3>;

Products products(const models::Model& model) {
  const Tensor table = model.parameters().find("embedding.weight")->value;
  const int64_t width = table.shape(1);
  Products mean{};
  for (int32_t n = 0; n < kKinds; ++n) {
    for (int32_t v = 0; v < kKinds; ++v) {
      const std::array<int32_t, 3> words{kThe, kNouns + n, kVerbs + v};
      for (size_t t = 0; t < 3; ++t) {
        for (size_t s = 0; s < 3; ++s) {
          const float *a = table.data<float>() + width * words[t], *b = table.data<float>() + width * words[s];
          // The model has embeddings times the root of their width.
          mean[t][s] += static_cast<double>(width) * std::inner_product(a, a + width, b, 0.0) / (kKinds * kKinds);
        }
      }
    }
  }
  return mean;
}

// How much the words of a sentence, itself included, look for word s.
double pull(const Products& p, size_t s) { return (p[0][s] + p[1][s] + p[2][s]) / 3; }

Result run_relatedness(Context& context) {
  const int64_t steps = context.size(1500, 300);
  context.expect(2 * steps * std::ssize(context.seeds()));
  const models::SelfAttentiveOptions options{.vocabulary = kEndOfWords,
                                             .outputs = kFirstId + 2,
                                             .layers = {.base = models::BaseLayer::none, .score = nn::Score::dot},
                                             .width = 16,
                                             .dropout = 0};
  constexpr const char* kPlaces[] = {"the", "noun", "verb"};
  Table table{.title = "Learned dot products x_t . x_s, in the mean over all sentences",
              .columns = {"task: what is asked for", "t", "the", "noun", "verb", "right"}};
  Plot plot{.title = "How much the words of a sentence look for a word",
            .y = {.label = "mean of x_t . x_s over t"},
            .marks = page::Marks::bars,
            .categories = {"the", "the noun", "the verb"},
            .note = "Lowest to highest of the seeds."};
  bool asked_first = true, the_last = true;
  std::array<std::string, 2> measured;
  for (const Asked asked : {Asked::noun, Asked::verb}) {
    std::array<std::array<std::vector<double>, 3>, 3> all;
    std::array<std::vector<double>, 3> pulls;
    std::vector<double> right;
    for (const uint64_t seed : context.seeds()) {
      const DrawnBatches batches(sentence_of(asked), 32, seed);
      const auto model = trained(context, options, batches, {.steps = steps, .rate = 1e-2, .seed = seed});
      right.push_back(accuracy(context, *model, held_out(sentence_of(asked), 200, seed)).share());
      const Products found = products(*model);
      for (size_t s = 0; s < 3; ++s) {
        pulls[s].push_back(pull(found, s));
        for (size_t t = 0; t < 3; ++t) all[t][s].push_back(found[t][s]);
      }
      const size_t wanted = asked == Asked::noun ? 1 : 2, other = 3 - wanted;
      asked_first = asked_first && pull(found, wanted) > pull(found, other);
      the_last = the_last && pull(found, 0) < std::min(pull(found, 1), pull(found, 2));
    }
    const std::string task = asked == Asked::noun ? "the noun's kind" : "the verb's kind";
    Series series{task};
    for (size_t t = 0; t < 3; ++t) {
      table.rows.push_back({task, kPlaces[t], shown(spread_of(all[t][0])), shown(spread_of(all[t][1])),
                            shown(spread_of(all[t][2])), percent(spread_of(right))});
      series.points.push_back(point(static_cast<double>(t), spread_of(pulls[t])));
    }
    plot.series.push_back(series);
    measured[0] += (measured[0].empty() ? "" : "; ") + task + ": noun " + shown(spread_of(pulls[1])) + ", verb " +
                   shown(spread_of(pulls[2]));
    measured[1] += (measured[1].empty() ? "" : "; ") + task + ": 'the' " + shown(spread_of(pulls[0]));
  }
  return {.findings = {{asked_first, measured[0]}, {the_last, measured[1]}}, .tables = {table}, .plots = {plot}};
}

}  // namespace

Experiment relatedness() {
  return {
      .name = "relatedness",
      .claim = "Which words are related is decided by the task; 'the' is related to little.",
      .method =
          "Two taggers read the same sentences, 'the cat walks', with parameter-free self-attention. One is "
          "trained to tell at every word the kind of the noun, the other that of the verb. Measured are the "
          "learned dot products of 'the', nouns and verbs.",
      .tests = {"for every seed, the words of a sentence look for the noun more than for the verb where the noun is "
                "asked for, and the other way round where the verb is: the sign of a difference, in both tasks",
                "for every seed and both tasks, they look less for 'the' than for either"},
      .run = run_relatedness};
}

}  // namespace heed::lab
