#pragma once
// Standard output that says so when it cannot be written to: a full disk, a closed pipe.
#include <fmt/format.h>

#include <string>
#include <utility>

namespace heed::cli {

// Throws Error.
void write_output(const std::string& text);
void flush_output();

template <class... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace heed::cli
