// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/attention/visibility.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"

namespace heed::kernels {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error("attention: " + what); }

void check_window(const Window& window) {
  if (window.left < 0) fail("window.left is " + std::to_string(window.left) + ", expected 0 or more");
  if (window.right < 0) fail("window.right is " + std::to_string(window.right) + ", expected 0 or more");
}

void check_lengths(const Lengths& lengths, int64_t B, int64_t S) {
  const auto& keys = lengths.keys;
  if (std::ssize(keys) != B) {
    fail("lengths has " + std::to_string(keys.size()) + " entries, expected " + std::to_string(B) + " (B)");
  }
  for (size_t b = 0; b < keys.size(); ++b) {
    if (keys[b] < 0 || keys[b] > S) {
      fail("lengths[" + std::to_string(b) + "] is " + std::to_string(keys[b]) + ", expected 0 to " + std::to_string(S) +
           " (S)");
    }
  }
}

// Cumulative lengths: from 0, never falling, to at most `limit`.
void check_cumulative(const std::string& name, std::span<const int64_t> list, int64_t limit, const char* letter) {
  if (list.empty()) fail(name + " has 0 entries, expected at least 1");
  if (list[0] != 0) fail(name + " begins at " + std::to_string(list[0]) + ", expected 0");
  for (size_t i = 1; i < list.size(); ++i) {
    if (list[i] < list[i - 1]) {
      fail(name + "[" + std::to_string(i) + "] is " + std::to_string(list[i]) + ", expected at least " +
           std::to_string(list[i - 1]) + " (" + name + "[" + std::to_string(i - 1) + "])");
    }
  }
  if (list.back() > limit) {
    fail(name + " ends at " + std::to_string(list.back()) + ", expected at most " + std::to_string(limit) + " (" +
         letter + ")");
  }
}

void check_packed(const Packed& packed, int64_t B, int64_t T, int64_t S) {
  if (B != 1) fail("packed sequences need B = 1, got B = " + std::to_string(B));
  if (packed.queries.size() != packed.keys.size()) {
    fail("packed.queries has " + std::to_string(packed.queries.size()) + " entries and packed.keys has " +
         std::to_string(packed.keys.size()) + ", expected the same number");
  }
  check_cumulative("packed.queries", packed.queries, T, "T");
  check_cumulative("packed.keys", packed.keys, S, "S");
}

// Offsets come from users and may be as large as their type: sums saturate.
int64_t saturating_add(int64_t a, int64_t b) {
  using Limits = std::numeric_limits<int64_t>;
  if (b > 0 && a > Limits::max() - b) return Limits::max();
  if (b < 0 && a < Limits::min() - b) return Limits::min();
  return a + b;
}

// Query t of a sequence sees its keys t + lower <= s < t + upper. What each constraint says of T queries over S keys
// is such a band. Outside [-T, S] a bound says for every t what it says at that end, so both are kept within.
struct Band {
  int64_t lower, upper;

  Band(const Mask& mask, int64_t T, int64_t S) : lower(-T), upper(S) {
    if (mask.causal) keep(Window{Window::kUnbounded, 0, mask.causal->align}, T, S);
    if (mask.window) keep(*mask.window, T, S);
    upper = std::max(lower, upper);
  }

  void keep(const Window& window, int64_t T, int64_t S) {
    const int64_t offset = window.align.resolve(T, S);
    if (window.left != Window::kUnbounded) {
      lower = std::max(lower, std::min(S, saturating_add(offset, -window.left)));
    }
    if (window.right != Window::kUnbounded) {
      upper = std::min(upper, saturating_add(saturating_add(offset, window.right), 1));
    }
  }
};

// The sum over t in [0, T) of t + bound, held within [0, S].
int64_t sum_of_bounds(int64_t bound, int64_t T, int64_t S) {
  const int64_t first = std::clamp<int64_t>(-bound, 0, T);    // before it, 0
  const int64_t last = std::clamp<int64_t>(S - bound, 0, T);  // from it on, S
  const int64_t rising = (last - first) * (first + last - 1) / 2 + (last - first) * bound;
  return rising + (T - last) * S;
}

}  // namespace

Visibility::Visibility(const Mask& mask, int64_t B, int64_t T, int64_t S)
    : causal_(mask.causal.has_value()), packed_(mask.packed.has_value()) {
  if (mask.window) check_window(*mask.window);
  if (mask.lengths) check_lengths(*mask.lengths, B, S);
  if (mask.packed) check_packed(*mask.packed, B, T, S);

  // All at once: a vector that grows would allocate several sizes from the cache.
  sequences_.reserve(packed_ ? mask.packed->queries.size() : static_cast<size_t>(B));
  if (packed_) {
    const auto& [queries, keys] = *mask.packed;
    const int64_t visible_end = mask.lengths ? mask.lengths->keys[0] : S;
    for (size_t i = 0; i + 1 < queries.size(); ++i) {
      add_sequence(mask, {queries[i], queries[i + 1]}, {keys[i], keys[i + 1]}, visible_end);
    }
  } else {
    for (int64_t b = 0; b < B; ++b) {
      const int64_t length = mask.lengths ? mask.lengths->keys[b] : S;
      add_sequence(mask, {0, T}, {0, length}, length);
    }
  }
  everything_ = pairs_ == B * T * S;
}

// The band is that of the whole sequence; keys from visible_end on are then left out of it.
void Visibility::add_sequence(const Mask& mask, KeyRange queries, KeyRange keys, int64_t visible_end) {
  const int64_t T = queries.end - queries.begin;
  const Band band(mask, T, keys.end - keys.begin);
  const int64_t key_begin = std::min(keys.begin, visible_end), key_end = std::min(keys.end, visible_end);
  const int64_t shift = keys.begin - queries.begin;
  const int64_t diagonal = mask.alibi ? saturating_add(shift, mask.alibi->align.resolve(T, keys.end - keys.begin)) : 0;
  sequences_.push_back({queries.end, key_begin, key_end, shift + band.lower, shift + band.upper, diagonal});
  pairs_ += sum_of_bounds(band.upper, T, key_end - key_begin) - sum_of_bounds(band.lower, T, key_end - key_begin);
}

const Visibility::Sequence* Visibility::sequence(int64_t b, int64_t t) const noexcept {
  if (!packed_) return &sequences_[static_cast<size_t>(b)];
  const auto found = std::upper_bound(sequences_.begin(), sequences_.end(), t,
                                      [](int64_t query, const Sequence& s) { return query < s.query_end; });
  return found == sequences_.end() ? nullptr : &*found;
}

KeyRange Visibility::row(int64_t b, int64_t t) const noexcept {
  const Sequence* found = sequence(b, t);
  if (!found) return {0, 0};
  const auto& [query_end, key_begin, key_end, lower, upper, diagonal] = *found;
  return {std::clamp(t + lower, key_begin, key_end), std::clamp(t + upper, key_begin, key_end)};
}

int64_t Visibility::position(int64_t b, int64_t t) const noexcept {
  const Sequence* found = sequence(b, t);
  return found ? saturating_add(t, found->diagonal) : 0;
}

}  // namespace heed::kernels
