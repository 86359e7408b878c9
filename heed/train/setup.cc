// SPDX-License-Identifier: Apache-2.0
#include "heed/train/setup.h"

#include "heed/base/cancel.h"
#include "heed/base/error.h"
#include "heed/folder/model_folder.h"
#include "heed/models/model.h"
#include "heed/models/presets.h"

namespace heed::train {
namespace {

using models::Task;
using text::TokenizerKind;

// "data, or source and target"
struct PairNames {
  const char *tsv, *source, *target;
  const std::string &its_tsv, &its_source, &its_target;
};
PairNames training_names(const RunOptions& o) { return {"data", "source", "target", o.data, o.source, o.target}; }
PairNames dev_names(const RunOptions& o) {
  return {"dev", "dev_source", "dev_target", o.dev, o.dev_source, o.dev_target};
}

void check_names(const PairNames& n, Task task) {
  const std::string two = std::string(n.source) + " and " + n.target;
  const bool parallel = !n.its_source.empty() || !n.its_target.empty();
  if (!parallel && n.its_tsv.empty()) {
    throw Error(std::string("train: ") + n.tsv + " is missing, expected a TSV file of pairs" +
                (task == Task::language ? "" : ", or " + two));
  }
  if (parallel && !n.its_tsv.empty()) {
    throw Error("train: " + std::string(n.tsv) + " came with " + (n.its_source.empty() ? n.target : n.source) +
                ", expected " + n.tsv + " alone or " + two);
  }
  if (parallel && task == Task::language) {
    throw Error("train: " + two + " came for a language model, which has no source: expected " + n.tsv);
  }
  if (parallel && (n.its_source.empty() || n.its_target.empty())) {
    throw Error(std::string("train: ") + (n.its_source.empty() ? n.target : n.source) + " came alone, expected " + two);
  }
}

// Each text that is read has to come from somewhere else.
void check_standard_input(const RunOptions& o) {
  int count = 0;
  for (const std::string* path : {&o.data, &o.source, &o.target, &o.dev, &o.dev_source, &o.dev_target}) {
    count += text::is_standard_input(*path);
  }
  if (count > 1) throw Error("train: standard input was named " + std::to_string(count) + " times, expected once");
}

std::unique_ptr<text::PairSource> open_pairs(const PairNames& n, text::TsvOptions options, Listener& listener) {
  options.waiting = [&listener] {
    if (listener.stop()) throw Cancelled();
  };
  if (n.its_tsv.empty()) return std::make_unique<text::ParallelFiles>(n.its_source, n.its_target, options);
  return std::make_unique<text::TsvFile>(n.its_tsv, options);
}

std::shared_ptr<const text::Tokenizer> learn(const std::vector<std::string>& lines,
                                             const text::TokenizerOptions& options) {
  return text::train_tokenizer(lines, options);
}

// From the first pairs, though all of them are looked at, and reported.
data::Tokenizers learn_tokenizers(const RunOptions& o, Task task, const text::PairSource& pairs, Listener& listener) {
  constexpr size_t kEnough = 2'000'000;
  std::vector<std::string> sources, targets;
  const text::CorpusReport report = pairs.for_each([&](const text::Pair& pair) {
    if (targets.size() == kEnough) return;
    if (!pair.source.empty()) sources.push_back(pair.source);
    targets.push_back(pair.target);
  });
  listener.told(pairs.name() + ": " + report.to_string());
  listener.working("learning the tokenizer");
  if (task == Task::tag) return {learn(sources, o.tokenizer), learn(targets, {.kind = TokenizerKind::words})};
  if (o.separate_vocabularies) return {learn(sources, o.tokenizer), learn(targets, o.tokenizer)};
  sources.insert(sources.end(), targets.begin(), targets.end());
  return data::Tokenizers::shared(learn(sources, o.tokenizer));
}

void check_tokenizer_models(const RunOptions& o, Task task) {
  if (o.tokenizer_model.empty() && o.target_tokenizer_model.empty()) return;
  if (task == Task::tag) throw Error("train: tokenizer_model came for a tagger, expected none: it learns words");
  if (o.tokenizer_model.empty()) {
    throw Error("train: target_tokenizer_model came alone, expected tokenizer_model, too");
  }
  if (!o.target_tokenizer_model.empty() && task == Task::language) {
    throw Error(
        "train: target_tokenizer_model came for a language model, which has no target: expected tokenizer_model");
  }
  if (o.separate_vocabularies && o.target_tokenizer_model.empty()) {
    throw Error("train: separate_vocabularies came with tokenizer_model, expected target_tokenizer_model, too");
  }
}

data::Tokenizers given_tokenizers(const RunOptions& o) {
  std::shared_ptr<const text::Tokenizer> source = text::import_tokenizer(o.tokenizer_model, o.tokenizer.lowercase);
  if (o.target_tokenizer_model.empty()) return data::Tokenizers::shared(source);
  return {source, text::import_tokenizer(o.target_tokenizer_model, o.tokenizer.lowercase)};
}

}  // namespace

models::ModelOptions chosen_model(const RunOptions& o) {
  if (o.model && !o.init.empty()) throw Error("train: model and init came, expected one of them");
  models::ModelOptions model = !o.init.empty() ? folder::checked_model_options(o.init)
                               : o.model       ? *o.model
                                               : models::preset_named(o.preset).options;
  // The model itself knows what fits together; with the smallest vocabularies, little is allocated.
  models::ModelOptions trial = model;
  models::set_vocabularies(trial, {.source = text::kUnknown + 2, .tags = 1});
  const int64_t longest = models::make_unfilled_model(trial)->max_length();
  if (o.max_length <= longest) return model;
  throw Error("train: max_length is " + std::to_string(o.max_length) + ", expected at most the model's " +
              std::to_string(longest));
}

void check_setup(const RunOptions& o, Task task) {
  check_tokenizer_models(o, task);
  check_names(training_names(o), task);
  check_names(dev_names(o), task);
  check_standard_input(o);
  if (task != Task::translate && task != Task::language && task != Task::tag) {
    throw Error("train: the model is " + data::describe_task(task) + ", expected " +
                data::describe_task(Task::translate) + ", " + data::describe_task(Task::language) + " or " +
                data::describe_task(Task::tag));
  }
  if (task != Task::translate && o.loop.stop_on == StopOn::bleu) {
    throw Error("train: stop_on is bleu, expected loss for " + data::describe_task(task));
  }
  if (task != Task::translate && o.separate_vocabularies) {
    throw Error("train: separate_vocabularies is on, expected a model that translates, not " +
                data::describe_task(task));
  }
  const TokenizerKind kind = o.tokenizer.kind;
  if (task == Task::tag && kind != TokenizerKind::words && kind != TokenizerKind::automatic) {
    throw Error("train: a tagger tags words, expected tokenizer words");
  }
}

RunOptions resolved(const RunOptions& given, const models::ModelOptions& model) {
  RunOptions options = given;
  if (given.model || !given.init.empty()) options.preset = "own " + model.family_name();
  RunOptions before;  // of the run that made the model to go on from
  if (!given.init.empty() && folder::read_training(given.init, before)) {
    options.tokenizer = before.tokenizer;
    options.separate_vocabularies = before.separate_vocabularies;
  }
  if (options.train.steps == 0 && options.loop.minutes == 0) options.train.steps = TrainOptions{}.steps;
  if (!options.tokenizer_model.empty()) {
    options.tokenizer.kind = text::import_tokenizer(options.tokenizer_model, false)->kind();
    options.separate_vocabularies = !options.target_tokenizer_model.empty();
  }
  // Tags belong to words; other text is cut into subwords, which spell what they have not seen.
  if (options.tokenizer.kind == TokenizerKind::automatic) {
    options.tokenizer.kind = task_of(model) == Task::tag ? TokenizerKind::words : TokenizerKind::unigram;
  }
  return options;
}

std::unique_ptr<text::PairSource> open_training_pairs(const RunOptions& o, Task task, Listener& listener) {
  return open_pairs(training_names(o), columns_of(o, task), listener);
}

std::unique_ptr<text::PairSource> open_dev_pairs(const RunOptions& o, Task task, Listener& listener) {
  return open_pairs(dev_names(o), columns_of(o, task), listener);
}

data::Tokenizers chosen_tokenizers(const RunOptions& o, Task task, const text::PairSource& pairs, Listener& listener) {
  if (o.init.empty() && o.tokenizer_model.empty()) return learn_tokenizers(o, task, pairs, listener);
  data::Tokenizers tokenizers = o.init.empty() ? given_tokenizers(o) : folder::open_tokenizers(o.init, task);
  if (!tokenizers.source) throw Error(o.init + ": has no tokenizer, expected one to train on text");
  listener.told(pairs.name() + ": " + pairs.for_each([](const text::Pair&) {}).to_string());
  return tokenizers;
}

models::ModelOptions sized_model(const RunOptions& o, const models::ModelOptions& model,
                                 const data::Tokenizers& tokenizers) {
  models::ModelOptions result = model;
  if (o.init.empty()) {
    models::Vocabularies sizes{.source = tokenizers.source->size(), .tags = tokenizers.target->size()};
    if (!tokenizers.are_shared() && task_of(model) != Task::tag) sizes.target = tokenizers.target->size();
    models::set_vocabularies(result, sizes);
  }
  if (o.dropout >= 0) models::set_dropout(result, o.dropout);
  return result;
}

}  // namespace heed::train
