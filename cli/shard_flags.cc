// SPDX-License-Identifier: Apache-2.0
#include "cli/shard_flags.h"

#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/action.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/shard/model_id.h"

namespace heed::cli {
namespace {

// What a line gives does not depend on these.
constexpr std::array<std::string_view, 9> kWithoutEffect{"--batch", "--batch-tokens", "--help",  "--in",     "--model",
                                                         "--out",   "--part-lines",   "--shard", "--threads"};

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// A part of a shard, by what the command does with lines.
shard::Made make(const shard::Part& part, bool skip_bad, const LineWork& work) {
  std::vector<std::string> answers(part.lines.size());
  Skipped skipped;
  work_on(
      {.lines = part.lines, .first = part.first, .place = [&](size_t i) { return part.places[i]; }}, skip_bad, work,
      [&](size_t i, std::string text) { answers[i] = std::move(text); }, skipped);
  shard::Made made{.text = {}, .skipped = skipped.lines, .first_error = std::move(skipped.first_error)};
  for (const std::string& answer : answers) made.text += answer;
  return made;
}

// Shards of a run, in this process.
class Worker {
 public:
  Worker(const shard::Run& run, bool skip_bad, const LineWork& work) : run_(run), skip_bad_(skip_bad), work_(work) {}

  void one(int64_t shard) { say(shard, run_.work(shard, work())); }

  // Whichever nobody works on, until all are done, by whomever: what a killed process has left is taken up.
  void any() {
    constexpr timespec kPause{.tv_sec = 1, .tv_nsec = 0};
    for (bool said = false;; said = true) {
      int64_t busy = 0;
      for (int64_t shard = 1; shard <= run_.shards(); ++shard) {
        std::string holder;
        if (!run_.is_recorded(shard) && !take(shard, holder)) ++busy;
      }
      if (busy == 0) return;
      if (!said) fmt::print(stderr, "heed: waits for {} that others work on\n", counted(busy, "shard"));
      ::nanosleep(&kPause, nullptr);
    }
  }

  // Those whose numbers come on standard input, a line each. One that another process has is left to it, and said so.
  void listed() {
    for (std::string line; std::getline(std::cin, line);) {
      const std::optional<int64_t> shard = number_in(line);
      if (!shard) throw Error(fmt::format("standard input: '{}' is no shard, expected 1 to {}", line, run_.shards()));
      std::string holder;
      if (take(*shard, holder)) continue;
      print("shard {}/{} busy: in use by {}\n", *shard, run_.shards(), holder);
      flush_output();
    }
  }

 private:
  bool take(int64_t shard, std::string& holder) {
    const std::optional<shard::Report> report = run_.try_work(shard, work(), holder);
    if (report) say(shard, *report);
    return report.has_value();
  }

  shard::Work work() {
    done_ = 0;
    return [this](const shard::Part& part) {
      shard::Made made = make(part, skip_bad_, work_);
      progress_.show(done_ += std::ssize(part.lines));
      return made;
    };
  }

  // A line for each shard, for whoever gives them out.
  void say(int64_t shard, const shard::Report& report) {
    progress_.end();
    const shard::Record& record = report.record;
    if (report.broken_parts > 0) {
      fmt::print(stderr, "heed: shard {}: made {} again that had not the bytes that were written\n", shard,
                 counted(report.broken_parts, "part"));
    }
    const char* const done = report.was_done ? "was done before" : "done";
    const std::string found =
        report.found_parts > 0 ? fmt::format(", {} found", counted(report.found_parts, "finished part")) : "";
    print("shard {}/{} {}: {}{}\n", shard, run_.shards(), done, counted(record.lines, "line"), found);
    report_skipped({.lines = record.skipped, .first_error = record.first_error}, record.lines);
    flush_output();
  }

  const shard::Run& run_;
  const bool skip_bad_;
  const LineWork& work_;
  Progress progress_{"lines"};
  int64_t done_ = 0;
};

}  // namespace

void ShardFlags::add(CLI::App& app, std::string* out) {
  app_ = &app;
  shared_out_ = out;
  app.add_option(
         "--shard", shard_,
         "Work on shard I of the N that --in is cut into, and write it into the folder --out; any/N: on those that "
         "nobody works on, until all are done; -/N: on those whose numbers come on standard input")
      ->type_name("I/N");
  app.add_option("--in", in_, "With --shard: the files that are cut")->type_name("FILE");
  if (!out)
    app.add_option("--out", out_, "With --shard: the folder of the output; heed merge reads it")->type_name("DIR");
  app.add_option("--part-lines", part_lines_, "With --shard: lines that are saved at a time")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, shard::kMostPartLines, "N in [1, 1073741824]"));
}

void ShardFlags::settle(LineInput& input) {
  if (!given()) {
    for (const char* flag : {"--in", "--part-lines"}) {
      if (app_->count(flag) > 0) throw UsageError(fmt::format("heed: {} came without --shard, expected both", flag));
    }
    if (!out_.empty()) throw UsageError("heed: --out came without --shard, expected both");
    return;
  }
  parse_shard();
  if (shared_out_) out_ = std::exchange(*shared_out_, {});
  if (out_.empty()) throw UsageError("heed: --shard came without --out, expected the folder of the output");
  input.files.insert(input.files.end(), in_.begin(), in_.end());
  if (input.files.empty()) throw UsageError("heed: --shard came without --in, expected the files that are cut");
}

void ShardFlags::parse_shard() {
  const size_t slash = std::min(shard_.find('/'), shard_.size());
  const std::string_view text = shard_, which = text.substr(0, slash);
  const std::optional<int64_t> count = number_in(text.substr(std::min(slash + 1, text.size())));
  const std::optional<int64_t> index = number_in(which);
  which_ = which == "any" ? Which::any : which == "-" ? Which::listed : Which::one;
  if (!count || *count > shard::kMostShards || (which_ == Which::one && (!index || *index > *count))) {
    throw UsageError(fmt::format(
        "heed: --shard is '{}', expected I/N with I from 1 to N and N up to {}, such as 3/8, or any/8 or -/8", shard_,
        shard::kMostShards));
  }
  index_ = index.value_or(0);
  count_ = *count;
}

std::vector<shard::Option> ShardFlags::options() const {
  std::vector<shard::Option> found;
  for (const CLI::Option* option : app_->get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || !name.starts_with("--") ||
        std::ranges::find(kWithoutEffect, name) != kWithoutEffect.end())
      continue;
    std::string value;
    if (option->get_expected_max() > 0 || option->results() != std::vector<std::string>{"true"}) {
      for (const std::string& one : option->results()) value += (value.empty() ? "" : " ") + one;
    }
    found.emplace_back(name, value);
  }
  return found;
}

void ShardFlags::for_each_line(const LineInput& input, const std::string& model, const LineWork& work) const {
  if (!given()) return cli::for_each_line(input, work);
  const shard::Run run({.folder = out_,
                        .inputs = input.files,
                        .shards = count_,
                        .part_lines = part_lines_,
                        .version = HEED_VERSION,
                        .command = app_->get_name(),
                        .model = shard::model_id(model),
                        .options = options()});
  Worker worker(run, input.skip_bad, work);
  if (which_ == Which::any) return worker.any();
  if (which_ == Which::listed) return worker.listed();
  worker.one(index_);
}

}  // namespace heed::cli
