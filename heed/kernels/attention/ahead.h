#pragma once
// Asking for memory in time. Internal to the attention kernels.
#include <algorithm>
#include <cstdint>

namespace heed::kernels {

// Rows that will be read or written before long, asked for a few lines at a time between products. A core waits for
// some twenty lines at once: asked for in one go, the rest and whatever is worked on meanwhile would stand behind them.
// some() stands in hot loops, so nothing in it has to be guessed: every cursor moves on by a piece, or stays at its
// last one.
class Ahead {
 public:
  // Forgets what is left. What is wanted from now on is asked for within so many calls of some().
  void start(int64_t calls) {
    const char* here = reinterpret_cast<const char*>(this);  // idle: a line that is near anyway
    for (Cursor& cursor : cursors_) cursor = {here, here, 0};
    used_ = 0;
    calls_ = std::max<int64_t>(1, calls);
    pace_ = 0;
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

  // Part i of so many of these rows.
  template <class T>
  void want_part(const T* rows, int64_t stride, int64_t count, int64_t columns, int64_t i, int64_t parts) {
    const int64_t begin = count * i / parts, end = count * (i + 1) / parts;
    want(rows + begin * stride, stride, end - begin, columns);
  }

  void some() {
    for (int64_t left = pace_; left > 0; --left) {
      for (Cursor& cursor : cursors_) {
        // Into the second cache: the first is full of what is worked on.
        for (int64_t line = 0; line < kPiece; line += 64) __builtin_prefetch(cursor.at + line, 0, 2);
        cursor.at = cursor.at == cursor.last ? cursor.at : cursor.at + cursor.step;
      }
    }
  }

 private:
  static constexpr int64_t kPiece = 128;  // bytes
  static constexpr int kCursors = 2;

  void take(const char* at, int64_t step, int64_t pieces) {
    if (used_ == kCursors) return;
    cursors_[used_++] = {at, at + (pieces - 1) * step, step};
    pace_ = std::max(pace_, (pieces + calls_ - 1) / calls_);
  }

  struct Cursor {
    const char *at, *last;
    int64_t step;
  };
  Cursor cursors_[kCursors];
  int used_ = 0;
  int64_t calls_ = 1, pace_ = 0;  // pieces of each cursor a call
};

}  // namespace heed::kernels
