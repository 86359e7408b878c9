#pragma once
// What ops ask of their arguments, with messages that name the op, the argument, what came and what was expected.
#include <span>
#include <string>

#include "heed/autograd/tape.h"
#include "heed/base/error.h"

namespace heed::ops {

[[noreturn]] inline void refuse(const char* op, const std::string& what) { throw Error(std::string(op) + ": " + what); }

inline void check_there(const char* op, const char* name, const Var& x) {
  if (!x) refuse(op, std::string(name) + " is missing");
}

inline void check_shape(const char* op, const char* name, const Var& x, const Shape& expected) {
  check_there(op, name, x);
  if (x.shape() != expected) {
    refuse(op, std::string(name) + " has shape " + to_string(x.shape()) + ", expected " + to_string(expected));
  }
}

inline void check_dtype(const char* op, const char* name, const Var& x, DType expected) {
  if (x && x.dtype() != expected) {
    refuse(op, std::string(name) + " is in " + name_of(x.dtype()) + ", expected " + name_of(expected));
  }
}

// Numbers that can be computed with.
inline void check_numbers(const char* op, const char* name, const Var& x) {
  check_there(op, name, x);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64) {
    refuse(op, std::string(name) + " is in " + name_of(x.dtype()) + ", expected f32 or f64");
  }
}

// The same, with at least one dimension.
inline void check_rows(const char* op, const char* name, const Var& x) {
  check_numbers(op, name, x);
  if (x.shape().rank() == 0) refuse(op, std::string(name) + " has shape [], expected at least one dimension");
}

// [B,T,width], with as many lengths as rows, if any, each of them at most T.
inline void check_sequences(const char* op, const char* name, const Var& x, std::span<const int64_t> lengths) {
  check_numbers(op, name, x);
  if (x.shape().rank() != 3) {
    refuse(op,
           std::string(name) + " has shape " + to_string(x.shape()) + ", expected 3 dimensions: batch, tokens, width");
  }
  if (lengths.empty()) return;
  if (std::ssize(lengths) != x.shape(0)) {
    refuse(op, std::to_string(lengths.size()) + " lengths came, expected " + std::to_string(x.shape(0)));
  }
  for (const int64_t length : lengths) {
    if (length >= 0 && length <= x.shape(1)) continue;
    refuse(op, "a length is " + std::to_string(length) + ", expected 0 to " + std::to_string(x.shape(1)));
  }
}

// `count` entries from `begin` on are among those there are.
inline bool within(int64_t begin, int64_t count, int64_t there) {
  return begin >= 0 && count >= 0 && begin <= there && count <= there - begin;
}

// A row vector as wide as x, in the same dtype, if it is there.
inline void check_row_vector(const char* op, const char* name, const Var& row, const Var& x) {
  if (!row) return;
  check_shape(op, name, row, {x.shape(-1)});
  check_dtype(op, name, row, x.dtype());
}

}  // namespace heed::ops
