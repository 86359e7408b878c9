// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a recurrence goes through a batch whose rows have different lengths. Internal to recurrent.h's kernels.
//
// Rows are sorted by descending length, so that those still running at a step are the first ones; the tokens of a step
// are contiguous, in that order, and steps follow each other (as in PyTorch's PackedSequence). So a step is one product
// without padding, and all tokens are one matrix without padding.
#include <algorithm>
#include <numeric>

#include "heed/base/arena.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/weight.h"

namespace heed::kernels {

// The extents of a problem, in the letters of docs/notation.md.
struct RecurrentSizes {
  int64_t B, T, I, C, H, G;

  RecurrentSizes(const RecurrentInputs<float>& in, const RecurrentOptions& options)
      : B(in.x.shape(0)),
        T(in.x.shape(1)),
        I(in.x.shape(2)),
        C(in.w_ih.shape(1) - I),
        H(in.w_hh.shape(1)),
        G(gates_of(options.cell)) {}
  // Packing reads and writes the weights once: worth it where several steps read them.
  bool packs() const { return T >= 4; }
  bool packs_input() const { return packs() && B * T >= 128; }
  // The stride of rows of q, padded as saved_width is.
  int64_t q_stride() const { return G * H + 16; }
};

// The order of rows and tokens.
class Steps {
 public:
  Steps(const RecurrentInputs<float>& in, bool reverse, Arena& arena)
      : B_(in.x.shape(0)),
        T_(in.x.shape(1)),
        lengths_(in.lengths),
        reverse_(reverse),
        row_(arena.take<int64_t>(B_)),
        first_(arena.take<int64_t>(T_ + 1)) {}

  void sort() {
    std::iota(row_, row_ + B_, int64_t{0});
    std::sort(row_, row_ + B_,
              [&](int64_t a, int64_t b) { return length_of(a) != length_of(b) ? length_of(a) > length_of(b) : a < b; });
    first_[0] = 0;
    for (int64_t s = 0, running = B_; s < T_; ++s) {
      while (running > 0 && length(running - 1) <= s) --running;
      first_[s + 1] = first_[s] + running;
    }
  }

  int64_t tokens() const { return first_[T_]; }
  int64_t first(int64_t s) const { return first_[s]; }  // token of step s
  int64_t running(int64_t s) const { return s < T_ ? first_[s + 1] - first_[s] : 0; }
  int64_t row(int64_t r) const { return row_[r]; }  // the batch index of the r-th row in this order
  int64_t length(int64_t r) const { return length_of(row_[r]); }
  // The position in its sequence of the token that row r takes at step s.
  int64_t position(int64_t r, int64_t s) const { return reverse_ ? length(r) - 1 - s : s; }

  // The first row of the i-th of `count` runs of rows with about as many tokens each.
  int64_t begin_of_run(int64_t i, int64_t count) const {
    int64_t r = 0;
    for (int64_t sum = 0; r < B_ && (i == count || sum * count < tokens() * i); ++r) sum += length(r);
    return r;
  }

  // body(r, s, token) for every token.
  template <class Body>
  void for_each(Parallel& parallel, const Body& body) const {
    parallel.for_each(T_, [&](int64_t s, int) {
      for (int64_t r = 0; r < running(s); ++r) body(r, s, first_[s] + r);
    });
  }

 private:
  int64_t length_of(int64_t b) const { return lengths_.empty() ? T_ : lengths_[static_cast<size_t>(b)]; }

  int64_t B_, T_;
  std::span<const int64_t> lengths_;
  bool reverse_;
  int64_t *row_, *first_;
};

// The number of runs of rows. Each goes through all steps on a thread of its own: no step waits for another run. A
// row's bits do not depend on the rows beside it where weights are packed; elsewhere, and with feedback, there is one
// run.
inline int64_t count_runs(const RecurrentSizes& n, bool feedback, const Parallel& parallel) {
  constexpr int64_t kLeast = 8;  // rows over which reading the weights is amortised
  return feedback || !n.packs() ? 1 : std::max<int64_t>(1, std::min<int64_t>(parallel.threads(), n.B / kLeast));
}

// run(r, end) for each of them.
template <class Run>
void for_runs(const Steps& steps, int64_t runs, Parallel& parallel, const Run& run) {
  if (runs == 1) return run(steps.begin_of_run(0, 1), steps.begin_of_run(1, 1));  // steps may use all threads
  parallel.for_each(runs, [&](int64_t i, int) { run(steps.begin_of_run(i, runs), steps.begin_of_run(i + 1, runs)); });
}

// Entries of the first dimension, of a view that may be empty.
template <class T, size_t Rank>
View<T, Rank> some_of(const View<T, Rank>& view, int64_t begin, int64_t count) {
  return view ? view.slice(0, begin, count) : view;
}

// Some tokens of `saved` (see saved_width), by what their columns hold.
template <class T>
struct SavedColumns {
  View<T, 2> gates, before, extra;

  SavedColumns(const View<T, 2>& rows, const RecurrentSizes& n)
      : gates(rows.slice(1, 0, n.G * n.H)),
        before(rows.slice(1, n.G * n.H, n.H)),
        extra(rows.slice(1, (n.G + 1) * n.H, n.G == 1 ? 0 : n.H)) {}
};

inline void copy_row(const float* from, float* to, int64_t count) { std::copy_n(from, count, to); }
inline void add_row_to(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// A matrix as steps read it: packed once, into `scratch`, where that is worth it.
inline Weight step_weight(const View<const float, 2>& w, bool packs, std::byte* scratch, Parallel& parallel) {
  return packs ? pack_weight(w, DType::f32, scratch, parallel) : Weight(w);
}
inline int64_t step_weight_bytes(int64_t outputs, int64_t inputs, bool packs) {
  return packs ? static_cast<int64_t>(packed_weight_bytes(outputs, inputs, DType::f32)) : 0;
}

}  // namespace heed::kernels
