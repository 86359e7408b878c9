#include "heed/train/run.h"

#include <filesystem>
#include <utility>

#include "heed/base/error.h"
#include "heed/folder/model_folder.h"
#include "heed/models/presets.h"
#include "heed/text/corpus.h"
#include "heed/train/card.h"

namespace heed::train {
namespace {

using models::Task;

Task task_of(const RunOptions& o) { return models::preset_named(o.preset).task; }

text::TsvFile training_data(const RunOptions& o) { return {o.data, columns_of(o, task_of(o))}; }

std::shared_ptr<const text::Tokenizer> learn(const std::vector<std::string>& lines,
                                             const text::TokenizerOptions& options) {
  return text::train_tokenizer(lines, options);
}

// From the first pairs of the data, though all of them are looked at, and reported.
data::Tokenizers learn_tokenizers(const RunOptions& o, const text::TsvFile& data, Listener& listener) {
  constexpr size_t kEnough = 2'000'000;
  std::vector<std::string> sources, targets;
  const text::CorpusReport report = data.for_each([&](const text::Pair& pair) {
    if (targets.size() == kEnough) return;
    if (!pair.source.empty()) sources.push_back(pair.source);
    targets.push_back(pair.target);
  });
  listener.told(o.data + ": " + report.to_string());
  if (task_of(o) == Task::tag) {
    return {learn(sources, o.tokenizer), learn(targets, {.kind = text::TokenizerKind::words})};
  }
  if (o.separate_vocabularies) return {learn(sources, o.tokenizer), learn(targets, o.tokenizer)};
  sources.insert(sources.end(), targets.begin(), targets.end());
  return data::Tokenizers::shared(learn(sources, o.tokenizer));
}

models::ModelOptions model_of(const RunOptions& o, const data::Tokenizers& tokenizers) {
  models::Vocabularies sizes{.source = tokenizers.source->size(), .tags = tokenizers.target->size()};
  if (o.separate_vocabularies) sizes.target = tokenizers.target->size();
  return models::model_options(models::preset_named(o.preset), sizes, o.dropout);
}

// Everything a run holds while it goes.
class Run {
 public:
  Run(const RunOptions& options, const std::string& folder, const text::TsvFile& data, data::Tokenizers tokenizers,
      Listener& listener, Parallel& parallel)
      : options_(options),
        folder_(folder),
        tokenizers_(std::move(tokenizers)),
        data_(data, *tokenizers_.source, *tokenizers_.target,
              {.tokens = options.batch_tokens,
               .max_length = options.max_length,
               .seed = static_cast<uint64_t>(options.seed),
               .tags = task_of(options) == Task::tag}),
        dev_(text::read_tsv(options.dev, columns_of(options, task_of(options))), tokenizers_, task_of(options),
             options.max_length, options.dev),
        model_(models::make_model(model_of(options, tokenizers_), static_cast<uint64_t>(options.seed))),
        optimizer_(model_->parameters(), options.optimizer),
        trainer_(*model_, optimizer_, data_, seeded(options), parallel),
        loop_({model_, tokenizers_, dev_, trainer_, listener, parallel}, options.loop, options.train.steps, folder,
              folder + ": " + options.preset) {
    listener.told(std::to_string(data_.pairs()) + " pairs, " + std::to_string(data_.left_out()) +
                  " left out as too long, " + std::to_string(data_.size()) + " batches an epoch; " +
                  std::to_string(tokenizers_.source->size()) + " tokens known; " +
                  std::to_string(model_->parameters().count()) + " parameters");
  }

  void save_beginning() {
    folder::save_training(folder_, options_);
    folder::save(folder_, *model_, tokenizers_);
    loop_.save_checkpoint();
  }

  void restore() { loop_.restore(); }

  RunResult go() {
    const RunResult result = loop_.go();
    folder::save_card(folder_, model_card(options_,
                                          {.parameters = model_->parameters().count(),
                                           .pairs = data_.pairs(),
                                           .tokens = tokenizers_.source->size()},
                                          result));
    return result;
  }

 private:
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
  const std::shared_ptr<models::Model> model_;
  AdamW optimizer_;
  Trainer trainer_;
  Loop loop_;
};

void check(const RunOptions& options, const std::string& folder) {
  check_fields("train", options);
  if (options.data.empty()) throw Error("train: data is missing, expected a TSV file of pairs");
  if (options.dev.empty()) throw Error("train: dev is missing, expected a TSV file of pairs");
  const Task task = task_of(options);  // an unknown preset shows before anything is read
  if (task != Task::translate && options.loop.stop_on == StopOn::bleu) {
    throw Error("train: stop_on is bleu, expected loss for preset " + options.preset + ", which does not translate");
  }
  if (task != Task::translate && options.separate_vocabularies) {
    throw Error("train: separate_vocabularies is on, expected a preset that translates, not " + options.preset);
  }
  if (task == Task::tag && options.tokenizer.kind != text::TokenizerKind::words) {
    throw Error("train: preset " + options.preset + " tags words, expected tokenizer words");
  }
  if (std::filesystem::exists(folder::Layout(folder).checkpoint())) {
    throw Error("folder '" + folder + "' holds a run already: expected a new one, or to resume it");
  }
  if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
    throw Error("cannot make folder '" + folder + "': a file has that name");
  }
}

}  // namespace

text::TsvOptions columns_of(const RunOptions& o, Task task) {
  if (task == Task::language) return {0, o.source_column, o.tokenizer.lowercase};
  return {o.source_column, o.target_column, o.tokenizer.lowercase};
}

RunResult run(const RunOptions& options, const std::string& folder, Listener& listener, Parallel& parallel) {
  check(options, folder);
  const text::TsvFile data = training_data(options);
  data::Tokenizers tokenizers = learn_tokenizers(options, data, listener);
  folder::create(folder);
  folder::remove_unfinished(folder);
  Run run(options, folder, data, std::move(tokenizers), listener, parallel);
  run.save_beginning();
  return run.go();
}

RunResult resume(const std::string& folder, int64_t steps, double minutes, Listener& listener, Parallel& parallel) {
  if (!std::filesystem::exists(folder::Layout(folder).checkpoint())) {
    throw Error("folder '" + folder + "' holds no checkpoint, expected one of a training run");
  }
  RunOptions options;
  if (!folder::read_training(folder, options)) {
    throw Error("folder '" + folder + "' does not say how it was trained, expected train.json");
  }
  if (steps > 0) options.train.steps = steps;
  if (minutes > 0) options.loop.minutes = minutes;
  folder::remove_unfinished(folder);
  if (steps > 0) folder::save_training(folder, options);  // for the next time, too
  const text::TsvFile data = training_data(options);
  Run run(options, folder, data, folder::open_tokenizers(folder, task_of(options)), listener, parallel);
  run.restore();
  return run.go();
}

}  // namespace heed::train
