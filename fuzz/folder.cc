// SPDX-License-Identifier: Apache-2.0
// Model folders of every family, corrupted at random, opened and used: each gives a result or an Error of one line, in
// ten seconds and in at most twice the memory that the sound folder takes. Each is opened by a process of its own, so
// that one that crashes is counted and the next is tried.
//
//   fuzz_folder [--runs N] [--seed S]     N corrupted folders
//   fuzz_folder --seed S --only RUN       one of them again, in this process
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "fuzz/corrupt.h"
#include "heed/base/export.h"
#include "heed/data/shortlist.h"
#include "heed/decode/embed.h"
#include "heed/decode/generate.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/folder/model_folder.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

// Sanitizers ask for these; by themselves they would end without a signal. A request for more memory than there is
// fails, as it does without them.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers chose these names
extern "C" HEED_API const char* __asan_default_options() {
  return "abort_on_error=1:allocator_may_return_null=1:quarantine_size_mb=1";
}
extern "C" HEED_API const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace heed::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSeconds = 10;
enum Exit : int { kUsed = 0, kRefused = 1, kBroken = 2 };

std::shared_ptr<const text::Tokenizer> letters(const std::string& words) {
  return text::train_tokenizer(std::vector<std::string>{words}, {});
}

struct Sound {
  std::string name;
  models::ModelOptions options;
  bool tags = false, int8 = false;
};

std::vector<Sound> families() {
  using namespace models;  // NOLINT(google-build-using-namespace)
  constexpr int64_t V = 9, E = 8, kTags = 7;
  TransformerOptions transformer{.vocabulary = V, .width = E, .heads = 2, .inner = 12};
  transformer.encoder_layers = transformer.decoder_layers = 1, transformer.max_length = 20;
  TransformerOptions lm = transformer, tagger = transformer;
  lm.kind = TransformerKind::decoder, lm.positions = Positions::rotary;
  tagger.kind = TransformerKind::encoder, tagger.positions = Positions::learned, tagger.outputs = kTags;
  RnnSeq2SeqOptions rnn{.vocabulary = V, .width = E, .query = Query::none, .readout = Readout::state};
  const RnnSeq2SeqOptions attention{.vocabulary = V, .cell = nn::Cell::lstm, .width = E};
  RnnSeq2SeqOptions both{.vocabulary = V, .encoder = Encoder::self_attentive, .width = E};
  both.first_state = FirstState::mean;
  const SelfAttentiveOptions self_attentive{.vocabulary = V, .outputs = kTags, .layers = {.blocks = 2}, .width = E};
  return {{"transformer", transformer},
          {"lm", lm},
          {"tagger", tagger, true},
          {"rnn", rnn},
          {"rnn-attention", attention},
          {"rnn-self-attention", both},
          {"self-attentive", self_attentive, true},
          {"transformer-int8", transformer, false, true},
          {"rnn-attention-int8", attention, false, true}};
}

void save_f32(const Sound& sound, const std::string& folder) {
  const auto source = letters("a b c d e");
  const auto model = models::make_model(sound.options, 1);
  folder::save(folder, *model,
               sound.tags ? data::Tokenizers{source, letters("X Y Z")} : data::Tokenizers::shared(source));
  if (model->task() != models::Task::translate) return;
  data::IdPairs pairs(source->size(), source->size());
  pairs.add(source->encode("a b c"), source->encode("c d"));
  folder::save_shortlist(folder, data::Shortlist::learn(pairs, true, source->special()));
}

void save(const Sound& sound, const std::string& folder) {
  if (!sound.int8) return save_f32(sound, folder);
  save_f32(sound, folder + ".f32");
  folder::save_int8(folder + ".f32", folder);
  fs::remove_all(folder + ".f32");
}

// Translations with the folder's shortlist, where it still has one.
void translate(const decode::Engine& engine, const std::string& folder, const decode::SearchOptions& search) {
  const std::vector<std::vector<int32_t>> ids{{4, 5, 6}, {4}};
  const decode::Translator translator(engine);
  decode::TranslateOptions options{.search = search};
  const bool texts = engine.text_model().has_tokenizers();
  if (texts) translator.translate("a b e", options);
  translator.translate_ids(ids, options);
  if (!folder::has_shortlist(folder)) return;
  options.shortlist = std::make_shared<data::Shortlist>(folder::open_shortlist(folder, engine.text_model()));
  translator.translate_ids(ids, options);
}

// One short piece of what the model is for.
void use(const std::string& folder) {
  const decode::Engine engine(folder, 1);
  const std::vector<std::vector<int32_t>> ids{{4, 5, 6}, {4}};
  const bool texts = engine.text_model().has_tokenizers();
  decode::SearchOptions search;
  search.max_length = 6, search.beam = 2;
  switch (engine.text_model().task()) {
    case models::Task::translate:
      translate(engine, folder, search);
      break;
    case models::Task::language:
      if (texts) decode::Generator(engine).generate("a b", {.search = search});
      decode::Generator(engine).generate_ids(ids, {.search = search});
      break;
    case models::Task::tag:
      if (texts) decode::Tagger(engine).tag("a b e");
      decode::Tagger(engine).tag_ids(ids);
      break;
    case models::Task::classify:
    case models::Task::encode:
      break;
  }
  decode::Embedder(engine).embed_ids(ids);
}

// What a command would show: one line. Another exception than Error has no business here: it aborts.
Exit try_to_use(const std::string& folder, bool aloud) noexcept {
  try {
    use(folder);
    return kUsed;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (aloud) std::printf("%s\n", error.what());
    const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    return printable && text.size() < 4000 ? kRefused : kBroken;
  }
}

struct Outcome {
  int status = 0;
  int64_t kilobytes = 0;  // the most that were in memory
  bool exited(Exit code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

Outcome in_a_process(const std::string& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    ::_exit(try_to_use(folder, false));  // another exception, or a crash, ends by a signal
  }
  Outcome outcome;
  struct rusage usage {};
  if (child < 0 || ::wait4(child, &outcome.status, 0, &usage) != child) throw Error("cannot start a process");
  outcome.kilobytes = usage.ru_maxrss;
  return outcome;
}

struct Arguments {
  uint64_t runs = 2000, seed = 1;
  std::optional<uint64_t> only{};
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    uint64_t value = 0;
    const std::string& text = words[i + 1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) throw Error("'" + text + "' is no whole number");
    if (words[i] == "--runs")
      arguments.runs = value;
    else if (words[i] == "--seed")
      arguments.seed = value;
    else if (words[i] == "--only")
      arguments.only = value;
    else
      throw Error("unknown flag " + words[i]);
  }
  if (words.size() % 2 != 0) throw Error("expected [--runs N] [--seed S] [--only RUN]");
  return arguments;
}

class Session {
 public:
  explicit Session(uint64_t seed) : seed_(seed) {
    std::string path = fs::temp_directory_path() / "heed.fuzz.XXXXXX";
    if (!::mkdtemp(path.data())) throw Error(path + ": cannot create");
    root_ = path;
    for (const Sound& sound : families()) {
      save(sound, root_ + "/sound");
      names_.push_back(sound.name);
      files_.push_back(read_files(root_ + "/sound"));
      const Outcome outcome = in_a_process(root_ + "/sound");
      if (!outcome.exited(kUsed)) throw Error(sound.name + ": the sound folder cannot be used");
      kilobytes_.push_back(outcome.kilobytes);
      fs::remove_all(root_ + "/sound");
    }
  }
  ~Session() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  // The folder of a run; which family it was of, and what has happened to it.
  std::string make(uint64_t run) {
    Rng rng(seed_, run);
    family_ = rng.below(files_.size());
    FolderFiles files = files_[family_];
    how_ = corrupt(files, files_, rng);
    write_files(files, root_ + "/corrupt");
    return root_ + "/corrupt";
  }

  bool run(uint64_t number) {
    const Outcome outcome = in_a_process(make(number));
    const double share = static_cast<double>(outcome.kilobytes) / static_cast<double>(kilobytes_[family_]);
    most_ = std::max(most_, share);
    used_ += outcome.exited(kUsed), refused_ += outcome.exited(kRefused);
    const bool ended = outcome.exited(kUsed) || outcome.exited(kRefused);
    if (ended && share <= 2) return true;
    const std::string why = !ended && WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGALRM ? "no answer"
                            : !ended ? "a crash, or an error that is not one line"
                                     : "too much memory";
    std::fprintf(stderr, "run %llu (%s; %s): %s, %.2f of the memory of the sound folder\n",
                 static_cast<unsigned long long>(number), names_[family_].c_str(), how_.c_str(), why.c_str(), share);
    return false;
  }

  int again(uint64_t number) {
    const std::string folder = make(number);
    std::printf("%s: %s\n", names_[family_].c_str(), how_.c_str());
    return try_to_use(folder, true) == kBroken;
  }

  void report(uint64_t runs, uint64_t failures) const {
    std::printf(
        "%llu corrupted folders of %zu families: %llu refused, %llu used, %llu failures; at most %.2f of the "
        "memory of the sound folder (%lld MB)\n",
        static_cast<unsigned long long>(runs), names_.size(), static_cast<unsigned long long>(refused_),
        static_cast<unsigned long long>(used_), static_cast<unsigned long long>(failures), most_,
        static_cast<long long>(*std::ranges::min_element(kilobytes_) / 1024));
  }

 private:
  const uint64_t seed_;
  std::string root_;
  std::vector<std::string> names_;
  std::vector<FolderFiles> files_;  // of each sound folder
  std::vector<int64_t> kilobytes_;
  size_t family_ = 0;
  std::string how_;
  uint64_t used_ = 0, refused_ = 0;
  double most_ = 0;
};

int drive(const Arguments& arguments) {
  Session session(arguments.seed);
  if (arguments.only) return session.again(*arguments.only);
  uint64_t failures = 0;
  for (uint64_t i = 0; i < arguments.runs; ++i) failures += !session.run(i);
  session.report(arguments.runs, failures);
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace heed::fuzz

int main(int argc, char** argv) {
  try {
    return heed::fuzz::drive(heed::fuzz::parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
