// SPDX-License-Identifier: Apache-2.0
#pragma once
// Placement: which rows of a sequence each rank holds, so that causal attention is the same work for all of them.
//
// The sequence is cut into 2 n chunks for n ranks, and rank r holds chunks r and 2 n - 1 - r:
//
//   rank of each chunk, n = 4:   0 1 2 3 3 2 1 0
//
// Under a causal mask a late chunk sees more keys than an early one. Cut in n pieces one after the other, the last rank
// would do nearly twice the work of the mean; so each rank has an early chunk and the late one that makes up for it.
#include <array>
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/view.h"

namespace heed::dist {

// Rows [begin, end) of a sequence.
struct Rows {
  int64_t begin = 0, end = 0;
  constexpr int64_t count() const { return end - begin; }
};

class HEED_API Placement {
 public:
  // Throws Error for a negative length, or less than one rank. A short sequence leaves chunks empty.
  Placement(int64_t length, int ranks);

  int64_t length() const { return length_; }
  int ranks() const { return ranks_; }
  int chunks() const { return 2 * ranks_; }

  Rows chunk(int index) const;                  // equal sizes where 2 n divides the length, else different by one
  std::array<int, 2> chunks_of(int rank) const  // in the order in which the rank holds them
  {
    return {rank, chunks() - 1 - rank};
  }
  int64_t rows(int rank) const;  // that the rank holds

 private:
  int64_t length_;
  int ranks_;
};

// Copies a rank's rows, those of dimension 2, out of the whole sequence [B,H,T,D].
template <class T>
void take_rows(const Placement& placement, int rank, const View<const T, 4>& whole, const View<T, 4>& own);
// And back into it: the other rows of `whole` stay as they are.
template <class T>
void put_rows(const Placement& placement, int rank, const View<const T, 4>& own, const View<T, 4>& whole);

// Implementation.

// from[.., t, ..] to to[.., t, ..], of views of one shape whose last dimension is contiguous.
template <class T>
void copy_rows(const View<const T, 4>& from, const View<T, 4>& to) {
  for (int64_t b = 0; b < from.shape(0); ++b)
    for (int64_t h = 0; h < from.shape(1); ++h)
      for (int64_t t = 0; t < from.shape(2); ++t)
        for (int64_t d = 0; d < from.shape(3); ++d) to(b, h, t, d) = from(b, h, t, d);
}

template <class T>
void take_rows(const Placement& placement, int rank, const View<const T, 4>& whole, const View<T, 4>& own) {
  int64_t at = 0;
  for (const int index : placement.chunks_of(rank)) {
    const Rows rows = placement.chunk(index);
    copy_rows(whole.slice(2, rows.begin, rows.count()), own.slice(2, at, rows.count()));
    at += rows.count();
  }
}

template <class T>
void put_rows(const Placement& placement, int rank, const View<const T, 4>& own, const View<T, 4>& whole) {
  int64_t at = 0;
  for (const int index : placement.chunks_of(rank)) {
    const Rows rows = placement.chunk(index);
    copy_rows(own.slice(2, at, rows.count()), whole.slice(2, rows.begin, rows.count()));
    at += rows.count();
  }
}

}  // namespace heed::dist
