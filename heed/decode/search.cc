#include "heed/decode/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/error.h"
#include "heed/base/rng.h"
#include "heed/ops/softmax.h"

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

void check(const SearchOptions& o) {
  const auto refuse = [](const std::string& what) { throw Error("search: " + what); };
  if (o.beam < 1) refuse("beam is " + std::to_string(o.beam) + ", expected 1 or more");
  if (o.nbest < 1 || o.nbest > o.beam) {
    refuse("nbest is " + std::to_string(o.nbest) + ", expected 1 to " + std::to_string(o.beam) + " (beam)");
  }
  if (!(o.temperature > 0)) refuse("temperature is " + std::to_string(o.temperature) + ", expected above 0");
}

double scored(double log_probability, size_t length, double penalty) {
  return log_probability / std::pow(static_cast<double>(std::max<size_t>(1, length)), penalty);
}

int64_t sentences_of(const SearchInput& input) {
  return input.source.ids ? input.source.ids.shape(0) : input.prefix ? input.prefix.shape(0) : 1;
}

int64_t forced_by(const SearchInput& input) { return input.prefix ? input.prefix.shape(1) : 0; }

// The begin and the prefix of each row.
Tensor first_tokens(const SearchInput& input) {
  const int64_t rows = sentences_of(input), forced = forced_by(input);
  Tensor first = Tensor::uninitialised({rows, forced + 1}, DType::i32);
  for (int64_t i = 0; i < rows; ++i) {
    int32_t* row = first.data<int32_t>() + i * (forced + 1);
    row[0] = input.special.begin;
    for (int64_t t = 0; t < forced; ++t) row[t + 1] = input.prefix.data<int32_t>()[i * forced + t];
  }
  return first;
}

void check_prefix(const SearchInput& input, int64_t max_length) {
  const int64_t forced = forced_by(input);
  if (forced <= max_length - 2) return;
  throw Error("search: the prefix has " + std::to_string(forced) + " tokens, expected at most " +
              std::to_string(max_length - 2) + ": the model takes " + std::to_string(max_length) +
              " with its begin and one more");
}

// How many tokens may follow the prefix of a row: by its own source alone.
int64_t limit_of(const SearchInput& input, int64_t row, const SearchOptions& options, int64_t max_length) {
  const models::Tokens& source = input.source;
  const int64_t length = !source.ids              ? 0
                         : source.lengths.empty() ? source.ids.shape(1)
                                                  : source.lengths[static_cast<size_t>(row)];
  const int64_t usual = source.ids ? 2 * length + 20 : 256;
  return std::min(options.max_length > 0 ? options.max_length : usual, max_length - 1 - forced_by(input));
}

// Sentences side by side, up to `beam` rows of the state each. The rows of a sentence leave when it is done.
// T: the floating type that the model computes in.
template <class T>
class Search {
 public:
  Search(nn::Pass& pass, const models::Stepwise& model, const SearchInput& input, const SearchOptions& options,
         const SearchCall& call)
      : pass_(pass), model_(model), input_(input), options_(options), call_(call) {}

  std::vector<std::vector<Hypothesis>> run(nn::State state, const Tensor& first_logits) {
    state_ = std::move(state);
    start(first_logits);
    while (any_open()) {
      check_cancel(call_.cancel);
      advance();
    }
    return std::move(results_);
  }

 private:
  struct Beam {
    explicit Beam(Rng draws) : rng(draws) {}
    std::vector<Hypothesis> alive;  // row i of the beam
    std::vector<int64_t> nodes;     // that each of them is at
    std::vector<Hypothesis> done;
    int64_t next_node = 1, left = 0;  // left: tokens that may still come
    bool closed = false;
    Rng rng;
  };

  void start(const Tensor& logits) {
    const int64_t sentences = sentences_of(input_), forced = forced_by(input_);
    results_.resize(static_cast<size_t>(sentences));
    for (int64_t i = 0; i < sentences; ++i) {
      // A stream for each sentence: what is drawn does not depend on its neighbours.
      const auto stream = static_cast<uint64_t>(input_.streams.empty() ? i : input_.streams[static_cast<size_t>(i)]);
      Beam& beam = beams_.emplace_back(Rng(static_cast<uint64_t>(options_.seed), 0x736561 + (stream << 32)));
      Hypothesis hypothesis;
      for (int64_t t = 0; t < forced; ++t) {
        hypothesis.tokens.push_back(input_.prefix.data<int32_t>()[i * forced + t]);
      }
      beam.alive = {hypothesis};
      beam.nodes = {0};
      beam.left = limit_of(input_, i, options_, model_.max_length());
    }
    if (forced > 0) count_prefix(logits);
    take_logits(logits);
  }

  // A prefix is part of the output: its probability counts, as its length does.
  void count_prefix(const Tensor& logits) {
    const Tensor rows = ops::log_softmax(pass_, logits).value();
    const int64_t forced = forced_by(input_), V = rows.shape(2);
    for (size_t i = 0; i < beams_.size(); ++i) {
      Hypothesis& hypothesis = beams_[i].alive[0];
      for (int64_t t = 0; t < forced; ++t) {
        const int64_t row = static_cast<int64_t>(i) * (forced + 1) + t;
        hypothesis.log_probability += double{rows.data<T>()[row * V + hypothesis.tokens[static_cast<size_t>(t)]]};
      }
    }
  }

  // The log-probabilities of the last token of each row.
  void take_logits(const Tensor& logits) {
    const int64_t rows = logits.shape(0), last = logits.shape(1) - 1, V = logits.shape(2);
    next_ = Tensor::uninitialised({rows, V}, logits.dtype());
    for (int64_t i = 0; i < rows; ++i) {
      const T* from = logits.data<T>() + (i * logits.shape(1) + last) * V;
      std::copy_n(from, V, next_.data<T>() + i * V);
    }
    next_ = ops::log_softmax(pass_, next_).value();
  }

  bool any_open() const {
    return std::any_of(beams_.begin(), beams_.end(), [](const Beam& beam) { return !beam.closed; });
  }

  void advance() {
    parents_.clear(), tokens_.clear(), rows_.clear();
    int64_t first_row = 0;
    for (size_t i = 0; i < beams_.size(); ++i) {
      Beam& beam = beams_[i];
      if (beam.closed) continue;
      const int64_t rows = std::ssize(beam.alive);
      extend(i, first_row);
      first_row += rows;
    }
    if (tokens_.empty()) return;
    if (!goes_on_as_it_is(first_row)) state_.reorder(parents_);
    pass_.rows = rows_;
    const Shape shape{std::ssize(tokens_), 1};
    take_logits(model_.step(pass_, Tensor::of(shape, std::span<const int32_t>(tokens_)), state_).value());
    pass_.rows = {};
  }

  // Each row from itself, and none has left.
  bool goes_on_as_it_is(int64_t rows) const {
    if (std::ssize(parents_) != rows) return false;
    for (int64_t i = 0; i < rows; ++i) {
      if (parents_[static_cast<size_t>(i)] != i) return false;
    }
    return true;
  }

  // Replaces the living hypotheses by the best ways to go on; those that end are put aside.
  void extend(size_t sentence, int64_t first_row) {
    Beam& beam = beams_[sentence];
    std::vector<Hypothesis> alive;
    std::vector<int64_t> parents, nodes;
    int64_t rank = 0;
    for (const Candidate& candidate : candidates(beam, first_row)) {
      const bool among_best = rank++ < options_.beam;
      Hypothesis next = beam.alive[static_cast<size_t>(candidate.row)];
      next.log_probability = candidate.log_probability;
      next.nodes.push_back(beam.nodes[static_cast<size_t>(candidate.row)]);
      if (candidate.token == input_.special.end) {
        if (!among_best) continue;  // an end that would not have been kept as a beginning
        next.finished = true;
        next.score = scored(next.log_probability, next.tokens.size() + 1, options_.length_penalty);
        beam.done.push_back(std::move(next));
        continue;
      }
      if (std::ssize(alive) == options_.beam) continue;
      next.tokens.push_back(candidate.token);
      alive.push_back(std::move(next));
      parents.push_back(first_row + candidate.row);
      nodes.push_back(beam.next_node++);
    }
    beam.alive = std::move(alive);
    beam.nodes = std::move(nodes);
    if (beam.alive.empty() || --beam.left == 0 || nothing_better_left(beam)) return close(sentence);
    for (size_t i = 0; i < beam.alive.size(); ++i) {
      parents_.push_back(parents[i]);
      tokens_.push_back(beam.alive[i].tokens.back());
      rows_.push_back({static_cast<int64_t>(sentence), beam.nodes[i]});
    }
  }

  // Enough has ended, and the best that goes on is by now worse than all of it.
  bool nothing_better_left(Beam& beam) const {
    if (std::ssize(beam.done) < options_.beam) return false;
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    std::stable_sort(beam.done.begin(), beam.done.end(), better);
    beam.done.resize(static_cast<size_t>(options_.beam));
    double best = kImpossible;
    for (const Hypothesis& one : beam.alive) {
      best = std::max(best, scored(one.log_probability, one.tokens.size(), options_.length_penalty));
    }
    return best <= beam.done.back().score;
  }

  std::vector<Candidate> candidates(Beam& beam, int64_t first_row) const {
    return options_.sample ? drawn(beam, first_row) : best(beam, first_row);
  }

  bool may_come(int32_t token) const { return token != input_.special.begin && token != input_.special.pad; }

  // Twice as many as the beam, so that those which end leave enough that go on.
  std::vector<Candidate> best(const Beam& beam, int64_t first_row) const {
    const int64_t V = next_.shape(1);
    BestCandidates found(options_.beam == 1 ? 1 : static_cast<size_t>(2 * options_.beam));
    for (int64_t i = 0; i < std::ssize(beam.alive); ++i) {
      const T* row = next_.data<T>() + (first_row + i) * V;
      const double before = beam.alive[static_cast<size_t>(i)].log_probability;
      for (int32_t token = 0; token < V; ++token) {
        const double log_probability = before + double{row[token]};
        if (found.would_enter(log_probability) && may_come(token)) found.add({i, token, log_probability});
      }
    }
    return found.take();
  }

  // One draw for each living hypothesis; the first step makes `beam` of one.
  std::vector<Candidate> drawn(Beam& beam, int64_t first_row) const {
    std::vector<Candidate> all;
    const int64_t V = next_.shape(1), rows = std::ssize(beam.alive);
    const int64_t each = rows == 1 && beam.done.empty() ? options_.beam : 1;
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = next_.data<T>() + (first_row + i) * V;
      for (int64_t n = 0; n < each; ++n) {
        const int32_t token = draw(row, V, beam.rng);
        all.push_back({i, token, beam.alive[static_cast<size_t>(i)].log_probability + double{row[token]}});
      }
    }
    return all;
  }

  int32_t draw(const T* log_probabilities, int64_t V, Rng& rng) const {
    std::vector<int32_t> tokens;
    for (int32_t token = 0; token < V; ++token) {
      if (may_come(token)) tokens.push_back(token);
    }
    if (options_.top_k > 0 && options_.top_k < std::ssize(tokens)) {
      std::nth_element(tokens.begin(), tokens.begin() + options_.top_k, tokens.end(), [&](int32_t a, int32_t b) {
        return log_probabilities[a] != log_probabilities[b] ? log_probabilities[a] > log_probabilities[b] : a < b;
      });
      tokens.resize(static_cast<size_t>(options_.top_k));
      std::sort(tokens.begin(), tokens.end());
    }
    double largest = kImpossible, sum = 0;
    for (const int32_t token : tokens) largest = std::max(largest, double{log_probabilities[token]});
    std::vector<double> weights;
    for (const int32_t token : tokens) {
      weights.push_back(std::exp((double{log_probabilities[token]} - largest) / options_.temperature));
      sum += weights.back();
    }
    double left = static_cast<double>(rng.uniform()) * sum;
    for (size_t i = 0; i < tokens.size(); ++i) {
      left -= weights[i];
      if (left < 0) return tokens[i];
    }
    return tokens.back();
  }

  // The results of a sentence: what did not end in time comes after what did.
  void close(size_t sentence) {
    Beam& beam = beams_[sentence];
    beam.closed = true;
    if (std::ssize(beam.done) < options_.nbest) {
      for (Hypothesis& left : beam.alive) {
        left.score = scored(left.log_probability, left.tokens.size(), options_.length_penalty);
        beam.done.push_back(std::move(left));
      }
    }
    std::stable_sort(beam.done.begin(), beam.done.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.finished != b.finished ? a.finished : a.score > b.score;
    });
    beam.done.resize(std::min(beam.done.size(), static_cast<size_t>(options_.nbest)));
    results_[sentence] = std::move(beam.done);
    if (call_.done) call_.done(static_cast<int64_t>(sentence), results_[sentence]);
  }

  nn::Pass& pass_;
  const models::Stepwise& model_;
  const SearchInput& input_;
  const SearchOptions& options_;
  const SearchCall& call_;
  nn::State state_;
  Tensor next_;  // [rows, V]
  std::vector<Beam> beams_;
  std::vector<std::vector<Hypothesis>> results_;
  // Of the next step.
  std::vector<int64_t> parents_;
  std::vector<int32_t> tokens_;
  std::vector<nn::HypothesisRow> rows_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(nn::Pass& pass, const models::Stepwise& model, const SearchInput& input,
                                            const SearchOptions& options, const SearchCall& call) {
  check(options);
  check_prefix(input, model.max_length());
  check_cancel(call.cancel);
  nn::State state = model.begin(pass, input.source);
  const Tensor logits = model.step(pass, first_tokens(input), state).value();
  return with_float("search", logits.dtype(), [&](auto type) {
    return Search<decltype(type)>(pass, model, input, options, call).run(std::move(state), logits);
  });
}

}  // namespace heed::decode
