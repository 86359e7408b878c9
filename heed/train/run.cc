// SPDX-License-Identifier: Apache-2.0
#include "heed/train/run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "heed/base/error.h"
#include "heed/folder/lock.h"
#include "heed/folder/model_folder.h"
#include "heed/models/parameter_file.h"
#include "heed/text/corpus.h"
#include "heed/train/card.h"
#include "heed/train/data_id.h"
#include "heed/train/run_options.h"
#include "heed/train/setup.h"

namespace heed::train {
namespace {

namespace fs = std::filesystem;
using models::Task;

void check_new(const std::string& folder) {
  if (std::filesystem::exists(folder::Layout(folder).checkpoint())) {
    throw Error("folder '" + folder + "' holds a run already: expected a new one, or to resume it");
  }
  if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
    throw Error("cannot make folder '" + folder + "': a file has that name");
  }
}

// Made for a run, and removed again, with folders around it that were made for it, unless it was kept.
class NewFolder {
 public:
  explicit NewFolder(const std::string& folder) : folder_(folder) {
    for (fs::path path = fs::absolute(folder).lexically_normal(); !fs::exists(path); path = path.parent_path()) {
      made_.push_back(path);
    }
    folder::create(folder);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (kept_ || made_.empty()) return;
    fs::remove_all(folder_, ignored);
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }
  void keep(bool keep = true) { kept_ = keep; }

 private:
  const std::string folder_;
  std::vector<fs::path> made_;  // innermost first
  bool kept_ = false;
};

// Everything a run holds while it goes.
class Run {
 public:
  Run(const RunOptions& options, const std::string& folder, const models::ModelOptions& model,
      const text::PairSource& data, data::Tokenizers tokenizers, Listener& listener, Parallel& parallel)
      : options_(options),
        folder_(folder),
        tokenizers_(std::move(tokenizers)),
        data_(data, *tokenizers_.source, *tokenizers_.target,
              {.tokens = options.batch_tokens,
               .max_length = options.max_length,
               .seed = static_cast<uint64_t>(options.seed),
               .tags = task_of(model) == Task::tag}),
        dev_(dev_set(options, tokenizers_, task_of(model), listener)),
        data_id_(id_of(data).to_string()),
        dev_id_(id_of(dev_.corpus()).to_string()),
        model_(models::make_model(model, static_cast<uint64_t>(options.seed))),
        optimizer_(model_->parameters(), options.optimizer),
        trainer_(*model_, optimizer_, data_, seeded(options), parallel),
        listener_(listener),
        parallel_(parallel) {
    listener.told(std::to_string(data_.pairs()) + " pairs, " + std::to_string(data_.left_out()) +
                  " left out as too long, " + std::to_string(data_.size()) + " batches an epoch; " +
                  std::to_string(tokenizers_.source->size()) + " tokens known; " +
                  std::to_string(model_->parameters().count()) + " parameters");
    listener.told((options.dev.empty() ? options.dev_source : options.dev) + ": " + describe(dev_.unknown()));
  }

  // In a new folder. All has been read by now: a run that cannot begin, or is stopped before, leaves nothing.
  // The lock is taken then, unless the folder was there before, and it is held already.
  void begin(std::optional<folder::Lock>& lock) {
    listener_.began();
    NewFolder folder(folder_);
    if (!lock) {  // another run may have come first while the data was read: then the folder is that run's
      folder.keep();
      lock.emplace(folder_);
      check_new(folder_);
      folder.keep(false);
    }
    folder::remove_unfinished(folder_);
    folder::save_training(folder_, options_);
    folder::save(folder_, *model_, tokenizers_);
    make_loop();
    loop_->save_checkpoint();  // NOLINT(bugprone-unchecked-optional-access): made by make_loop
    folder.keep();
  }

  void begin_with(const std::string& init) {
    models::load_parameters(folder::Layout(init).parameters(), model_->parameters());
  }

  // Where the folder's checkpoint is.
  void restore() {
    listener_.began();
    folder::remove_unfinished(folder_);
    make_loop();
    loop_->restore();                          // NOLINT(bugprone-unchecked-optional-access): made by make_loop
    folder::save_training(folder_, options_);  // what is new in it, for the next time
  }

  RunResult go() {
    // begin or restore has made the loop. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
    const RunResult result = loop_->go();
    folder::save_card(folder_, model_card(options_,
                                          {.parameters = model_->parameters().count(),
                                           .pairs = data_.pairs(),
                                           .tokens = tokenizers_.source->size()},
                                          result));
    return result;
  }

 private:
  static evaluate::TestSet dev_set(const RunOptions& options, const data::Tokenizers& tokenizers, Task task,
                                   Listener& listener) {
    const auto pairs = open_dev_pairs(options, task, listener);
    return {text::read_pairs(*pairs), tokenizers, task, options.max_length, pairs->path()};
  }
  void make_loop() {
    const LoopParts parts{
        model_, tokenizers_, dev_, trainer_, listener_, parallel_, {{"data", data_id_}, {"dev", dev_id_}}};
    loop_.emplace(parts, options_.loop, options_.train.steps, folder_, folder_ + ": " + options_.preset);
  }
  static TrainOptions seeded(const RunOptions& options) {
    TrainOptions train = options.train;
    train.seed = static_cast<uint64_t>(options.seed);
    return train;
  }

  const RunOptions options_;
  const std::string folder_;
  const data::Tokenizers tokenizers_;
  const data::Batches data_;
  const evaluate::TestSet dev_;
  const std::string data_id_, dev_id_;
  const std::shared_ptr<models::Model> model_;
  AdamW optimizer_;
  Trainer trainer_;
  Listener& listener_;
  Parallel& parallel_;
  std::optional<Loop> loop_;  // it writes to the folder, and comes when all is read
};

}  // namespace

text::TsvOptions columns_of(const RunOptions& o, Task task) {
  text::TsvOptions columns{o.source_column, o.target_column, o.tokenizer.lowercase};
  if (task == Task::language) columns.source_column = 0, columns.target_column = o.source_column;
  constexpr int64_t kBytesOfToken = 12;  // at most, in the mean over a line that has as many tokens as are allowed
  columns.max_bytes = std::max(columns.max_bytes, kBytesOfToken * o.max_length);
  return columns;
}

RunResult run(const RunOptions& given, const std::string& folder, Listener& listener, Parallel& parallel) {
  check_fields("train", given);
  const models::ModelOptions model = chosen_model(given);
  const Task task = task_of(model);
  check_setup(given, task);
  std::optional<folder::Lock> lock;
  if (fs::is_directory(folder)) lock.emplace(folder);
  check_new(folder);
  const RunOptions options = resolved(given, model);
  const auto data = open_training_pairs(options, task, listener);
  data::Tokenizers tokenizers = chosen_tokenizers(options, task, *data, listener);
  const models::ModelOptions sized = sized_model(options, model, tokenizers);
  listener.working("reading the data as tokens");
  Run run(options, folder, sized, *data, std::move(tokenizers), listener, parallel);
  if (!options.init.empty()) run.begin_with(options.init);
  run.begin(lock);
  return run.go();
}

RunOptions options_of(const std::string& folder) {
  if (!std::filesystem::exists(folder::Layout(folder).checkpoint())) {
    throw Error("folder '" + folder + "' holds no checkpoint, expected one of a training run");
  }
  RunOptions options;
  if (!folder::read_training(folder, options)) {
    throw Error("folder '" + folder + "' does not say how it was trained, expected train.json");
  }
  return options;
}

RunResult resume(const std::string& folder, const RunOptions& options, Listener& listener, Parallel& parallel) {
  const RunOptions before = options_of(folder);
  const folder::Lock lock(folder);
  check_fields("train", options);
  const models::ModelOptions model = folder::open_model_options(folder);
  const Task task = task_of(model);
  check_setup(options, task);
  for (const OptionDifference& one : allowed_differences(before, options)) {
    listener.told(one.name() + " was " + one.before + ", and is " + one.now + " from here on");
  }
  listener.working("reading the data as tokens");
  const auto data = open_training_pairs(options, task, listener);
  Run run(options, folder, model, *data, folder::open_tokenizers(folder, task), listener, parallel);
  run.restore();
  return run.go();
}

RunResult resume(const std::string& folder, Listener& listener, Parallel& parallel) {
  return resume(folder, options_of(folder), listener, parallel);
}

}  // namespace heed::train
