#include "heed/train/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/decode/evaluate.h"
#include "heed/io/config.h"
#include "heed/models/presets.h"
#include "heed/text/corpus.h"
#include "heed/train/average.h"
#include "heed/train/curve.h"
#include "heed/train/log.h"

namespace heed::train {
namespace {

using Clock = std::chrono::steady_clock;

std::string file_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

constexpr const char* kOptions = "train.json";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kTags = "tags";  // of a tagger: the tokenizer of its tags
constexpr const char* kCheckpoint = "checkpoint.safetensors";
constexpr const char* kLog = "log.jsonl";
constexpr const char* kCard = "README.md";
constexpr const char* kCurve = "curve.html";
constexpr const char* kSnapshots = "snapshots";
constexpr double kSaveSeconds = 60;  // between checkpoints, beside those after an evaluation

using models::preset_named;

bool is_language_model(const RunOptions& o) { return preset_named(o.preset).task == models::Task::language; }
bool is_tagger(const RunOptions& o) { return preset_named(o.preset).task == models::Task::tag; }

text::TsvOptions columns_of(const RunOptions& o) {
  if (is_language_model(o)) return {0, o.source_column, o.tokenizer.lowercase};
  return {o.source_column, o.target_column, o.tokenizer.lowercase};
}

// Of the source, and of the target, which share one unless the target is tags.
struct Tokenizers {
  std::shared_ptr<const text::Tokenizer> source, target;

  models::Vocabularies sizes() const { return {source->size(), target->size()}; }
};

std::shared_ptr<const text::Tokenizer> learn(const std::vector<std::string>& lines,
                                             const text::TokenizerOptions& options) {
  return text::train_tokenizer(lines, options);
}

// From the first pairs of the data, though all of them are looked at, and reported.
Tokenizers learn_tokenizers(const RunOptions& o, Listener& listener) {
  constexpr size_t kEnough = 2'000'000;
  std::vector<std::string> sources, targets;
  const text::CorpusReport report = text::for_each_pair(o.data, columns_of(o), [&](const text::Pair& pair) {
    if (targets.size() == kEnough) return;
    if (!pair.source.empty()) sources.push_back(pair.source);
    targets.push_back(pair.target);
  });
  listener.told(o.data + ": " + report.to_string());
  if (is_tagger(o)) {
    return {learn(sources, o.tokenizer), learn(targets, {.kind = text::TokenizerKind::words})};
  }
  sources.insert(sources.end(), targets.begin(), targets.end());
  const auto shared = learn(sources, o.tokenizer);
  return {shared, shared};
}

Tokenizers load_tokenizers(const RunOptions& o, const std::string& folder) {
  const std::shared_ptr<const text::Tokenizer> source = text::load_tokenizer(file_in(folder, kTokenizer));
  if (!is_tagger(o)) return {source, source};
  return {source, text::load_tokenizer(file_in(folder, kTags))};
}

// A tag for each token, or else training would learn nonsense.
void check_tags(const RunOptions& o, const Tokenizers& tokenizers, const std::string& path) {
  text::for_each_pair(path, columns_of(o), [&](const text::Pair& pair) {
    const auto tokens = tokenizers.source->encode(pair.source).size();
    const auto tags = tokenizers.target->encode(pair.target).size();
    if (tokens != tags) {
      throw Error(path + ":" + std::to_string(pair.line) + ": " + std::to_string(tokens) + " tokens and " +
                  std::to_string(tags) + " tags, expected as many");
    }
  });
}

// What a killed run was writing: never to be renamed any more.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".tmp.") != name.npos) std::filesystem::remove(entry.path(), ignored);
  }
}

// Everything a run holds while it goes.
class Run {
 public:
  Run(const RunOptions& options, std::string folder, Tokenizers tokenizers, Listener& listener, Parallel& parallel)
      : options_(options),
        folder_(std::move(folder)),
        listener_(listener),
        tokenizers_(std::move(tokenizers)),
        data_(options.data, columns_of(options), *tokenizers_.source, *tokenizers_.target, batch_options()),
        dev_corpus_(text::read_tsv(options.dev, columns_of(options))),
        dev_(text::Batches(dev_corpus_, *tokenizers_.source, *tokenizers_.target, batch_options()).in_order()),
        model_(models::make_model(
            models::model_options(preset_named(options.preset), tokenizers_.sizes(), options.dropout),
            static_cast<uint64_t>(options.seed))),
        parallel_(parallel),
        trainer_(*model_, data_, train_options(), parallel),
        log_(file_in(folder_, kLog)),
        snapshots_(file_in(folder_, kSnapshots), options.average) {
    if (is_tagger(options_)) {
      check_tags(options_, tokenizers_, options_.data);
      check_tags(options_, tokenizers_, options_.dev);
    }
    listener_.told(std::to_string(data_.pairs()) + " pairs, " + std::to_string(data_.left_out()) +
                   " left out as too long, " + std::to_string(data_.size()) + " batches an epoch; " +
                   std::to_string(tokenizers_.source->size()) + " tokens known; " +
                   std::to_string(model_->parameters().count()) + " parameters");
  }

  void save_beginning() {
    io::write_config(file_in(folder_, kOptions), options_);
    tokenizers_.source->save(file_in(folder_, kTokenizer));
    if (is_tagger(options_)) tokenizers_.target->save(file_in(folder_, kTags));
    models::save_model(*model_, folder_);
    save_checkpoint();
  }

  void restore() {
    const Trainer::Notes notes = trainer_.restore(file_in(folder_, kCheckpoint));
    const auto number = [&](const char* name) {
      const auto found = notes.find(name);
      return found == notes.end() ? 0.0 : std::strtod(found->second.c_str(), nullptr);
    };
    best_.loss = notes.contains("best_loss") ? number("best_loss") : best_.loss;
    best_.accuracy = number("best_accuracy");
    best_.bleu = notes.contains("best_bleu") ? number("best_bleu") : best_.bleu;
    best_.averaged = static_cast<int64_t>(number("best_averaged"));
    best_step_ = static_cast<int64_t>(number("best_step"));
    without_progress_ = static_cast<int64_t>(number("without_progress"));
    last_evaluated_ = notes.contains("last_evaluated") ? static_cast<int64_t>(number("last_evaluated")) : -1;
    progress_.step.step = trainer_.steps_done();
    log_.cut_after(trainer_.steps_done());
    snapshots_.cut_after(trainer_.steps_done());
  }

  RunResult go() {
    started_ = saved_ = Clock::now();
    std::string why = "all steps done";
    while (trainer_.steps_done() < options_.train.steps) {
      progress_.step = trainer_.step();
      measure();
      log_.step(progress_);
      listener_.stepped(progress_);
      if (trainer_.steps_done() % options_.evaluate_every == 0) evaluate();
      if (options_.patience > 0 && without_progress_ >= options_.patience) why = "no progress";
      if (options_.minutes > 0 && progress_.seconds >= 60 * options_.minutes) why = "out of time";
      if (listener_.stop()) why = "stopped";
      if (why != "all steps done") break;
      if (std::chrono::duration<double>(Clock::now() - saved_).count() > kSaveSeconds) save_checkpoint();
    }
    if (why != "stopped") evaluate_end();
    save_checkpoint();
    RunResult result{trainer_.steps_done(), best_, best_step_, why, progress_.seconds};
    write_card(result);
    return result;
  }

 private:
  text::BatchOptions batch_options() const {
    return {options_.batch_tokens, options_.max_length, static_cast<uint64_t>(options_.seed)};
  }
  TrainOptions train_options() const {
    TrainOptions train = options_.train;
    train.seed = static_cast<uint64_t>(options_.seed);
    return train;
  }

  void measure() {
    progress_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    tokens_ += progress_.step.tokens;
    ++steps_here_;
    progress_.tokens_per_second = static_cast<double>(tokens_) / std::max(1e-9, progress_.seconds);
    const int64_t left = options_.train.steps - progress_.step.step;
    double seconds_left = progress_.seconds / static_cast<double>(steps_here_) * static_cast<double>(left);
    progress_.done = static_cast<double>(progress_.step.step) / static_cast<double>(options_.train.steps);
    if (options_.minutes > 0) {
      seconds_left = std::min(seconds_left, std::max(0.0, 60 * options_.minutes - progress_.seconds));
      progress_.done = std::max(progress_.done, progress_.seconds / (60 * options_.minutes));
    }
    progress_.seconds_left = seconds_left;
  }

  void evaluate() {
    last_evaluated_ = trainer_.steps_done();
    const bool better = keep_if_better(measured());
    without_progress_ = better ? 0 : without_progress_ + 1;
    snapshots_.add(trainer_.steps_done(), model_->parameters());
    save_checkpoint();
    write_curve();
  }

  // Once: a run that had nothing left to do has been here before.
  void evaluate_end() {
    const bool known = last_evaluated_ == trainer_.steps_done();
    if (known && steps_here_ == 0) return;
    if (!known) evaluate();
    if (snapshots_.count() > 1) evaluate_mean();
  }

  // The mean of the last snapshots in place of the parameters, which come back.
  void evaluate_mean() {
    const Tensor values = model_->parameters().values(), own = values.clone();
    snapshots_.set_to_mean(model_->parameters());
    Evaluation mean = measured();
    mean.averaged = snapshots_.count();
    keep_if_better(mean);
    values.copy_from(own);
  }

  Evaluation measured() {
    Evaluation now = trainer_.evaluate(dev_);
    if (options_.stop_on != StopOn::bleu) return now;
    Workspace workspace;
    nn::Pass pass{{parallel_, workspace}};
    const auto judged = decode::judge_pairs(pass, *model_, *tokenizers_.source, dev_corpus_, {});
    now.bleu = decode::scores_of(judged, dev_corpus_).bleu.value_or(0);
    return now;
  }

  bool keep_if_better(const Evaluation& now) {
    const bool better = options_.stop_on == StopOn::bleu ? now.bleu > best_.bleu : now.loss < best_.loss;
    if (better) {
      best_ = now;
      best_step_ = trainer_.steps_done();
      models::save_model(*model_, folder_);
    }
    log_.evaluation(progress_, now, better);
    listener_.evaluated(progress_, now, better);
    return better;
  }

  void write_curve() const {
    const std::string page = curve_page(folder_ + ": " + options_.preset, read_curves(file_in(folder_, kLog)));
    write_file_atomically(file_in(folder_, kCurve), std::as_bytes(std::span(page)));
  }

  void save_checkpoint() {
    Trainer::Notes notes{{"best_accuracy", shortest(best_.accuracy)},
                         {"best_step", std::to_string(best_step_)},
                         {"without_progress", std::to_string(without_progress_)},
                         {"last_evaluated", std::to_string(last_evaluated_)}};
    if (std::isfinite(best_.loss)) notes["best_loss"] = shortest(best_.loss);
    if (best_.bleu >= 0) notes["best_bleu"] = shortest(best_.bleu);
    if (best_.averaged > 0) notes["best_averaged"] = std::to_string(best_.averaged);
    trainer_.save(file_in(folder_, kCheckpoint), notes);
    saved_ = Clock::now();
  }

  void write_card(const RunResult& result) const {
    std::ostringstream card;
    card << "# A model of heed\n\n"
         << "- preset: " << options_.preset << ", " << model_->parameters().count() << " parameters\n"
         << "- data: " << data_.pairs() << " pairs; tokenizer of " << tokenizers_.source->size() << " tokens\n"
         << "- seed: " << options_.seed << "\n"
         << "- steps: " << result.steps << " (" << result.why << "), " << std::llround(result.seconds)
         << " seconds in the last sitting\n"
         << "- dev: loss " << shortest(static_cast<float>(result.best.loss)) << " a token, token accuracy "
         << shortest(static_cast<float>(100 * result.best.accuracy)) << " %, at step " << result.best_step
         << (best_.averaged > 0 ? " (the mean of the last " + std::to_string(best_.averaged) + " evaluated)" : "")
         << (best_.bleu >= 0 ? ", BLEU " + shortest(static_cast<float>(best_.bleu)) : "") << "\n\n"
         << "Every option is in `train.json`, the architecture in `config.json`, the course of training in "
            "`log.jsonl` and `curve.html`.\n";
    const std::string text = card.str();
    write_file_atomically(file_in(folder_, kCard), std::as_bytes(std::span(text)));
  }

  const RunOptions options_;
  const std::string folder_;
  Listener& listener_;
  const Tokenizers tokenizers_;
  const text::Batches data_;
  const text::Corpus dev_corpus_;
  const std::vector<text::Batch> dev_;
  const std::unique_ptr<models::Model> model_;
  Parallel& parallel_;
  Trainer trainer_;
  Log log_;
  Snapshots snapshots_;
  Progress progress_;
  Evaluation best_{.loss = std::numeric_limits<double>::infinity()};
  int64_t best_step_ = 0, without_progress_ = 0, last_evaluated_ = -1, tokens_ = 0, steps_here_ = 0;
  Clock::time_point started_, saved_;
};

}  // namespace

RunResult run(const RunOptions& options, const std::string& folder, Listener& listener, Parallel& parallel) {
  check_fields("train", options);
  if (options.data.empty()) throw Error("train: data is missing, expected a TSV file of pairs");
  if (options.dev.empty()) throw Error("train: dev is missing, expected a TSV file of pairs");
  const models::Task task = preset_named(options.preset).task;  // an unknown preset shows before anything is read
  if (task != models::Task::translate && options.stop_on == StopOn::bleu) {
    throw Error("train: stop_on is bleu, expected loss for preset " + options.preset + ", which does not translate");
  }
  if (task == models::Task::tag && options.tokenizer.kind != text::TokenizerKind::words) {
    throw Error("train: preset " + options.preset + " tags words, expected tokenizer words");
  }
  if (std::filesystem::exists(file_in(folder, kCheckpoint))) {
    throw Error("folder '" + folder + "' holds a run already: expected a new one, or --resume to go on with it");
  }
  if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
    throw Error("cannot make folder '" + folder + "': a file has that name");
  }
  Tokenizers tokenizers = learn_tokenizers(options, listener);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error("cannot make folder '" + folder + "': " + error.message());
  remove_leftovers(folder);
  Run run(options, folder, std::move(tokenizers), listener, parallel);
  run.save_beginning();
  return run.go();
}

RunResult resume(const std::string& folder, int64_t steps, double minutes, Listener& listener, Parallel& parallel) {
  if (!std::filesystem::exists(file_in(folder, kCheckpoint))) {
    throw Error("folder '" + folder + "' holds no checkpoint, expected one that heed train has written");
  }
  RunOptions options;
  io::read_config(file_in(folder, kOptions), options);
  if (steps > 0) options.train.steps = steps;
  if (minutes > 0) options.minutes = minutes;
  remove_leftovers(folder);
  if (steps > 0) io::write_config(file_in(folder, kOptions), options);  // for the next time, too
  Run run(options, folder, load_tokenizers(options, folder), listener, parallel);
  run.restore();
  return run.go();
}

}  // namespace heed::train
