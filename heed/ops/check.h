// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of ops' arguments. They throw Error that names the op, the argument, what came and what was expected.
#include <span>
#include <string>

#include "heed/autograd/tape.h"
#include "heed/base/error.h"

namespace heed::ops {

[[noreturn]] inline void fail(const char* op, const std::string& what) { throw Error(std::string(op) + ": " + what); }

inline void check_there(const char* op, const char* name, const Var& x) {
  if (!x) fail(op, std::string(name) + " is missing");
}

inline void check_shape(const char* op, const char* name, const Var& x, const Shape& expected) {
  check_there(op, name, x);
  if (x.shape() != expected) {
    fail(op, std::string(name) + " has shape " + to_string(x.shape()) + ", expected " + to_string(expected));
  }
}

inline void check_dtype(const char* op, const char* name, const Var& x, DType expected) {
  if (x && x.dtype() != expected) {
    fail(op, std::string(name) + " is in " + name_of(x.dtype()) + ", expected " + name_of(expected));
  }
}

// In a dtype that ops compute in.
inline void check_numbers(const char* op, const char* name, const Var& x) {
  check_there(op, name, x);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64) {
    fail(op, std::string(name) + " is in " + name_of(x.dtype()) + ", expected f32 or f64");
  }
}

// The same, with at least one dimension.
inline void check_rows(const char* op, const char* name, const Var& x) {
  check_numbers(op, name, x);
  if (x.shape().rank() == 0) fail(op, std::string(name) + " has shape [], expected at least one dimension");
}

// [B,T,width], with as many lengths as rows, if any, each of them at most T.
inline void check_sequences(const char* op, const char* name, const Var& x, std::span<const int64_t> lengths) {
  check_numbers(op, name, x);
  if (x.shape().rank() != 3) {
    fail(op,
         std::string(name) + " has shape " + to_string(x.shape()) + ", expected 3 dimensions: batch, tokens, width");
  }
  if (lengths.empty()) return;
  if (std::ssize(lengths) != x.shape(0)) {
    fail(op, std::to_string(lengths.size()) + " lengths came, expected " + std::to_string(x.shape(0)));
  }
  for (const int64_t length : lengths) {
    if (length >= 0 && length <= x.shape(1)) continue;
    fail(op, "a length is " + std::to_string(length) + ", expected 0 to " + std::to_string(x.shape(1)));
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
