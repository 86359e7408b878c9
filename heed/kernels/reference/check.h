// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the shapes that the reference kernels are given: a message names the argument, what came, what was
// expected.
#include <string>

#include "heed/base/error.h"
#include "heed/base/view.h"

namespace heed::kernels::reference {

constexpr int64_t kAny = -1;

// "[2, 8, S, 64]": `letter` is how a message calls the one extent that may be kAny.
template <size_t Rank>
std::string expected_text(const Dims<Rank>& expected, const char* letter) {
  std::string text;
  for (size_t i = 0; i < Rank; ++i) {
    text += (i ? ", " : "") + (expected[i] == kAny ? letter : std::to_string(expected[i]));
  }
  return "[" + text + "]";
}

template <class T, size_t Rank>
[[noreturn]] void fail_shape(const char* name, const View<T, Rank>& view, const std::string& expected) {
  throw Error(std::string("attention: ") + name + " has shape " + to_string(view.shape()) + ", expected " + expected);
}

template <class T, size_t Rank>
void check_data(const char* name, const View<T, Rank>& view) {
  if (view.empty() && view.size() > 0) throw Error(std::string("attention: ") + name + " has no data");
}

template <class T, size_t Rank>
void check_shape(const char* name, const View<T, Rank>& view, const Dims<Rank>& expected, const char* letter = "") {
  for (size_t i = 0; i < Rank; ++i) {
    if (expected[i] != kAny && expected[i] != view.shape(i)) fail_shape(name, view, expected_text(expected, letter));
  }
  check_data(name, view);
}

// Every extent is that of `whole`, or 1, which is broadcast.
template <class T, size_t Rank>
void check_broadcast(const char* name, const View<T, Rank>& view, const Dims<Rank>& whole) {
  for (size_t i = 0; i < Rank; ++i) {
    if (view.shape(i) != whole[i] && view.shape(i) != 1) {
      fail_shape(name, view, to_string(whole) + ", or 1 in place of any of these");
    }
  }
  check_data(name, view);
}

// An empty view means 'not wanted'.
template <class T, size_t Rank>
void check_if_wanted(const char* name, const View<T, Rank>& view, const Dims<Rank>& expected) {
  if (view) check_shape(name, view, expected);
}

}  // namespace heed::kernels::reference
