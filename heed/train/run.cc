// SPDX-License-Identifier: Apache-2.0
#include "heed/train/run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/folder/lock.h"
#include "heed/folder/model_folder.h"
#include "heed/models/parameter_file.h"
#include "heed/text/corpus.h"
#include "heed/train/card.h"
#include "heed/train/data_id.h"
#include "heed/train/ranks.h"
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
  // Said before the data is read, not after.
  fs::path there = fs::absolute(folder).lexically_normal();
  while (!fs::exists(there) && there.has_relative_path()) there = there.parent_path();
  const bool is_folder = fs::is_directory(there);
  if (is_folder && ::access(there.c_str(), W_OK) == 0) return;
  const std::string why = is_folder ? std::strerror(errno) : "is no folder";
  throw Error("cannot make folder '" + folder + "': " + there.string() + ": " + why);
}

// Whether this rank writes, tells and decides.
bool is_first(const dist::Communicator& communicator) { return communicator.rank() == 0; }

// What a listener hears of a rank but the first: that it can be stopped, and nothing else.
class Quiet final : public Listener {
 public:
  explicit Quiet(Listener& of) : of_(of) {}
  void began() override { of_.began(); }
  const Cancel* cancel() override { return of_.cancel(); }
  bool stop() override { return of_.stop(); }

 private:
  Listener& of_;
};

// Who runs, and who hears of it.
struct Ranks {
  Ranks(dist::Communicator* several, Listener& given)
      : alone(several ? nullptr : dist::single_process()),
        communicator(several ? *several : *alone),
        quiet(given),
        listener(is_first(communicator) ? given : quiet) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const std::unique_ptr<dist::Communicator> alone;
  dist::Communicator& communicator;
  Quiet quiet;
  Listener& listener;
};

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
      const text::PairSource& data, data::Tokenizers tokenizers, Listener& listener, Parallel& parallel,
      dist::Communicator& communicator)
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
        trainer_(*model_, optimizer_, data_, seeded(options), parallel, &communicator),
        listener_(listener),
        parallel_(parallel),
        communicator_(communicator) {
    if (communicator.size() > 1) dist::agree(communicator, facts_of_run(options, model, ids(), data_));
    listener.told(counted(data_.pairs(), "pair") + ", " + grouped(data_.left_out()) + " left out as too long, " +
                  counted(data_.size(), "batch", "batches") + " an epoch; " +
                  counted(tokenizers_.source->size(), "token") + " known; " +
                  counted(model_->parameters().count(), "parameter"));
    listener.told((options.dev.empty() ? options.dev_source : options.dev) + ": " + describe(dev_.unknown()));
  }

  // In a new folder. All has been read by now: a run that cannot begin, or is stopped before, leaves nothing.
  // The lock is taken then, unless the folder was there before, and it is held already.
  void begin(std::optional<folder::Lock>& lock) {
    agree_on_parameters();
    listener_.began();
    if (!is_first(communicator_)) return;
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
    if (is_first(communicator_)) {
      folder::remove_unfinished(folder_);
      make_loop();
      loop_->restore();                          // NOLINT(bugprone-unchecked-optional-access): made by make_loop
      folder::save_training(folder_, options_);  // what is new in it, for the next time
    } else {
      trainer_.restore(folder::Layout(folder_).checkpoint());
    }
    agree_on_parameters();
  }

  RunResult go() {
    if (!is_first(communicator_)) {
      trainer_.follow(listener_.cancel());
      return {.steps = trainer_.steps_done(), .why = "followed"};
    }
    // begin or restore has made the loop. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
    const RunResult result = loop_->go();
    trainer_.finish();
    folder::save_card(folder_, model_card(options_,
                                          {.parameters = model_->parameters().count(),
                                           .tokens = tokenizers_.source->size(),
                                           .data = data_id_,
                                           .dev = dev_id_},
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
    const LoopParts parts{model_, tokenizers_, dev_, trainer_, listener_, parallel_, ids()};
    const Plan wanted{options_.train.steps, options_.train.warmup};
    loop_.emplace(parts, options_.loop, wanted, folder_, folder_ + ": " + options_.preset);
  }
  void agree_on_parameters() {
    if (communicator_.size() > 1) dist::agree(communicator_, facts_of_parameters(*model_, trainer_.steps_done()));
  }
  std::map<std::string, std::string> ids() const { return {{"data", data_id_}, {"dev", dev_id_}}; }
  static TrainOptions seeded(const RunOptions& options) {
    TrainOptions train = options.train;
    train.seed = static_cast<uint64_t>(options.seed);
    if (train.steps == 0) train.steps = TrainOptions{}.steps;  // until there is a plan
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
  dist::Communicator& communicator_;
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

RunResult run(const RunOptions& given, const std::string& folder, Listener& told, Parallel& parallel,
              dist::Communicator* several) {
  check_fields("train", given);
  const Ranks ranks(several, told);
  const models::ModelOptions model = chosen_model(given);
  const Task task = task_of(model);
  check_setup(given, task);
  std::optional<folder::Lock> lock;
  if (is_first(ranks.communicator)) {
    if (fs::is_directory(folder)) lock.emplace(folder);
    check_new(folder);
  }
  const RunOptions options = options_for_ranks(resolved(given, model), ranks.communicator, ranks.listener);
  const auto data = open_training_pairs(options, task, ranks.listener);
  data::Tokenizers tokenizers = chosen_tokenizers(options, task, *data, ranks.listener);
  const models::ModelOptions sized = sized_model(options, model, tokenizers);
  ranks.listener.working("reading the data as tokens");
  Run run(options, folder, sized, *data, std::move(tokenizers), ranks.listener, parallel, ranks.communicator);
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

RunResult resume(const std::string& folder, const RunOptions& given, Listener& told, Parallel& parallel,
                 dist::Communicator* several) {
  const Ranks ranks(several, told);
  const RunOptions before = options_of(folder);
  std::optional<folder::Lock> lock;
  if (is_first(ranks.communicator)) lock.emplace(folder);
  check_fields("train", given);
  const RunOptions options = options_for_ranks(given, ranks.communicator, ranks.listener);
  const models::ModelOptions model = folder::checked_model_options(folder);
  const Task task = task_of(model);
  check_setup(options, task);
  if (options.train.steps == 0 && options.loop.minutes == 0) {
    throw Error("train: steps and minutes are 0, expected a number of one of them");
  }
  for (const OptionDifference& one : allowed_differences(before, options)) {
    ranks.listener.told(one.name() + " was " + one.before + ", and is " + one.now + " from here on");
  }
  ranks.listener.working("reading the data as tokens");
  const auto data = open_training_pairs(options, task, ranks.listener);
  Run run(options, folder, model, *data, folder::open_tokenizers(folder, task), ranks.listener, parallel,
          ranks.communicator);
  run.restore();
  return run.go();
}

RunResult resume(const std::string& folder, Listener& listener, Parallel& parallel) {
  return resume(folder, options_of(folder), listener, parallel);
}

}  // namespace heed::train
