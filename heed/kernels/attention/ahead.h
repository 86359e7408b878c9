#pragma once
// Asking for memory in time. Internal to the attention kernels.
#include <algorithm>
#include <cstdint>

namespace heed::kernels {

// From begin to end of so many equal parts, as far as there is anything there.
struct Part {
  int64_t begin, end, of;

  constexpr int64_t first(int64_t count) const { return std::clamp<int64_t>(count * begin / of, 0, count); }
  constexpr int64_t last(int64_t count) const { return std::clamp<int64_t>(count * end / of, 0, count); }
};
// What part i of so many has of member m of a list: the first parts have the first members.
constexpr Part part_of_list(int64_t i, int64_t parts, int64_t m, int64_t members) {
  return {members * i - m * parts, members * (i + 1) - m * parts, parts};
}

// Rows that will be read or written before long, asked for a few lines at a time between products. A core waits for
// some twenty lines at once: asked for in one go, the rest and whatever is worked on meanwhile would stand behind them.
// some() stands in hot loops, so little in it has to be guessed: every cursor moves on by a piece, or stays at its last
// one.
class Ahead {
 public:
  // Forgets what is left. What is wanted from now on is asked for within so many calls of some().
  void start(int64_t calls) {
    used_ = 0;
    calls_ = std::max<int64_t>(1, calls);
  }

  // `count` rows of so many numbers, `stride` numbers apart. Left out where all cursors are taken: it is only a hint.
  template <class T>
  void want(const T* rows, int64_t stride, int64_t count, int64_t columns) {
    if (count <= 0) return;
    const char* data = reinterpret_cast<const char*>(rows);
    const int64_t size = sizeof(T), row_bytes = columns * size;
    if (stride == columns) return take(data, kPiece, (count * row_bytes + kPiece - 1) / kPiece);  // one long row
    for (int64_t at = 0; at < row_bytes; at += kPiece) take(data + at, stride * size, count);
  }

  // A part of these rows.
  template <class T>
  void want_part(const T* rows, int64_t stride, int64_t count, int64_t columns, Part part) {
    const int64_t first = part.first(count);
    want(rows + first * stride, stride, part.last(count) - first, columns);
  }

  void some() {
    for (int i = 0; i < used_; ++i) {
      Cursor& cursor = cursors_[i];
      for (int64_t n = std::min(cursor.pace, cursor.left); n > 0; --n) {
        // Into the second cache: the first is full of what is worked on.
        for (int64_t line = 0; line < kPiece; line += 64) __builtin_prefetch(cursor.at + line, 0, 2);
        cursor.at += cursor.step;
      }
      cursor.left -= cursor.pace;
    }
  }

 private:
  static constexpr int64_t kPiece = 128;  // bytes
  static constexpr int kCursors = 8;

  void take(const char* at, int64_t step, int64_t pieces) {
    if (used_ == kCursors) return;
    cursors_[used_++] = {at, step, pieces, (pieces + calls_ - 1) / calls_};
  }

  struct Cursor {
    const char* at;
    int64_t step, left, pace;  // pieces
  };
  Cursor cursors_[kCursors];
  int used_ = 0;
  int64_t calls_ = 1;
};

}  // namespace heed::kernels
