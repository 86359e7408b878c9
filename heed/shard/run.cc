// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/run.h"

#include <time.h>

#include <filesystem>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/folder/lock.h"
#include "heed/folder/model_folder.h"
#include "heed/shard/layout.h"
#include "heed/shard/outputs.h"
#include "heed/shard/sha256.h"

namespace heed::shard {
namespace {

namespace fs = std::filesystem;

// Whoever has it cuts the text, which takes as long as reading it.
folder::Lock wait_for_lock(const std::string& path) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000'000};
  std::string holder;
  for (;;) {
    if (std::optional<folder::Lock> lock = folder::Lock::try_file(path, holder)) return std::move(*lock);
    ::nanosleep(&kPause, nullptr);
  }
}

// Files of this prefix that a killed process was writing: they will never get their names.
void remove_unfinished(const std::string& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.find(kUnfinished) != name.npos) fs::remove(entry.path(), ignored);
  }
}

// What has to be the same in all processes; the text is not cut.
Manifest manifest_of(const RunOptions& options, const Sources& sources) {
  Manifest manifest{.version = options.version,
                    .command = options.command,
                    .model = options.model,
                    .options = options.options,
                    .part_lines = options.part_lines,
                    .inputs = {},
                    .shards = {}};
  for (size_t i = 0; i < sources.size(); ++i) {
    manifest.inputs.push_back({.path = sources.path(i), .bytes = std::ssize(sources.text(i))});
  }
  return manifest;
}

void check_options(const RunOptions& options) {
  if (options.inputs.empty()) throw Error("shards: there are no files, expected the text to be cut");
  if (options.shards < 1 || options.shards > kMostShards) {
    throw Error("the number of shards is " + std::to_string(options.shards) + ", expected 1 to " +
                std::to_string(kMostShards));
  }
  if (options.part_lines < 1 || options.part_lines > kMostPartLines) {
    throw Error("a part has " + std::to_string(options.part_lines) + " lines, expected 1 to " +
                std::to_string(kMostPartLines));
  }
}

// One shard, whose lock is held.
class Shard {
 public:
  Shard(const Layout& layout, const Manifest& manifest, const std::string& run, int64_t shard)
      : layout_(layout), manifest_(manifest), of_(std::ssize(manifest.shards)), shard_(shard) {
    report_.record.run = run;
    report_.record.shard = shard;
  }

  Report work(const Sources& sources, const Work& work) {
    if (const std::optional<Record> done = whole_output(layout_, report_.record.run, shard_, of_)) {
      report_.record = *done;
      report_.was_done = true;
    } else {
      remove_unfinished(layout_.folder(), Layout::stem(shard_, of_));
      folder::create(layout_.parts(shard_, of_));
      remove_unfinished(layout_.parts(shard_, of_), "");
      const int64_t parts = make_parts(sources, work);
      join(parts);
    }
    std::error_code ignored;
    fs::remove_all(layout_.parts(shard_, of_), ignored);
    return report_;
  }

 private:
  const Piece& piece() const { return manifest_.shards[static_cast<size_t>(shard_ - 1)]; }

  int64_t make_parts(const Sources& sources, const Work& work) {
    check_unchanged(sources, piece());
    PieceReader reader(sources, piece());
    int64_t number = 0;
    for (int64_t first = 0; first < piece().lines; first += manifest_.part_lines) {
      Part part{.lines = {}, .places = {}, .first = piece().first_line + first};
      std::string_view line;
      while (std::ssize(part.lines) < manifest_.part_lines && reader.next(line)) {
        part.lines.emplace_back(line);
        part.places.push_back(reader.place());
      }
      make(++number, part, work);
    }
    return number;
  }

  // Unless it is there.
  void make(int64_t number, const Part& part, const Work& work) {
    const std::string path = layout_.part(shard_, of_, number);
    Record expected = report_.record;
    expected.part = number;
    expected.lines = std::ssize(part.lines);
    const PartState state = state_of_part(path, expected);
    report_.found_parts += state == PartState::whole ? 1 : 0;
    report_.broken_parts += state == PartState::broken ? 1 : 0;
    if (state == PartState::whole) return;
    const Made made = work(part);
    expected.skipped = made.skipped;
    expected.first_error = made.first_error;
    write_part(path, expected, made.text);
  }

  // The parts one after the other; then the record, with which the shard is done.
  void join(int64_t parts) {
    Record& all = report_.record;
    Sha256 sum;
    AtomicFile output(layout_.output(shard_, of_));
    for (int64_t number = 1; number <= parts; ++number) {
      const PartFile part(layout_.part(shard_, of_, number));
      output.append(part.payload());
      sum.add(part.payload());
      all.bytes += std::ssize(part.payload());
      all.lines += part.record().lines;
      if (all.skipped == 0) all.first_error = part.record().first_error;
      all.skipped += part.record().skipped;
    }
    all.sha256 = sum.hex();
    output.commit();
    write_text(layout_.record(shard_, of_), to_json(all) + "\n");
  }

  const Layout& layout_;
  const Manifest& manifest_;
  const int64_t of_, shard_;
  Report report_;
};

}  // namespace

Run::Run(const RunOptions& options) : folder_(options.folder), sources_(options.inputs) {
  check_options(options);
  folder::create(folder_);
  const Layout layout(folder_);
  Manifest mine = manifest_of(options, sources_);
  mine.shards.resize(static_cast<size_t>(options.shards));
  if (!fs::exists(layout.manifest())) {
    const folder::Lock lock = wait_for_lock(layout.manifest_lock());
    remove_unfinished(folder_, "manifest.json");
    if (!fs::exists(layout.manifest())) {
      mine.shards = cut(sources_, options.shards);
      write_text(layout.manifest(), to_json(mine));
    }
  }
  const std::string text = read_manifest(layout);
  manifest_ = manifest_from_json(text, layout.manifest());
  check_same_run(manifest_, mine, folder_);
  id_ = sha256_of(text);
}

void Run::check(int64_t shard) const {
  if (shard >= 1 && shard <= shards()) return;
  throw Error("shard is " + std::to_string(shard) + ", expected 1 to " + std::to_string(shards()));
}

bool Run::is_recorded(int64_t shard) const {
  check(shard);
  return fs::exists(Layout(folder_).record(shard, shards()));
}

std::optional<Report> Run::try_work(int64_t shard, const Work& work, std::string& holder) const {
  check(shard);
  const Layout layout(folder_);
  const std::optional<folder::Lock> lock = folder::Lock::try_file(layout.lock(shard, shards()), holder);
  if (!lock) return std::nullopt;
  return Shard(layout, manifest_, id_, shard).work(sources_, work);
}

Report Run::work(int64_t shard, const Work& work) const {
  std::string holder;
  std::optional<Report> report = try_work(shard, work, holder);
  if (report) return std::move(*report);
  throw Error("shard " + std::to_string(shard) + " of folder '" + folder_ + "' is in use by " + holder +
              ": expected one that nobody else works on");
}

}  // namespace heed::shard
