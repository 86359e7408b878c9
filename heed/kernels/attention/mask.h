// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks: which keys a query may see. A Mask is the intersection of small constraints:
//
//   Mask{Causal::bottom_right(), Lengths{lengths}}
//
// All but Dense leave each query one contiguous range of keys [begin, end), and kernels skip what lies outside: prefer
// them. Alibi masks nothing; it is here because it, too, needs the positions of queries among the keys. Every
// constraint that depends on those positions names its alignment: there is no default to get wrong.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "heed/base/view.h"

namespace heed::kernels {

// How query positions align with key positions: query t is at key t + offset.
struct MaskAlignment {
  enum class Kind { offset, bottom_right };
  Kind kind = Kind::offset;
  int64_t offset = 0;

  // The offset for T queries over S keys (S: the sequence's own number of keys, where lengths or packing limit it).
  constexpr int64_t resolve(int64_t T, int64_t S) const { return kind == Kind::bottom_right ? S - T : offset; }
};

// Query t sees keys s <= t + offset.
struct Causal {
  MaskAlignment align;

  static constexpr Causal top_left() { return {{MaskAlignment::Kind::offset, 0}}; }            // offset 0
  static constexpr Causal bottom_right() { return {{MaskAlignment::Kind::bottom_right, 0}}; }  // offset S - T
  static constexpr Causal offset(int64_t n) { return {{MaskAlignment::Kind::offset, n}}; }     // n past keys
};

// A sliding window: query t, at position p = t + offset, sees keys p - left <= s <= p + right.
struct Window {
  int64_t left, right;
  MaskAlignment align;

  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  static constexpr Window top_left(int64_t left, int64_t right) {
    return {left, right, {MaskAlignment::Kind::offset, 0}};
  }
  static constexpr Window bottom_right(int64_t left, int64_t right) {
    return {left, right, {MaskAlignment::Kind::bottom_right, 0}};
  }
  static constexpr Window offset(int64_t n, int64_t left, int64_t right) {
    return {left, right, {MaskAlignment::Kind::offset, n}};
  }
};

// Padding: the first keys[b] keys of batch b are visible, the rest are padding.
struct Lengths {
  std::span<const int64_t> keys;
};

// Packed sequences, one after the other in one row (B = 1), given by cumulative lengths: sequence i has queries
// [queries[i], queries[i+1]) and keys [keys[i], keys[i+1]), and sees only itself; queries after the last sequence see
// nothing. Alignments count from the sequence's own beginning and end. Lengths{n} on top masks the keys from n on, and
// moves no alignment.
struct Packed {
  std::span<const int64_t> queries, keys;
};

// A boolean mask: query t of head h sees key s where visible(b, h, t, s) is true. [B,Hq,T,S]; an extent of 1 is
// broadcast: [B,1,1,S].
struct Dense {
  View<const bool, 4> visible;
};

// ALiBi: adds -slopes[h] |p - s| to the score of key s, for a query at position p = t + offset (Press et al. 2021).
struct Alibi {
  std::span<const float> slopes;  // [Hq]
  MaskAlignment align;

  static constexpr Alibi top_left(std::span<const float> slopes) { return {slopes, {MaskAlignment::Kind::offset, 0}}; }
  static constexpr Alibi bottom_right(std::span<const float> slopes) {
    return {slopes, {MaskAlignment::Kind::bottom_right, 0}};
  }
  static constexpr Alibi offset(int64_t n, std::span<const float> slopes) {
    return {slopes, {MaskAlignment::Kind::offset, n}};
  }
};

// Whether T is among Ts exactly once.
template <class T, class... Ts>
inline constexpr bool kOnce = (0 + ... + int{std::is_same_v<T, Ts>}) == 1;

// The constraints of a mask, each optional.
struct Mask {
  std::optional<Causal> causal;
  std::optional<Window> window;
  std::optional<Lengths> lengths;
  std::optional<Packed> packed;
  std::optional<Dense> dense;
  std::optional<Alibi> alibi;

  // In any order, each kind at most once.
  template <class... Constraint>
  requires((kOnce<Constraint, Causal, Window, Lengths, Packed, Dense, Alibi> && ...) &&
           (kOnce<Constraint, Constraint...> && ...))
      Mask(const Constraint&... constraint) {  // NOLINT(google-explicit-constructor)
    (set(constraint), ...);
  }

 private:
  void set(const Causal& c) { causal = c; }
  void set(const Window& w) { window = w; }
  void set(const Lengths& l) { lengths = l; }
  void set(const Packed& p) { packed = p; }
  void set(const Dense& d) { dense = d; }
  void set(const Alibi& a) { alibi = a; }
};

}  // namespace heed::kernels
