// SPDX-License-Identifier: Apache-2.0
#pragma once
// --shard, --in, --out and --part-lines of commands that work on text line by line: one of many processes that share a
// corpus (heed/shard/run.h). Which flags the output depends on is found out here, so that no command lists them.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/lines.h"
#include "heed/shard/run.h"

namespace heed::cli {

class ShardFlags {
 public:
  // `out` is where the command keeps the value of an --out of its own; null: it has none.
  void add(CLI::App& app, std::string* out = nullptr);
  bool given() const { return !shard_.empty(); }
  // To be called first: takes the files of --in into the input, and the command's --out. Throws UsageError.
  void settle(LineInput&);
  // Over the shards that were named, or over all lines of the input where none was; `model` is the model's folder.
  void for_each_line(const LineInput&, const std::string& model, const LineWork&) const;

 private:
  enum class Which : uint8_t { one, any, listed };

  void parse_shard();
  std::vector<shard::Option> options() const;

  const CLI::App* app_ = nullptr;
  std::string* shared_out_ = nullptr;
  std::string shard_, out_;
  std::vector<std::string> in_;
  int64_t part_lines_ = shard::RunOptions{}.part_lines;
  Which which_ = Which::one;
  int64_t index_ = 0, count_ = 0;  // "3/8"
};

}  // namespace heed::cli
