// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/manifest.h"

#include <algorithm>
#include <limits>

#include "heed/base/count.h"
#include "heed/shard/fields.h"

namespace heed::shard {
namespace {

constexpr int64_t kFormat = 1, kAny = std::numeric_limits<int64_t>::max();

// Sizes in files are claims: the shards of a manifest have to be contiguous, and to cover its files.
void check_pieces(const Manifest& manifest, const std::string& name) {
  int64_t bytes = 0, lines = 0, all = 0;
  for (const InputFile& input : manifest.inputs) {
    if (input.bytes > kAny - all) throw Error(name + ": its files have more bytes than can be counted");
    all += input.bytes;
  }
  for (const Piece& piece : manifest.shards) {
    if (piece.begin != bytes || piece.first_line != lines || piece.bytes > all - bytes || piece.lines > piece.bytes) {
      throw Error(name + ": its shards are not contiguous, expected each to begin where the last one ends");
    }
    bytes += piece.bytes;
    lines += piece.lines;
  }
  if (bytes != all) {
    throw Error(name + ": its shards have " + counted(bytes, "byte") + ", expected " + grouped(all) + " as its files");
  }
}

std::string value_of(const Option& option) { return option.second.empty() ? "" : " " + shown(option.second); }

// Each name once: the last one counts.
const Option* find(const std::vector<Option>& options, const std::string& name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const Option& one) { return one.first == name; });
  return found == options.end() ? nullptr : &*found;
}

// What differs between two lists of options, as a message has it; empty: nothing does.
std::string difference(const std::vector<Option>& begun, const std::vector<Option>& now) {
  for (const Option& before : begun) {
    const Option* const same = find(now, before.first);
    const std::string name = shown(before.first);
    if (!same) return "with " + name + value_of(before) + ", now it is without " + name;
    if (same->second != before.second) return "with " + name + value_of(before) + ", now it is" + value_of(*same);
  }
  for (const Option& added : now) {
    if (!find(begun, added.first)) {
      return "without " + added.first + ", now it is with " + added.first + value_of(added);
    }
  }
  return "";
}

// The same of two values with a name.
std::string difference(const std::string& what, const std::string& begun, const std::string& now) {
  return begun == now ? "" : "with " + what + " " + shown(begun) + ", now it is " + now;
}

std::string difference(const std::vector<InputFile>& begun, const std::vector<InputFile>& now) {
  if (begun.size() != now.size()) {
    return "over " + counted(std::ssize(begun), "file") + ", now it is " + grouped(std::ssize(now));
  }
  for (size_t i = 0; i < now.size(); ++i) {
    if (begun[i].bytes == now[i].bytes) continue;
    return "over " + io::quote(begun[i].path) + " of " + counted(begun[i].bytes, "byte") + ", now " +
           io::quote(now[i].path) + " has " + grouped(now[i].bytes);
  }
  return "";
}

std::string first_difference(const Manifest& begun, const Manifest& now) {
  constexpr size_t kDigits = 12;  // of a sum, enough for people to tell models apart
  const std::string models = begun.model == now.model ? ""
                                                      : "with the model " + shown(begun.model.substr(0, kDigits)) +
                                                            ", now it is " + now.model.substr(0, kDigits);
  const std::string parts = begun.part_lines == now.part_lines ? ""
                                                               : "with parts of " + counted(begun.part_lines, "line") +
                                                                     ", now it is " + grouped(now.part_lines);
  for (const std::string& one :
       {difference("heed", begun.version, now.version), difference("the command", begun.command, now.command), models,
        difference(begun.options, now.options), parts, difference(begun.inputs, now.inputs)}) {
    if (!one.empty()) return one;
  }
  const int64_t before = std::ssize(begun.shards), after = std::ssize(now.shards);
  return before == after ? "" : "with " + counted(before, "shard") + ", now it is " + grouped(after);
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json options = Json::array(), inputs = Json::array(), shards = Json::array();
  for (const auto& [name, value] : manifest.options) options.push_back({{"name", name}, {"value", value}});
  for (const InputFile& one : manifest.inputs) inputs.push_back({{"path", one.path}, {"bytes", one.bytes}});
  for (const Piece& one : manifest.shards) {
    shards.push_back({{"begin", one.begin},
                      {"bytes", one.bytes},
                      {"first_line", one.first_line},
                      {"lines", one.lines},
                      {"first_of_file", one.first_of_file},
                      {"sha256", one.sha256}});
  }
  return dumped({{"format", kFormat},
                 {"heed", manifest.version},
                 {"command", manifest.command},
                 {"model", manifest.model},
                 {"options", options},
                 {"part_lines", manifest.part_lines},
                 {"inputs", inputs},
                 {"shards", shards}},
                1) +
         "\n";
}

Manifest manifest_from_json(std::string_view text, const std::string& name) {
  const Json json = parsed(text, name);
  const Fields fields(json, name);
  fields.number("format", kFormat, kFormat);
  Manifest manifest{.version = fields.text("heed"),
                    .command = fields.text("command"),
                    .model = fields.text("model"),
                    .options = {},
                    .part_lines = fields.number("part_lines", 1, kMostPartLines),
                    .inputs = {},
                    .shards = {}};
  for (const Json& one : fields.list("options")) {
    const Fields option(one, name + ": options");
    manifest.options.emplace_back(option.text("name"), option.text("value"));
  }
  for (const Json& one : fields.list("inputs")) {
    const Fields input(one, name + ": inputs");
    manifest.inputs.push_back({.path = input.text("path"), .bytes = input.number("bytes", 0, kAny)});
  }
  for (const Json& one : fields.list("shards")) {
    const Fields piece(one, name + ": shards");
    manifest.shards.push_back({.begin = piece.number("begin", 0, kAny),
                               .bytes = piece.number("bytes", 0, kAny),
                               .first_line = piece.number("first_line", 0, kAny),
                               .lines = piece.number("lines", 0, kAny),
                               .first_of_file = piece.number("first_of_file", 0, kAny),
                               .sha256 = piece.text("sha256")});
  }
  if (manifest.shards.empty() || std::ssize(manifest.shards) > kMostShards) {
    throw Error(name + ": has " + counted(std::ssize(manifest.shards), "shard") + ", expected 1 to " +
                grouped(kMostShards));
  }
  check_pieces(manifest, name);
  return manifest;
}

void check_same_run(const Manifest& begun, const Manifest& now, const std::string& folder) {
  const std::string found = first_difference(begun, now);
  if (found.empty()) return;
  throw Error("folder '" + folder + "' was begun " + found + ": expected the same, or another folder");
}

}  // namespace heed::shard
