// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an experiment found, as text, as JSON, as a page, and as files. Not here: running it.
#include <span>
#include <string>

#include "heed/lab/experiment.h"

namespace heed::lab {

// What was run and how, and what came of it.
struct Report {
  const Experiment& experiment;
  Options options;
  Result result;
  int threads = 1;
  double seconds = 0;
  std::string machine{}, date{};  // for the reader
};

// A table in columns, as a terminal shows it.
std::string to_text(const Table&);
// What is said before a run: the claim, the method, each test.
std::string introduction(const Experiment&);
// And after it: what was measured for each test, and the line that says whether the claim held.
std::string findings_text(const Report&);
std::string verdict(const Report&);  // "scale: the claim held, 3 of 3 tests"
std::string to_json(const Report&);  // an object, with its end of line

std::string command(const Report&);   // that runs it again: "heed lab scale --seed 1"
std::string settings(const Report&);  // what else it depended on: time, threads, machine, date
page::Report to_page(const Report&);

// Where results will be saved: better known before a long run than after it. Throws Error.
void make_folder(const std::string& folder);
// FOLDER/result.json and FOLDER/index.html. The folder is made if need be; throws Error.
void save(const Report&, const std::string& folder);
// FOLDER/index.html, which leads to the pages that were saved in FOLDER/NAME each.
void save_index(std::span<const Report>, const std::string& folder);

}  // namespace heed::lab
