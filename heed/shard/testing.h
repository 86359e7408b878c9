// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of runs over shards share: a corpus, a function of its lines, and files as text.
#include <fstream>
#include <sstream>
#include <string>

#include "heed/base/error.h"
#include "heed/shard/run.h"

namespace heed::shard::testing {

inline std::string text_of_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// "line 1" ... with some of other lengths.
inline std::string numbered_lines(int n) {
  std::string text;
  for (int i = 1; i <= n; ++i)
    text += "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 7), '!') + "\n";
  return text;
}

// Each line with its number and its place; lines that end in "bad" are skipped.
inline Made number_lines(const Part& part) {
  Made made;
  for (size_t i = 0; i < part.lines.size(); ++i) {
    if (part.lines[i].ends_with("bad")) {
      if (++made.skipped == 1) made.first_error = part.places[i] + ": is bad";
      made.text += "\n";
      continue;
    }
    const std::string file = part.places[i].substr(part.places[i].rfind('/') + 1);
    made.text += std::to_string(part.first + static_cast<int64_t>(i)) + " " + file + " " + part.lines[i] + "\n";
  }
  return made;
}

// The same, and how often it was called; it throws before a call after `most`, as a process that is killed would.
struct Worker {
  int64_t most = 1000000, calls = 0;

  Work work() {
    return [this](const Part& part) {
      if (calls == most) throw Error("killed");
      ++calls;
      return number_lines(part);
    };
  }
};

}  // namespace heed::shard::testing
