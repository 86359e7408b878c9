#pragma once
// Which keys a query may see. A Mask is a set of small constraints that all have to agree:
//
//   Mask{Causal::bottom_right(), Lengths{lengths}}
//
// All but Dense leave each query one run of keys [begin, end), so that a kernel skips what lies outside: prefer them.
// Alibi hides nothing, but stands here because it, too, knows where queries stand among the keys. Whatever depends on a
// query's place among the keys names its alignment: there is no default to get wrong.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "heed/base/view.h"

namespace heed::kernels {

// Where query t stands among the keys: at key t + offset.
struct Alignment {
  enum class Kind { offset, bottom_right };
  Kind kind = Kind::offset;
  int64_t offset = 0;

  // offset for T queries over S keys (S: the row's own number of keys, where lengths or packing limit it).
  constexpr int64_t resolve(int64_t T, int64_t S) const { return kind == Kind::bottom_right ? S - T : offset; }
};

// Query t sees keys s <= t + offset.
struct Causal {
  Alignment align;

  static constexpr Causal top_left() { return {{Alignment::Kind::offset, 0}}; }            // offset 0
  static constexpr Causal bottom_right() { return {{Alignment::Kind::bottom_right, 0}}; }  // offset S - T
  static constexpr Causal offset(int64_t n) { return {{Alignment::Kind::offset, n}}; }     // n past keys
};

// Query t, standing at p = t + offset, sees keys p - left <= s <= p + right.
struct Window {
  int64_t left, right;
  Alignment align;

  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  static constexpr Window top_left(int64_t left, int64_t right) { return {left, right, {Alignment::Kind::offset, 0}}; }
  static constexpr Window bottom_right(int64_t left, int64_t right) {
    return {left, right, {Alignment::Kind::bottom_right, 0}};
  }
  static constexpr Window offset(int64_t n, int64_t left, int64_t right) {
    return {left, right, {Alignment::Kind::offset, n}};
  }
};

// keys[b] keys of batch b are real; the others are padding.
struct Lengths {
  std::span<const int64_t> keys;
};

// Several sequences laid end to end in one row (B = 1): sequence i has queries [queries[i], queries[i+1]) and keys
// [keys[i], keys[i+1]), and sees only itself; queries after the last sequence see nothing. Alignments count from the
// sequence's own beginning and end. Lengths{n} on top hides the keys from n on, and moves no alignment.
struct Packed {
  std::span<const int64_t> queries, keys;
};

// Query t of head h sees key s where visible(b, h, t, s) is true. [B,Hq,T,S]; an extent of 1 serves all: [B,1,1,S].
struct Dense {
  View<const bool, 4> visible;
};

// Adds -slopes[h] |p - s| to the score of key s, for a query that stands at p = t + offset (Press et al. 2021).
struct Alibi {
  std::span<const float> slopes;  // [Hq]
  Alignment align;

  static constexpr Alibi top_left(std::span<const float> slopes) { return {slopes, {Alignment::Kind::offset, 0}}; }
  static constexpr Alibi bottom_right(std::span<const float> slopes) {
    return {slopes, {Alignment::Kind::bottom_right, 0}};
  }
  static constexpr Alibi offset(int64_t n, std::span<const float> slopes) {
    return {slopes, {Alignment::Kind::offset, n}};
  }
};

// T stands among Ts exactly once.
template <class T, class... Ts>
inline constexpr bool kOnce = (0 + ... + int{std::is_same_v<T, Ts>}) == 1;

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
