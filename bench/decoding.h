// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the benchmarks of whole models share (translate, generate, train): the model that decodes, from a folder or
// random, ids to give to it, and what is said of the machine. Not here: what is timed (translate.h, generate.h,
// train.h).
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/decode/engine.h"
#include "heed/models/options.h"

namespace heed::bench {

using Ids = std::vector<std::vector<int32_t>>;

// Which model is measured.
struct SubjectOptions {
  std::string model{};        // a folder; empty: random parameters
  std::string preset{};       // of random parameters
  int64_t vocabulary{32000};  // of random parameters
  std::string save{};         // a folder to be written, of random parameters

  static void describe(SubjectOptions& o, auto&& field) {
    field("preset", o.preset, "without a folder: the model, with random parameters");
    field("vocabulary", o.vocabulary, "without a folder: its tokens", Range::within(5, 1 << 20));
    field("save", o.save, "without a folder: one to write the random model to, before it is measured");
  }
};

struct Subject {
  decode::Engine engine;
  std::string name;               // the folder, or the preset and its vocabulary
  std::optional<double> open_ms;  // to open the folder, with the packing of its weights
};

// Throws Error for a folder that cannot be opened or saved, or a model that does something else. The parameters of a
// random one are always the same.
Subject open_subject(const SubjectOptions&, models::Task, int threads);

// Of lengths that are drawn from `shortest` to `longest`, without special tokens: always the same.
Ids random_ids(int64_t count, int64_t shortest, int64_t longest, int64_t vocabulary);

// What the process has held at most so far.
double peak_megabytes();

// Machine, date and threads: what the JSON begins with, and a line that says it. Of a subject, its model, too.
nlohmann::ordered_json machine_facts(int threads);
std::string machine_line(int threads);
nlohmann::ordered_json facts_of(const Subject&);
std::string line_of(const Subject&);

// To standard output, at once.
void print_line(const std::string&);

}  // namespace heed::bench
