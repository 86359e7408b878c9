// SPDX-License-Identifier: Apache-2.0
// Translates the lines of standard input: results are printed as they come, in whatever order, and Ctrl-C ends the
// call.
//   stream <folder> <threads>
#include <heed/heed.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

heed::Cancel cancel;

int main(int, char** argv) {
  std::signal(SIGINT, [](int) { cancel.request(); });
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  try {
    const heed::Translator translator(argv[1], std::atoi(argv[2]));
    const heed::decode::TranslateOptions options{
        .search = {.beam = 4}, .align = {{}}, .call = {.batch = {.rows = 16}, .cancel = &cancel}};
    translator.translate(lines, options, [&](size_t line, const heed::decode::Translations& found) {
      std::printf("%zu: %s (%.2f) %s\n", line, found[0].text.c_str(), found[0].score,
                  heed::text::to_string(found[0].alignment).c_str());
    });
  } catch (const heed::Error& error) {  // a line that is too long, a folder that is broken; Cancelled, too
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
