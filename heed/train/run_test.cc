// SPDX-License-Identifier: Apache-2.0
// Runs over files: what a folder holds, stopping and going on, and what is left after a kill at any moment.
#include "heed/train/run.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "heed/base/describe.h"
#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/folder/model_folder.h"
#include "heed/io/config.h"
#include "heed/models/presets.h"
#include "heed/train/curve.h"
#include "heed/train/data_id.h"
#include "heed/train/testing.h"

namespace heed::train {
namespace {

namespace fs = std::filesystem;
using heed::testing::error_of, heed::testing::text_of, heed::testing::seeded;
using testing::Files, testing::with_steps;

struct StopAfter final : Listener {
  explicit StopAfter(int64_t steps) : left(steps) {}
  void stepped(const Progress&) override { --left; }
  bool stop() override { return left <= 0; }
  int64_t left;
};

std::string read(const std::string& path) { return text_of(read_file(path, 1 << 28)); }

TEST(RunTest, LeavesAFolderThatCanBeUsed) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  const RunResult result = run(files.options(), files.out("m"), listener, parallel);
  EXPECT_EQ(result.steps, 8);
  EXPECT_EQ(result.why, "all steps done");
  const auto model = folder::open_model(files.out("m"));
  EXPECT_EQ(text::load_tokenizer(files.out("m/tokenizer"))->size(), model->vocabulary());
  for (const char* name : {"README.md", "log.jsonl", "train.json", "checkpoint.safetensors"}) {
    EXPECT_TRUE(fs::exists(files.out("m/") + name)) << name;
  }
  const std::string card = read(files.out("m/README.md"));
  for (const std::string& part :
       {"- data: `" + files.out("train.tsv") + "`: 60 pairs, ", "- dev set: `" + files.out("dev.tsv") + "`: 10 pairs, ",
        std::string("\n| rate | `0.001` |\n"), std::string("\n| kind | `words` |\n"),
        std::string("\n| batch_tokens | `64` |\n")}) {
    EXPECT_NE(card.find(part), card.npos) << part << " is not in " << card;
  }
  EXPECT_EQ(error_of([&] { run(files.options(), files.out("m"), listener, parallel); }),
            "folder '" + files.out("m") + "' holds a run already: expected a new one, or to resume it");
}

TEST(RunTest, TextIsCutIntoSubwordsAndTaggedTextIntoWords) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.train.steps = 1, o.tokenizer.kind = RunOptions{}.tokenizer.kind;
  run(o, files.out("m"), listener, parallel);
  const auto tokenizer = text::load_tokenizer(files.out("m/tokenizer"));
  EXPECT_EQ(tokenizer->kind(), text::TokenizerKind::unigram);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("badHCaB")), "badHCaB") << "a word that was never seen";
  o.preset = "tagger";
  run(o, files.out("t"), listener, parallel);
  EXPECT_EQ(text::load_tokenizer(files.out("t/tokenizer"))->kind(), text::TokenizerKind::words);
  o.tokenizer.kind = text::TokenizerKind::words;
  run(o, files.out("w"), listener, parallel);
  EXPECT_EQ(read(files.out("w/train.json")), read(files.out("t/train.json"))) << "what was chosen is written";
}

TEST(RunTest, AStoppedRunGoesOnToTheSameBits) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  run(files.options(), files.out("whole"), listener, parallel);
  for (const int64_t stop : {1, 3, 5}) {
    const std::string folder = files.out("stopped" + std::to_string(stop));
    StopAfter stopping(stop);
    const RunResult first = run(files.options(), folder, stopping, parallel);
    EXPECT_EQ(first.why, "stopped");
    EXPECT_EQ(first.steps, stop);
    EXPECT_EQ(resume(folder, listener, parallel).steps, 8);
    for (const char* name : {"/checkpoint.safetensors", "/model.safetensors"}) {
      EXPECT_TRUE(read(folder + name) == read(files.out("whole") + name)) << name << " after " << stop;
    }
  }
}

// A run that is cancelled in the midst of its looks at the dev set, of the one at the mean as well, goes on to the same
// bits.
TEST(RunTest, ALookThatWasCancelledIsDoneLater) {
  struct CancelAt final : Listener {
    CancelAt(int64_t at, bool at_mean) : step(at), mean(at_mean) {}
    void stepped(const Progress& p) override {
      if (!mean && p.step.step == step) request.request();
    }
    void evaluated(const Progress& p, const Evaluation&, bool) override {
      if (mean && p.step.step == step) request.request();
    }
    const Cancel* cancel() override { return &request; }
    const int64_t step;
    const bool mean;
    Cancel request;
  };
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.loop.average = 2, o.loop.evaluate_every = 2, o.train.steps = 6;
  run(o, files.out("whole"), listener, parallel);
  const auto evaluations = [](const std::string& folder) {
    const std::string log = read(folder + "/log.jsonl");
    return std::count(log.begin(), log.end(), '\n');
  };
  for (const auto& [step, mean] : {std::pair(2, false), {6, false}, {6, true}}) {
    const std::string folder = files.out("cancelled" + std::to_string(step) + (mean ? "mean" : ""));
    CancelAt cancelling(step, mean);
    EXPECT_EQ(run(o, folder, cancelling, parallel).why, "stopped");
    EXPECT_EQ(evaluations(folder), mean ? 3 : step / 2 - 1);
    EXPECT_EQ(resume(folder, listener, parallel).why, "all steps done");
    for (const char* name : {"/checkpoint.safetensors", "/model.safetensors"}) {
      EXPECT_TRUE(read(folder + name) == read(files.out("whole") + name)) << name << " after " << step << mean;
    }
    EXPECT_EQ(evaluations(folder), evaluations(files.out("whole")));
  }
}

TEST(RunTest, StopsWhereTheDevSetGetsNoBetter) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.train.steps = 400, o.loop.evaluate_every = 1, o.loop.patience = 2;
  o.train.rate = 0.3, o.train.warmup = 1;  // too fast to learn anything
  const RunResult result = run(o, files.out("m"), listener, parallel);
  EXPECT_EQ(result.why, "no progress");
  EXPECT_LT(result.steps, 400);
  EXPECT_EQ(result.steps, result.best_step + 2);
}

TEST(RunTest, ALossThatIsNoNumberLeavesTheLastGoodCheckpoint) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.train.rate = 1e30, o.train.warmup = 0, o.loop.evaluate_every = 1;
  const std::string error = error_of([&] { run(o, files.out("m"), listener, parallel); });
  EXPECT_NE(error.find("try a lower rate"), std::string::npos) << error;
  folder::open_model(files.out("m"));
  EXPECT_NE(error_of([&] { resume(files.out("m"), listener, parallel); }).find("try a lower"), std::string::npos);

  o.loop.evaluate_every = 100;  // the last save is from before the rate did its harm
  error_of([&] { run(o, files.out("slower"), listener, parallel); });
  o.train.rate = 1e-3;
  EXPECT_EQ(resume(files.out("slower"), o, listener, parallel).steps, 8) << "as the error advises";
}

TEST(RunTest, TheMeanOfTheLastIsTriedAndGoesOnToTheSameBits) {
  struct Heard final : Listener {
    void evaluated(const Progress&, const Evaluation& e, bool) override { averaged = e.averaged; }
    int64_t averaged = -1;
  } heard;
  const Files files;
  Parallel parallel(1);
  RunOptions o = files.options();
  o.loop.evaluate_every = 2, o.loop.average = 3;
  run(o, files.out("whole"), heard, parallel);
  EXPECT_EQ(heard.averaged, 3);
  const auto snapshots = fs::directory_iterator(files.out("whole/snapshots"));
  EXPECT_EQ(std::distance(begin(snapshots), end(snapshots)), 3);
  StopAfter stopping(5);
  run(o, files.out("stopped"), stopping, parallel);
  resume(files.out("stopped"), heard, parallel);
  for (const char* name : {"/checkpoint.safetensors", "/model.safetensors"}) {
    EXPECT_TRUE(read(files.out("whole") + name) == read(files.out("stopped") + name)) << name;
  }
}

TEST(RunTest, TheBestCanBeTheBestInBleu) {
  struct Heard final : Listener {
    void evaluated(const Progress&, const Evaluation& e, bool best) override {
      EXPECT_GE(e.bleu, 0);
      EXPECT_EQ(best, e.bleu > highest);
      highest = std::max(highest, e.bleu);
    }
    double highest = -1;
  } heard;
  const Files files;
  Parallel parallel(1);
  RunOptions o = files.options();
  o.loop.stop_on = StopOn::bleu;
  EXPECT_EQ(run(o, files.out("m"), heard, parallel).best.bleu, heard.highest);
  const Curves curves = read_curves(files.out("m/log.jsonl"));
  EXPECT_EQ(curves.dev_bleu.size(), curves.dev_loss.size());
  EXPECT_NE(read(files.out("m/curve.html")).find("Highest BLEU: "), std::string::npos);
  o.preset = "lm-small";
  EXPECT_EQ(error_of([&] { run(o, files.out("lm"), heard, parallel); }),
            "train: stop_on is bleu, expected loss for a language model");
}

// A model that has learnt to say 'unknown' of everything has learnt nothing.
TEST(RunTest, AnUnknownTokenIsNeverCorrect) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.tokenizer.vocabulary = 5, o.train.steps = 60, o.loop.evaluate_every = 20, o.train.rate = 3e-3;
  const RunResult result = run(o, files.out("m"), listener, parallel);
  EXPECT_LT(result.best.loss, 1) << "it says 'unknown' by now";
  EXPECT_GT(result.unknown.target.rate(), 0.8);
  const int64_t known = result.best.tokens - result.unknown.target.unknown;
  EXPECT_LE(std::lround(result.best.accuracy * static_cast<double>(result.best.tokens)), known);
}

TEST(RunTest, TheCurveIsAPageByItself) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.train.steps = 21;
  run(o, files.out("a<b"), listener, parallel);
  const Curves curves = read_curves(files.out("a<b/log.jsonl"));
  EXPECT_EQ(curves.loss.size(), 2u) << "steps 10 and 20";
  EXPECT_EQ(curves.rate.size(), 2u);
  EXPECT_EQ(curves.dev_loss.size(), 7u);
  const std::string page = read(files.out("a<b/curve.html"));
  EXPECT_EQ(page, curve_page(files.out("a<b") + ": transformer-tiny", curves));
  EXPECT_NE(page.find("a\\u003cb: transformer-tiny"), page.npos);
  EXPECT_NE(page.find("Lowest dev loss"), page.npos);
  EXPECT_EQ(page.find("BLEU"), page.npos) << "it was not measured";
  EXPECT_NE(page.find("[10," + shortest(curves.loss[0].value) + "]"), page.npos);
  EXPECT_NE(curve_page("empty", {}).find("Learning rate"), std::string::npos) << "nothing to draw is no error";
}

TEST(RunTest, ALanguageModelReadsOneColumn) {
  const Files files;
  std::ofstream(files.out("one.txt")) << "a b c\na c b\nb a c\n";
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.preset = "lm-small", o.data = o.dev = files.out("one.txt"), o.train.steps = 2;
  run(o, files.out("m"), listener, parallel);
  EXPECT_EQ(folder::open_model(files.out("m"))->options().as<models::TransformerOptions>().kind,
            models::TransformerKind::decoder);
}

TEST(RunTest, AFinishedRunStaysAsItIs) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.loop.average = 2;
  run(o, files.out("m"), listener, parallel);
  const std::string log = read(files.out("m/log.jsonl")), checkpoint = read(files.out("m/checkpoint.safetensors"));
  EXPECT_EQ(resume(files.out("m"), listener, parallel).steps, 8);
  EXPECT_EQ(read(files.out("m/log.jsonl")), log);
  EXPECT_TRUE(read(files.out("m/checkpoint.safetensors")) == checkpoint);
}

TEST(RunTest, GoesOnWithNewOptionsThatFitAndWithNoOther) {
  struct Heard final : Listener {
    void told(const std::string& message) override { text += message + "\n"; }
    std::string text;
  } heard;
  const Files files;
  Parallel parallel(1);
  const std::string folder = files.out("m");
  run(files.options(), folder, heard, parallel);
  const auto error = [&](auto&& change) {
    RunOptions o = options_of(folder);
    change(o);
    return error_of([&] { resume(folder, o, heard, parallel); });
  };
  const std::string checkpoint = read(folder + "/checkpoint.safetensors"), log = read(folder + "/log.jsonl");
  EXPECT_EQ(error([](RunOptions& o) { o.batch_tokens = 128; }),
            "train: batch_tokens is 128, expected 64, as the run began with: it cannot change when a run goes on");
  EXPECT_EQ(error([](RunOptions& o) { o.tokenizer.kind = text::TokenizerKind::bpe; }),
            "train: kind is bpe, expected words, as the run began with: it cannot change when a run goes on");
  EXPECT_EQ(error([](RunOptions& o) { o.train.rate = -1; }), "train: train.rate is -1, expected a number > 0");
  testing::write_tsv(files.out("other.tsv"), testing::letters(60, 3));
  EXPECT_NE(error([&](RunOptions& o) { o.data = files.out("other.tsv"); }).find("as the run began with"),
            std::string::npos);
  EXPECT_NE(error([&](RunOptions& o) { o.dev = files.out("other.tsv"); }).find("train: dev has 60 pairs, "),
            std::string::npos);
  EXPECT_TRUE(read(folder + "/checkpoint.safetensors") == checkpoint && read(folder + "/log.jsonl") == log);

  fs::rename(files.out("train.tsv"), files.out("moved.tsv"));
  RunOptions o = options_of(folder);
  o.data = files.out("moved.tsv"), o.train.steps = 10, o.train.rate = 5e-4, o.loop.patience = 3;
  heard.text.clear();
  EXPECT_EQ(resume(folder, o, heard, parallel).steps, 10) << "the same sentences from another place";
  EXPECT_NE(heard.text.find("rate was 0.001, and is 5e-04 from here on\n"), std::string::npos) << heard.text;
  EXPECT_NE(heard.text.find("patience was 0, and is 3 from here on\n"), std::string::npos) << heard.text;
  EXPECT_EQ(options_of(folder).train.rate, 5e-4) << "for the next time, too";
}

TEST(RunTest, DataIsKnownByItsSentences) {
  text::Corpus corpus = testing::letters(60, 1);
  DataId known = id_of(corpus);
  EXPECT_EQ(known.to_string().find("60 pairs, "), 0u);
  std::swap(corpus.pairs[0], corpus.pairs[1]);
  EXPECT_NE(id_of(corpus), known) << "another order";
  corpus = {{{"a b", "c", 1}}, {}};
  known = id_of(corpus);
  corpus.pairs[0] = {"a", "b c", 1};
  EXPECT_NE(id_of(corpus), known);
  EXPECT_EQ(known.to_string().find("1 pair, 6 bytes, hash "), 0u) << known.to_string();
}

TEST(RunTest, NewStepsAreRemembered) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  run(files.options(), files.out("m"), listener, parallel);
  StopAfter stopping(1);
  resume(files.out("m"), with_steps(files.out("m"), 12), stopping, parallel);
  EXPECT_EQ(resume(files.out("m"), listener, parallel).steps, 12);
}

TEST(RunTest, SaysWhatIsWrong) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  const auto error = [&](auto&& change, const std::string& folder) {
    RunOptions o = files.options();
    change(o);
    return error_of([&] { run(o, folder, listener, parallel); });
  };
  const auto nothing = [](RunOptions&) {};
  EXPECT_EQ(error([](RunOptions& o) { o.data = ""; }, files.out("a")),
            "train: data is missing, expected a TSV file of pairs, or source and target");
  EXPECT_EQ(error([](RunOptions& o) { o.preset = "transformer-tiyn"; }, files.out("a")),
            "preset is 'transformer-tiyn', expected " + models::preset_names() + ": did you mean 'transformer-tiny'?");
  EXPECT_EQ(error(nothing, files.out("train.tsv")),
            "cannot make folder '" + files.out("train.tsv") + "': a file has that name");
  const std::string inside = files.out("train.tsv/m");
  EXPECT_EQ(error(nothing, inside),
            "cannot make folder '" + inside + "': " + files.out("train.tsv") + ": is no folder");
  std::ofstream(files.out("long.tsv")) << "a b c d\tA B C D\n";
  EXPECT_NE(error([&](RunOptions& o) { o.dev = files.out("long.tsv"), o.max_length = 4; }, files.out("a/b/c"))
                .find("none of 1 pair"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(files.out("a"))) << "nothing is left behind";
  EXPECT_EQ(error_of([&] { resume(files.out("nowhere"), listener, parallel); }),
            "folder '" + files.out("nowhere") + "' holds no checkpoint, expected one of a training run");
}

// What a run wrote into train.json before its options were cut by ideas.
TEST(RunTest, OptionsOfEarlierRunsAreRead) {
  constexpr const char* kEarlier = R"({
  "data": "corpus/train.tsv",
  "dev": "corpus/dev.tsv",
  "preset": "rnn-attention",
  "source_column": 1,
  "target_column": 2,
  "tokenizer": {
    "kind": "words",
    "vocabulary": 8000,
    "lowercase": false
  },
  "batch_tokens": 512,
  "max_length": 128,
  "train": {
    "steps": 60,
    "rate": 0.003,
    "warmup": 10,
    "schedule": "inverse-sqrt",
    "accumulate": 1,
    "smoothing": 0.1,
    "clip": 1.0,
    "weight_decay": 0.01,
    "beta2": 0.98
  },
  "dropout": -1.0,
  "minutes": 0.0,
  "evaluate_every": 30,
  "stop_on": "loss",
  "patience": 0,
  "average": 2,
  "seed": 1
})";
  RunOptions o;
  io::from_json(kEarlier, o, "train.json");
  EXPECT_EQ(o.preset, "rnn-attention");
  EXPECT_EQ(o.train.steps, 60);
  EXPECT_EQ(o.optimizer.weight_decay, 0.01);
  EXPECT_EQ(o.optimizer.beta2, 0.98);
  EXPECT_EQ(o.loop.average, 2);
  EXPECT_EQ(o.loop.evaluate_every, 30);
  EXPECT_FALSE(o.separate_vocabularies);
}

// The data may come through a pipe, though it is gone through twice.
TEST(RunTest, ReadsAPipe) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  run(o, files.out("file"), listener, parallel);
  o.data = files.out("pipe");
  ASSERT_EQ(::mkfifo(o.data.c_str(), 0600), 0);
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    std::ofstream(files.out("pipe")) << read(files.out("train.tsv"));
    ::_exit(0);
  }
  run(o, files.out("piped"), listener, parallel);
  ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
  EXPECT_TRUE(read(files.out("piped/model.safetensors")) == read(files.out("file/model.safetensors")));
}

TEST(RunTest, SourceAndTargetMayHaveAVocabularyEach) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  for (const char* preset : {"transformer-tiny", "rnn-attention"}) {
    RunOptions o = files.options();
    o.preset = preset, o.separate_vocabularies = true, o.train.steps = 2;
    run(o, files.out(preset), listener, parallel);
    const data::TextModel opened = folder::open(files.out(preset));
    EXPECT_FALSE(opened.tokenizers().are_shared());
    EXPECT_EQ(opened.source().encode("A"), (std::vector<int32_t>{text::kUnknown})) << "a word of the target";
    EXPECT_EQ(opened.target().encode("a"), (std::vector<int32_t>{text::kUnknown}));
    EXPECT_EQ(resume(files.out(preset), with_steps(files.out(preset), 3), listener, parallel).steps, 3);
  }
  RunOptions o = files.options();
  o.preset = "lm-small", o.separate_vocabularies = true;
  EXPECT_EQ(error_of([&] { run(o, files.out("lm"), listener, parallel); }),
            "train: separate_vocabularies is on, expected a model that translates, not a language model");
}

// A run that saves all the time, killed at random moments: the folder can be read and gone on with each time.
TEST(RunTest, AKillAtAnyMomentLeavesAReadableFolder) {
  const Files files;
  const std::string folder = files.out("m"), checkpoint = folder + "/checkpoint.safetensors";
  RunOptions o = files.options();
  o.loop.evaluate_every = 1, o.train.steps = 1'000'000, o.loop.average = 2;
  Rng rng(seeded(17));
  int64_t last = 0;
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Parallel parallel(1);
      Listener listener;
      try {
        fs::exists(checkpoint) ? resume(folder, listener, parallel) : run(o, folder, listener, parallel);
      } catch (...) {
      }
      ::_exit(1);  // a run of a million steps does not end by itself
    }
    // However busy the machine is, the first run comes to a save: a minute is enough.
    for (int wait = 0; round == 0 && wait < 60'000 && !fs::exists(checkpoint); ++wait) ::usleep(1000);
    ::usleep(static_cast<useconds_t>(20'000 + rng.below(300'000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the run ended by itself in round " << round;
    ASSERT_TRUE(fs::exists(checkpoint)) << round;
    folder::open_model(folder);
    text::load_tokenizer(folder + "/tokenizer");
    Parallel parallel(1);
    StopAfter one(1);
    const RunResult result = resume(folder, one, parallel);
    EXPECT_GT(result.steps, last) << "round " << round;
    last = result.steps;
  }
  EXPECT_GT(last, 0) << "no round came as far as a save";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path() << " was left behind";
  }
}

}  // namespace
}  // namespace heed::train
