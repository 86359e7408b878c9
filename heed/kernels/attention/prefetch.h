// SPDX-License-Identifier: Apache-2.0
#pragma once
// Software prefetch, paced: a few cache lines at a time between products. Internal to the attention kernels.
#include <algorithm>
#include <cstdint>

namespace heed::kernels {

// Parts [begin, end) of `of` equal parts of some rows, clipped to the rows there are.
struct Part {
  int64_t begin, end, of;

  constexpr int64_t first(int64_t count) const { return std::clamp<int64_t>(count * begin / of, 0, count); }
  constexpr int64_t last(int64_t count) const { return std::clamp<int64_t>(count * end / of, 0, count); }
};
// Part i of `parts` of a list of arrays, as far as it lies in array m: the first parts cover the first arrays.
constexpr Part part_of_list(int64_t i, int64_t parts, int64_t m, int64_t arrays) {
  return {arrays * i - m * parts, arrays * (i + 1) - m * parts, parts};
}

// Prefetches rows that will soon be read or written. A core can wait for some twenty cache lines at once: prefetched in
// one burst, further lines and the loads of the current work would queue behind them. So step() is called between
// products, and each call prefetches a share. It is in hot loops and has few branches to predict: each cursor advances
// by its share, or is at its end.
class Prefetcher {
 public:
  // Drops what is left. What is added from now on is divided evenly among `calls` calls of step().
  void start(int64_t calls) {
    used_ = 0;
    calls_ = std::max<int64_t>(1, calls);
  }

  // `count` rows of `columns` elements, `stride` elements apart. Ignored where all cursors are taken: it is a hint.
  template <class T>
  void add(const T* rows, int64_t stride, int64_t count, int64_t columns) {
    if (count <= 0) return;
    const char* data = reinterpret_cast<const char*>(rows);
    const int64_t size = sizeof(T), row_bytes = columns * size;
    if (stride == columns) return add_cursor(data, kPiece, (count * row_bytes + kPiece - 1) / kPiece);  // one long row
    for (int64_t at = 0; at < row_bytes; at += kPiece) add_cursor(data + at, stride * size, count);
  }

  // A part of these rows.
  template <class T>
  void add_part(const T* rows, int64_t stride, int64_t count, int64_t columns, Part part) {
    const int64_t first = part.first(count);
    add(rows + first * stride, stride, part.last(count) - first, columns);
  }

  void step() {
    for (int i = 0; i < used_; ++i) {
      Cursor& cursor = cursors_[i];
      for (int64_t n = std::min(cursor.pace, cursor.left); n > 0; --n) {
        // Into L2: L1 is full of what is being worked on.
        for (int64_t line = 0; line < kPiece; line += 64) __builtin_prefetch(cursor.at + line, 0, 2);
        cursor.at += cursor.stride;
      }
      cursor.left -= cursor.pace;
    }
  }

 private:
  static constexpr int64_t kPiece = 128;  // bytes: two cache lines
  static constexpr int kCursors = 8;

  void add_cursor(const char* at, int64_t stride, int64_t pieces) {
    if (used_ == kCursors) return;
    cursors_[used_++] = {at, stride, pieces, (pieces + calls_ - 1) / calls_};
  }

  struct Cursor {
    const char* at;
    int64_t stride;      // bytes, from piece to piece
    int64_t left, pace;  // pieces: still to come, and in each step
  };
  Cursor cursors_[kCursors];
  int used_ = 0;
  int64_t calls_ = 1;
};

}  // namespace heed::kernels
