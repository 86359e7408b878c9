// SPDX-License-Identifier: Apache-2.0
#pragma once
// Standard output that says so when it cannot be written to: a full disk, a closed pipe.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "heed/base/error.h"

namespace heed::cli {

// Nobody reads any more, as after `| head`: no failure of ours, and nothing to be said.
struct OutputClosed : Error {
  using Error::Error;
};

// Throws Error.
void write_output(const std::string& text);
void flush_output();

// Columns that a line may fill of the terminal that standard error is; as many as one likes where it is none.
size_t terminal_room();
// What fits into one line of the terminal that standard error is, with `room` columns left for more: a longer one would
// wrap, and could not be replaced. Bytes count as columns, so it is for text of ours.
std::string cut_to_terminal(std::string text, size_t room = 0);

template <class... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace heed::cli
