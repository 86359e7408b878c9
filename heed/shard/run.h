// SPDX-License-Identifier: Apache-2.0
#pragma once
// A function of lines, run over a corpus by any number of processes on any number of machines that share a folder: each
// takes shards, and every shard is written whole or not at all. Nothing that a process does has to be cleared away when
// it is killed: its shard is begun again, and goes on after the parts that were finished. merge.h puts the shards
// together. Not here: who takes which shard; that is up to whoever starts the processes.
//
//   const shard::Run run({.folder = "out", .inputs = {"corpus.txt"}, .shards = 8, .command = "copy"});
//   run.work(3, [](const shard::Part& part) { ... return shard::Made{.text = ...}; });
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/shard/cut.h"
#include "heed/shard/manifest.h"
#include "heed/shard/record.h"

namespace heed::shard {

struct RunOptions {
  std::string folder{};  // made if it is missing
  std::vector<std::string> inputs{};
  int64_t shards = 1;
  int64_t part_lines = 1000;  // a process that is killed loses at most as many
  // What the output depends on besides the lines: a run goes on only with the same.
  std::string version{}, command{}, model{};
  std::vector<Option> options{};
};

// Lines that are worked on, and saved, together.
struct Part {
  std::vector<std::string> lines{};
  std::vector<std::string> places{};  // of each: "corpus.txt:3"
  int64_t first = 0;                  // how many lines of the whole corpus come before
};

// What was made of a part.
struct Made {
  std::string text{};
  int64_t skipped = 0;        // lines that could not be worked on
  std::string first_error{};  // why the first of them could not
};

// Makes the same of the same lines, whatever part they are in: then the merged output depends on no number of shards.
using Work = std::function<Made(const Part&)>;

// What became of a shard.
struct Report {
  Record record{};
  bool was_done = false;     // there was nothing to do
  int64_t found_parts = 0;   // that an earlier process had finished
  int64_t broken_parts = 0;  // whose bytes were not what it had written: they were made again
};

class HEED_API Run {
 public:
  // Begins the run, or joins it. Whoever comes first cuts the text, and others wait for that. Throws Error where the
  // folder holds another run.
  explicit Run(const RunOptions& options);

  int64_t shards() const { return std::ssize(manifest_.shards); }
  const Manifest& manifest() const { return manifest_; }

  // Somebody has finished it; whether its bytes are still those is for work() to see. Shards count from 1.
  bool is_recorded(int64_t shard) const;
  // Throws Error where another process has this one, and whatever `work` throws: the parts before
  // stay.
  Report work(int64_t shard, const Work& work) const;
  // The same; none where another process has it, and `holder` is then who that is.
  std::optional<Report> try_work(int64_t shard, const Work& work, std::string& holder) const;

 private:
  void check(int64_t shard) const;

  std::string folder_, id_;
  Sources sources_;
  Manifest manifest_;
};

}  // namespace heed::shard
