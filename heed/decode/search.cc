// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/rng.h"
#include "heed/decode/drawing.h"
#include "heed/decode/search_input.h"
#include "heed/decode/selected.h"
#include "heed/decode/token_choices.h"

namespace heed::decode {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// One way to go on: a hypothesis, and a token after it.
struct Candidate {
  int64_t row;  // of the beam
  int32_t token;
  double log_probability;
};

// The best few of many candidates that come by row and token: of equals, the first.
class BestCandidates {
 public:
  explicit BestCandidates(size_t wanted) : wanted_(wanted) {}

  bool would_enter(double log_probability) const { return all_.size() < wanted_ || log_probability > lowest_; }
  void add(const Candidate& candidate) {
    if (all_.size() == wanted_) all_.pop_back();
    const auto worse = [](const Candidate& a, const Candidate& b) { return a.log_probability > b.log_probability; };
    all_.insert(std::upper_bound(all_.begin(), all_.end(), candidate, worse), candidate);
    lowest_ = all_.back().log_probability;
  }
  std::vector<Candidate> take() { return std::move(all_); }

 private:
  size_t wanted_;
  double lowest_ = kImpossible;
  std::vector<Candidate> all_;
};

double scored(double log_probability, size_t length, double penalty) {
  return log_probability / std::pow(static_cast<double>(std::max<size_t>(1, length)), penalty);
}

// Sentences that enter a search: what the model says after their first tokens.
struct Entering {
  SearchInput input;
  nn::State state;
  Tensor logits;  // [sentences,n,V]
  std::vector<TokenChoices> choices;
};

// Sentences side by side, up to `beam` rows of the state each. The rows of a sentence leave when it is done.
template <class T>
class Search {
 public:
  Search(nn::Pass& pass, const models::Stepwise& model, const OutputSubset& outputs, const SearchOptions& options,
         const SearchCall& call)
      : pass_(pass), model_(model), outputs_(outputs), options_(options), call_(call) {}

  // How many sentences are not done yet.
  int64_t open() const {
    int64_t sentences = 0;
    for (const Part& part : parts_) sentences += std::ssize(part.sentences);
    return sentences;
  }

  void start(Entering&& entering) {
    const SearchInput& input = entering.input;
    const int64_t sentences = sentences_of(input), forced = forced_by(input);
    Part part{.state = std::move(entering.state), .logits = entering.logits};
    for (int64_t i = 0; i < sentences; ++i) {
      // A stream for each sentence: what is drawn does not depend on its neighbours.
      const auto stream =
          static_cast<uint64_t>(input.streams.empty() ? next_number_ : input.streams[static_cast<size_t>(i)]);
      auto sentence = std::make_unique<Sentence>(Rng(static_cast<uint64_t>(options_.seed), 0x736561 + (stream << 32)));
      Hypothesis hypothesis;
      for (int64_t t = 0; t < forced; ++t) {
        hypothesis.tokens.push_back(input.prefix.data<int32_t>()[i * forced + t]);
      }
      sentence->number = next_number_++;
      sentence->in_part = i;
      sentence->choices = std::move(entering.choices[static_cast<size_t>(i)]);
      sentence->special = input.special;
      sentence->required = input.required;
      sentence->forbidden = input.forbidden;
      sentence->forced = forced;
      sentence->alive = {hypothesis};
      sentence->nodes = {0};
      sentence->left = limit_of(input, i, options_, model_.max_length());
      part.sentences.push_back(std::move(sentence));
    }
    for (const auto& sentence : part.sentences) {
      for (int64_t t = 0; t <= forced; ++t) sentence->choices.narrow(part.row(sentence->in_part, t));
    }
    if (forced > 0) count_prefix(part);
    parts_.push_back(std::move(part));
  }

  // Every sentence goes on by one token.
  void advance() {
    tokens_.clear(), rows_.clear();
    for (Part& part : parts_) extend(part);
    if (tokens_.empty()) {
      parts_.clear();
      return;
    }
    join_parts();
    Part& all = parts_.front();
    pass_.rows = rows_;
    const Shape shape{std::ssize(tokens_), 1};
    all.logits = outputs_.step(pass_, model_, Tensor::of(shape, std::span<const int32_t>(tokens_)), all.state);
    pass_.rows = {};
    int64_t row = 0;
    for (const auto& sentence : all.sentences) {
      for (size_t i = 0; i < sentence->alive.size(); ++i) sentence->choices.narrow(all.row(row++));
    }
  }

 private:
  struct Sentence {
    explicit Sentence(Rng draws) : rng(draws) {}
    int64_t number = 0;             // in the order in which they came
    int64_t in_part = 0;            // and among those that came with it
    std::vector<Hypothesis> alive;  // row i of the beam
    std::vector<int64_t> nodes;     // that each of them is at
    std::vector<Hypothesis> done;
    TokenChoices choices;
    text::SpecialTokens special;
    std::vector<Phrase> required, forbidden;
    int64_t forced = 0;               // tokens of the prefix
    int64_t next_node = 1, left = 0;  // left: tokens that may still come
    Rng rng;
  };

  // Sentences whose rows are in one state.
  struct Part {
    nn::State state;
    Tensor logits;  // [rows,n,V], of which the last of each row counts; each narrowed to its sentence's choices
    std::vector<std::unique_ptr<Sentence>> sentences{};

    int64_t vocabulary() const { return logits.shape(2); }
    T* row(int64_t i, int64_t t) const { return logits.data<T>() + (i * logits.shape(1) + t) * logits.shape(2); }
    T* row(int64_t i) const { return row(i, logits.shape(1) - 1); }
  };

  // A prefix is part of the output: its probability counts, as its length does.
  void count_prefix(Part& part) {
    Selected all;  // none of them: the sum alone
    for (const auto& sentence : part.sentences) {
      Hypothesis& hypothesis = sentence->alive[0];
      const TokenChoices& choices = sentence->choices;
      for (int64_t t = 0; t < sentence->forced; ++t) {
        const T* row = part.row(sentence->in_part, t);
        select(row, choices.count(part.vocabulary()), all);
        const int64_t place = choices.place(hypothesis.tokens[static_cast<size_t>(t)]);
        hypothesis.log_probability += log_probability<T>(all, row[place]);
      }
    }
  }

  // All that goes on, as rows of one state.
  void join_parts() {
    for (size_t i = 1; i < parts_.size(); ++i) {
      parts_[0].state.join(parts_[i].state);
      std::move(parts_[i].sentences.begin(), parts_[i].sentences.end(), std::back_inserter(parts_[0].sentences));
    }
    parts_.resize(1);
  }

  // Replaces the hypotheses of all sentences of a part by the best ways to go on.
  void extend(Part& part) {
    select_rows(part);
    std::vector<int64_t> parents;
    int64_t first_row = 0;
    for (auto& sentence : part.sentences) {
      const int64_t rows = std::ssize(sentence->alive);
      if (!extend(part, *sentence, first_row, parents)) sentence.reset();
      first_row += rows;
    }
    std::erase(part.sentences, nullptr);
    part.state.reorder(parents);
  }

  void select_rows(const Part& part) {
    int64_t row = 0;
    std::vector<int64_t> counts;  // of logits, for each row
    for (const auto& sentence : part.sentences) {
      for (const Hypothesis& one : sentence->alive) {
        penalise(part, *sentence, one, row++);
        counts.push_back(sentence->choices.count(part.vocabulary()));
      }
    }
    selected_.resize(static_cast<size_t>(row));
    pass_.parallel.for_each(row, [&](int64_t i, int) {
      Selected& to = selected_[static_cast<size_t>(i)];
      to.best.resize(options_.sample ? 0 : wanted_of_row(part));
      select(part.row(i), counts[static_cast<size_t>(i)], to);
    });
    row = 0;
    for (const auto& sentence : part.sentences) {
      for (const Hypothesis& one : sentence->alive) {
        if (!std::isnan(selected_[static_cast<size_t>(row++)].log_sum)) continue;
        throw Error("search: the logits of sentence " + std::to_string(sentence->number) + " after " +
                    std::to_string(one.tokens.size()) +
                    " tokens are not numbers, expected finite ones: the weights are broken, or too large");
      }
    }
  }

  // With those that may not come, which are sorted out later.
  size_t wanted_of_row(const Part& part) const {
    const size_t forbidden = part.sentences.empty() ? 0 : part.sentences.front()->forbidden.size();
    return wanted() + 3 + forbidden;
  }
  // Twice as many as the beam, so that those which end leave enough that go on.
  size_t wanted() const { return options_.beam == 1 ? 1 : static_cast<size_t>(2 * options_.beam); }

  // Of tokens that came already, each once.
  void penalise(const Part& part, const Sentence& sentence, const Hypothesis& one, int64_t row) const {
    if (options_.repetition_penalty == 1) return;
    std::vector<int32_t> seen = one.tokens;
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    const T penalty = static_cast<T>(options_.repetition_penalty);
    for (const int32_t token : seen) {
      T& logit = part.row(row)[sentence.choices.place(token)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }

  // Replaces the living hypotheses by the best ways to go on; those that end are put aside. False: the sentence is
  // done.
  bool extend(const Part& part, Sentence& sentence, int64_t first_row, std::vector<int64_t>& all_parents) {
    std::vector<Hypothesis> alive;
    std::vector<int64_t> parents, nodes;
    int64_t rank = 0;
    for (const Candidate& candidate : candidates(part, sentence, first_row)) {
      const bool among_best = rank++ < options_.beam;
      const bool ends = candidate.token == sentence.special.end;
      if (ends && !among_best) continue;  // an end that would not have been kept as a beginning
      if (!ends && std::ssize(alive) == options_.beam) continue;
      Hypothesis next = sentence.alive[static_cast<size_t>(candidate.row)];
      next.log_probability = candidate.log_probability;
      next.nodes.push_back(sentence.nodes[static_cast<size_t>(candidate.row)]);
      if (ends) {
        next.finished = true;
        next.score = scored(next.log_probability, next.tokens.size() + 1, options_.length_penalty);
        sentence.done.push_back(std::move(next));
        continue;
      }
      next.tokens.push_back(candidate.token);
      alive.push_back(std::move(next));
      parents.push_back(first_row + candidate.row);
      nodes.push_back(sentence.next_node++);
    }
    sentence.alive = std::move(alive);
    sentence.nodes = std::move(nodes);
    if (sentence.alive.empty() || --sentence.left == 0 || nothing_better_left(sentence)) {
      close(sentence);
      return false;
    }
    for (size_t i = 0; i < sentence.alive.size(); ++i) {
      all_parents.push_back(parents[i]);
      tokens_.push_back(sentence.alive[i].tokens.back());
      rows_.push_back({sentence.in_part, sentence.nodes[i]});
    }
    return true;
  }

  // Enough has ended, and the best that goes on is by now worse than all of it.
  bool nothing_better_left(Sentence& sentence) const {
    if (std::ssize(sentence.done) < options_.beam) return false;
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    std::stable_sort(sentence.done.begin(), sentence.done.end(), better);
    sentence.done.resize(static_cast<size_t>(options_.beam));
    double best = kImpossible;
    for (const Hypothesis& one : sentence.alive) {
      best = std::max(best, scored(one.log_probability, one.tokens.size(), options_.length_penalty));
    }
    return best <= sentence.done.back().score;
  }

  std::vector<Candidate> candidates(const Part& part, Sentence& sentence, int64_t first_row) const {
    if (options_.sample) return drawn(part, sentence, first_row);
    return sentence.required.empty() ? best(part, sentence, first_row) : best_covering(part, sentence, first_row);
  }

  bool may_come(const Sentence& sentence, const Hypothesis& after, int32_t token) const {
    if (token == sentence.special.end) return std::ssize(after.tokens) - sentence.forced >= options_.min_length;
    return token != sentence.special.begin && token != sentence.special.pad &&
           !completes(after.tokens, token, sentence.forbidden);
  }

  std::vector<Candidate> best(const Part& part, const Sentence& sentence, int64_t first_row) const {
    BestCandidates found(wanted());
    for (int64_t i = 0; i < std::ssize(sentence.alive); ++i) {
      const Selected& selected = selected_[static_cast<size_t>(first_row + i)];
      const Hypothesis& after = sentence.alive[static_cast<size_t>(i)];
      const T* row = part.row(first_row + i);
      for (const kernels::Ranked& ranked : selected.best) {
        const double all = after.log_probability + log_probability<T>(selected, row[ranked.index]);
        if (!found.would_enter(all)) break;  // nor would any after it
        const int32_t token = sentence.choices.token(ranked.index);
        if (may_come(sentence, after, token)) found.add({i, token, all});
      }
    }
    return found.take();
  }

  // The best of those that have come equally far with the required phrases, in turn, the furthest first: hypotheses
  // that have said a phrase early, and those that still wait for its place, keep their places in the beam (dynamic beam
  // allocation, Post and Vilar 2018).
  std::vector<Candidate> best_covering(const Part& part, const Sentence& sentence, int64_t first_row) const {
    std::map<int64_t, std::vector<Candidate>, std::greater<>> by_met;
    for (int64_t i = 0; i < std::ssize(sentence.alive); ++i) {
      const Selected& selected = selected_[static_cast<size_t>(first_row + i)];
      const Hypothesis& after = sentence.alive[static_cast<size_t>(i)];
      const Coverage so_far = coverage(after.tokens, sentence.required);
      std::vector<int32_t> tokens = so_far.next;
      if (so_far.left == 0 || so_far.left < sentence.left - 1) {  // there is time for others
        for (const kernels::Ranked& ranked : selected.best) tokens.push_back(sentence.choices.token(ranked.index));
      }
      std::sort(tokens.begin(), tokens.end());
      tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
      std::vector<int32_t> longer = after.tokens;
      longer.push_back(0);
      for (const int32_t token : tokens) {
        const T logit = part.row(first_row + i)[sentence.choices.place(token)];
        const double all = after.log_probability + log_probability<T>(selected, logit);
        const bool too_early = token == sentence.special.end && so_far.left > 0;
        if (too_early || all == kImpossible || !may_come(sentence, after, token)) continue;
        longer.back() = token;
        by_met[coverage(longer, sentence.required).met].push_back({i, token, all});
      }
    }
    const auto better = [](const Candidate& a, const Candidate& b) { return a.log_probability > b.log_probability; };
    for (auto& [met, bank] : by_met) std::stable_sort(bank.begin(), bank.end(), better);
    std::vector<Candidate> found;
    for (size_t place = 0, before = 1; found.size() < wanted() && found.size() != before; ++place) {
      before = found.size();
      for (const auto& [met, bank] : by_met) {
        if (place < bank.size() && found.size() < wanted()) found.push_back(bank[place]);
      }
    }
    return found;
  }

  // One draw for each living hypothesis; the first step makes `beam` of one.
  std::vector<Candidate> drawn(const Part& part, Sentence& sentence, int64_t first_row) const {
    std::vector<Candidate> all;
    const int64_t rows = std::ssize(sentence.alive);
    const int64_t each = rows == 1 && sentence.done.empty() ? options_.beam : 1;
    for (int64_t i = 0; i < rows; ++i) {
      const Selected& selected = selected_[static_cast<size_t>(first_row + i)];
      const Hypothesis& after = sentence.alive[static_cast<size_t>(i)];
      const T* row = part.row(first_row + i);
      const Drawing drawing = drawing_of(row, places_of(part.vocabulary(), sentence, after), options_);
      if (drawing.places.empty()) continue;  // nothing may come
      for (int64_t n = 0; n < each; ++n) {
        const int32_t place = drawing.draw(sentence.rng);
        const double log_p = log_probability<T>(selected, row[place]);
        all.push_back({i, sentence.choices.token(place), after.log_probability + log_p});
      }
    }
    return all;
  }

  // The places of a row's tokens that may come.
  std::vector<int32_t> places_of(int64_t V, const Sentence& sentence, const Hypothesis& after) const {
    std::vector<int32_t> places;
    for (int32_t place = 0; place < sentence.choices.count(V); ++place) {
      if (may_come(sentence, after, sentence.choices.token(place))) places.push_back(place);
    }
    return places;
  }

  // The results of a sentence: what did not end in time comes after what did.
  void close(Sentence& sentence) {
    std::vector<Hypothesis>& done = sentence.done;
    if (std::ssize(done) < options_.nbest) {
      for (Hypothesis& left : sentence.alive) {
        left.score = scored(left.log_probability, left.tokens.size(), options_.length_penalty);
        done.push_back(std::move(left));
      }
    }
    std::stable_sort(done.begin(), done.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.finished != b.finished ? a.finished : a.score > b.score;
    });
    done.resize(std::min(done.size(), static_cast<size_t>(options_.nbest)));
    if (call_.done) call_.done(sentence.number, done);
  }

  nn::Pass& pass_;
  const models::Stepwise& model_;
  const OutputSubset& outputs_;
  const SearchOptions& options_;
  const SearchCall& call_;
  std::vector<Part> parts_;
  int64_t next_number_ = 0;
  std::vector<Selected> selected_;  // of each row of the part that is extended
  // Of the next step.
  std::vector<int32_t> tokens_;
  std::vector<nn::HypothesisRow> rows_;
};

}  // namespace

void search_all(nn::Pass& pass, const models::Stepwise& model, int64_t places, const NextSentences& next,
                const SearchOptions& options, const SearchCall& call) {
  check_options(options);
  OutputSubset outputs;
  const auto entering = [&](const SearchInput& input) {
    check_prefix(input, model.max_length());
    check_phrases(input, options);
    check_cancel(call.cancel);
    std::vector<TokenChoices> choices = outputs.enter(pass, model, input, sentences_of(input));
    nn::State state = model.begin(pass, input.source);
    const Tensor logits = outputs.step(pass, model, first_tokens(input), state);
    return Entering{input, std::move(state), logits, std::move(choices)};
  };
  std::optional<SearchInput> input = next(places);
  if (!input) return;
  Entering first = entering(*input);
  with_float("search", first.logits.dtype(), [&](auto type) {
    Search<decltype(type)> search(pass, model, outputs, options, call);
    search.start(std::move(first));
    while (true) {
      // Few at a time would make small products of the encoder.
      const int64_t room = places - search.open(), least = pass.observer ? places : std::max<int64_t>(1, places / 4);
      while (input && room >= least) {
        input = next(room);
        if (!input) break;
        search.start(entering(*input));
        break;
      }
      if (search.open() == 0) break;
      check_cancel(call.cancel);
      search.advance();
    }
  });
}

std::vector<std::vector<Hypothesis>> search(nn::Pass& pass, const models::Stepwise& model, const SearchInput& input,
                                            const SearchOptions& options, const SearchCall& call) {
  const int64_t sentences = sentences_of(input);
  std::vector<std::vector<Hypothesis>> results(static_cast<size_t>(sentences));
  bool given = false;
  const NextSentences once = [&](int64_t) -> std::optional<SearchInput> {
    if (std::exchange(given, true)) return std::nullopt;
    return input;
  };
  search_all(pass, model, sentences, once, options,
             {.cancel = call.cancel, .done = [&](int64_t row, const std::vector<Hypothesis>& found) {
                results[static_cast<size_t>(row)] = found;
                if (call.done) call.done(row, found);
              }});
  return results;
}

}  // namespace heed::decode
