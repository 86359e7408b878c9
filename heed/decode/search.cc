#include "heed/decode/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/base/error.h"
#include "heed/ops/softmax.h"

namespace heed::decode {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// One way to go on: a hypothesis, and a token after it.
struct Candidate {
  int64_t row;  // of the state
  int32_t token;
  double log_probability;
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

// Sentences side by side, `beam` rows of the state each. Rows of a sentence that is done stay, and are ignored.
class Search {
 public:
  Search(nn::Pass& pass, const models::Model& model, const SpecialTokens& special, const SearchOptions& options)
      : pass_(pass),
        model_(model),
        special_(special),
        options_(options),
        rng_(static_cast<uint64_t>(options.seed), 0x736561) {}

  std::vector<std::vector<Hypothesis>> run(const models::Tokens& source, const Tensor& prefix) {
    start(source, prefix);
    for (int64_t step = 0; step < limit_ && !all_done(); ++step) advance();
    return finish();
  }

 private:
  struct Beam {
    std::vector<Hypothesis> alive;  // row i of the beam
    std::vector<Hypothesis> done;
    bool closed = false;
  };

  void start(const models::Tokens& source, const Tensor& prefix) {
    const int64_t sentences = source.ids ? source.ids.shape(0) : prefix ? prefix.shape(0) : 1;
    limit_ = options_.max_length > 0 ? options_.max_length : source.ids ? 2 * source.ids.shape(1) + 20 : 256;
    const int64_t forced = prefix ? prefix.shape(1) : 0;
    if (forced > model_.max_length() - 2) {
      throw Error("search: the prefix has " + std::to_string(forced) + " tokens, expected at most " +
                  std::to_string(model_.max_length() - 2) + ": the model takes " + std::to_string(model_.max_length()) +
                  " with its begin and one more");
    }
    limit_ = std::min(limit_, model_.max_length() - 1 - forced);
    state_ = model_.begin(pass_, source);
    const Tensor first = Tensor::uninitialised({sentences, forced + 1}, DType::i32);
    beams_.resize(static_cast<size_t>(sentences));
    for (int64_t i = 0; i < sentences; ++i) {
      int32_t* row = first.data<int32_t>() + i * (forced + 1);
      row[0] = special_.begin;
      Hypothesis hypothesis;
      for (int64_t t = 0; t < forced; ++t) {
        row[t + 1] = prefix.data<int32_t>()[i * forced + t];
        hypothesis.tokens.push_back(row[t + 1]);
      }
      beams_[static_cast<size_t>(i)].alive = {hypothesis};
    }
    const Tensor logits = model_.step(pass_, first, state_).value();
    if (forced > 0) count_prefix(prefix, logits);
    take_logits(logits);
  }

  // A prefix is part of the output: its probability counts, as its length does.
  void count_prefix(const Tensor& prefix, const Tensor& logits) {
    const Tensor rows = ops::log_softmax(pass_, logits).value();
    const int64_t forced = prefix.shape(1), V = rows.shape(2);
    for (size_t i = 0; i < beams_.size(); ++i) {
      for (int64_t t = 0; t < forced; ++t) {
        const int64_t row = static_cast<int64_t>(i) * (forced + 1) + t;
        const int32_t token = beams_[i].alive[0].tokens[static_cast<size_t>(t)];
        beams_[i].alive[0].log_probability += double{rows.data<float>()[row * V + token]};
      }
    }
  }

  // The log-probabilities of the last token of each row.
  void take_logits(const Tensor& logits) {
    const int64_t rows = logits.shape(0), last = logits.shape(1) - 1, V = logits.shape(2);
    next_ = Tensor::uninitialised({rows, V});
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = logits.data<float>() + (i * logits.shape(1) + last) * V;
      std::copy_n(from, V, next_.data<float>() + i * V);
    }
    next_ = ops::log_softmax(pass_, next_).value();
  }

  bool all_done() const {
    return std::all_of(beams_.begin(), beams_.end(), [](const Beam& beam) { return beam.closed; });
  }

  void advance() {
    std::vector<int64_t> parents;
    std::vector<int32_t> tokens;
    int64_t first_row = 0;
    for (Beam& beam : beams_) {
      const auto rows = std::ssize(beam.alive);
      if (beam.closed) {
        for (int64_t i = 0; i < rows; ++i) parents.push_back(first_row + i), tokens.push_back(special_.pad);
      } else {
        extend(beam, first_row, parents, tokens);
      }
      first_row += rows;
    }
    if (all_done()) return;
    state_.reorder(parents);
    const Shape shape{std::ssize(tokens), 1};
    take_logits(model_.step(pass_, Tensor::of(shape, std::span<const int32_t>(tokens)), state_).value());
  }

  // Replaces the living hypotheses by the best ways to go on; those that end are put aside.
  void extend(Beam& beam, int64_t first_row, std::vector<int64_t>& parents, std::vector<int32_t>& tokens) {
    std::vector<Hypothesis> alive;
    int64_t rank = 0;
    for (const Candidate& candidate : candidates(beam, first_row)) {
      const bool among_best = rank++ < options_.beam;
      Hypothesis next = beam.alive[static_cast<size_t>(candidate.row)];
      next.log_probability = candidate.log_probability;
      if (candidate.token == special_.end) {
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
      tokens.push_back(candidate.token);
    }
    if (alive.empty()) {  // all ended: one row stays, to keep the place
      alive.push_back(beam.alive[0]);
      parents.push_back(first_row);
      tokens.push_back(special_.pad);
      beam.closed = true;
    }
    beam.alive = std::move(alive);
    if (!beam.closed) beam.closed = nothing_better_left(beam);
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

  std::vector<Candidate> candidates(const Beam& beam, int64_t first_row) {
    return options_.sample ? drawn(beam, first_row) : best(beam, first_row);
  }

  // Twice as many as the beam, so that those which end leave enough that go on.
  std::vector<Candidate> best(const Beam& beam, int64_t first_row) const {
    const int64_t V = next_.shape(1);
    std::vector<Candidate> all;
    for (int64_t i = 0; i < std::ssize(beam.alive); ++i) {
      const float* row = next_.data<float>() + (first_row + i) * V;
      const double before = beam.alive[static_cast<size_t>(i)].log_probability;
      for (int32_t token = 0; token < V; ++token) {
        if (token == special_.begin || token == special_.pad) continue;
        all.push_back({i, token, before + double{row[token]}});
      }
    }
    const size_t wanted = options_.beam == 1 ? 1 : static_cast<size_t>(2 * options_.beam);
    const size_t kept = std::min(all.size(), wanted);
    std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(kept), all.end(),
                      [](const Candidate& a, const Candidate& b) {
                        if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
                        return a.row != b.row ? a.row < b.row : a.token < b.token;
                      });
    all.resize(kept);
    return all;
  }

  // One draw for each living hypothesis; the first step makes `beam` of one.
  std::vector<Candidate> drawn(const Beam& beam, int64_t first_row) {
    std::vector<Candidate> all;
    const int64_t rows = std::ssize(beam.alive), each = rows == 1 && beam.done.empty() ? options_.beam : 1;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t n = 0; n < each; ++n) {
        const int32_t token = draw(next_.data<float>() + (first_row + i) * next_.shape(1));
        const double before = beam.alive[static_cast<size_t>(i)].log_probability;
        all.push_back({i, token, before + double{next_.data<float>()[(first_row + i) * next_.shape(1) + token]}});
      }
    }
    return all;
  }

  int32_t draw(const float* log_probabilities) {
    const int64_t V = next_.shape(1);
    std::vector<int32_t> tokens;
    for (int32_t token = 0; token < V; ++token) {
      if (token != special_.begin && token != special_.pad) tokens.push_back(token);
    }
    if (options_.top_k > 0 && options_.top_k < std::ssize(tokens)) {
      std::nth_element(tokens.begin(), tokens.begin() + options_.top_k, tokens.end(), [&](int32_t a, int32_t b) {
        return log_probabilities[a] != log_probabilities[b] ? log_probabilities[a] > log_probabilities[b] : a < b;
      });
      tokens.resize(static_cast<size_t>(options_.top_k));
      std::sort(tokens.begin(), tokens.end());
    }
    double largest = kImpossible, sum = 0;
    for (int32_t token : tokens) largest = std::max(largest, double{log_probabilities[token]});
    std::vector<double> weights;
    for (int32_t token : tokens) {
      weights.push_back(std::exp((double{log_probabilities[token]} - largest) / options_.temperature));
      sum += weights.back();
    }
    double left = static_cast<double>(rng_.uniform()) * sum;
    for (size_t i = 0; i < tokens.size(); ++i) {
      left -= weights[i];
      if (left < 0) return tokens[i];
    }
    return tokens.back();
  }

  std::vector<std::vector<Hypothesis>> finish() {
    std::vector<std::vector<Hypothesis>> results;
    for (Beam& beam : beams_) {
      // What did not end in time comes after what did.
      if (std::ssize(beam.done) < options_.nbest) {
        for (Hypothesis& left : beam.alive) {
          left.score = scored(left.log_probability, left.tokens.size(), options_.length_penalty);
          if (!beam.closed || beam.done.empty()) beam.done.push_back(left);
        }
      }
      std::stable_sort(beam.done.begin(), beam.done.end(), [](const Hypothesis& a, const Hypothesis& b) {
        return a.finished != b.finished ? a.finished : a.score > b.score;
      });
      beam.done.resize(std::min(beam.done.size(), static_cast<size_t>(options_.nbest)));
      results.push_back(std::move(beam.done));
    }
    return results;
  }

  nn::Pass& pass_;
  const models::Model& model_;
  const SpecialTokens special_;
  const SearchOptions& options_;
  Rng rng_;
  int64_t limit_ = 0;
  nn::State state_;
  Tensor next_;  // [rows, V]
  std::vector<Beam> beams_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> search(nn::Pass& pass, const models::Model& model, const models::Tokens& source,
                                            const SpecialTokens& special, const SearchOptions& options,
                                            const Tensor& prefix) {
  check(options);
  return Search(pass, model, special, options).run(source, prefix);
}

}  // namespace heed::decode
