#include "cli/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/flags.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/models/presets.h"
#include "heed/train/run.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Trains a model on pairs of sentences (TSV, UTF-8, a pair a line) and keeps it in a folder.

The folder holds the best model by dev loss (config.json, model.safetensors, tokenizer), a checkpoint to go on from,
log.jsonl, its picture curve.html, and a README.md. With --stop-on bleu the best is the one whose greedy translations of
the dev set are; --patience stops when nothing gets better; --average N tries, at the end, the mean of the last N
evaluated models, and keeps it if it is better than any one. Ctrl-C saves and stops; --resume DIR goes on to the same
bits as a run that was never stopped. A language model reads one column; a tagger's target is a tag for each word of the
source, with spaces between. Example:

  heed corpus --pairs 40000 --seed 1 --split corpus
  heed train --data corpus/train.tsv --dev corpus/dev.tsv --preset transformer-tiny --out model --minutes 4)";

volatile std::sig_atomic_t stop_asked = 0;
void ask_to_stop(int) { stop_asked = 1; }

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// A bar on a terminal, a line now and then elsewhere, or JSON lines.
class Reporter final : public train::Listener {
 public:
  explicit Reporter(bool json) : json_(json), terminal_(!json && isatty(STDERR_FILENO) != 0) {}

  void told(const std::string& message) override {
    if (!json_) print_line(message);
  }

  void stepped(const train::Progress& p) override {
    loss_ = loss_ == 0 ? p.step.loss : 0.95 * loss_ + 0.05 * p.step.loss;
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - shown_).count() < (terminal_ ? 0.2 : 10)) return;
    shown_ = now;
    if (json_) {
      print("{{\"step\":{},\"loss\":{},\"rate\":{},\"tokens_per_second\":{:.0f},\"seconds_left\":{:.0f}}}\n",
            p.step.step, p.step.loss, p.step.rate, p.tokens_per_second, p.seconds_left);
      flush_output();
    } else if (terminal_) {
      constexpr int kWidth = 24;
      const int filled = static_cast<int>(std::min(1.0, p.done) * kWidth);
      fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] step {}  loss {:.3f}  {:.0f} tokens/s  {} left", "", filled, "",
                 kWidth - filled, p.step.step, loss_, p.tokens_per_second, clock_text(p.seconds_left));
      std::fflush(stderr);
    } else {
      print_line(fmt::format("step {}  loss {:.3f}  {:.0f} tokens/s  {} left", p.step.step, loss_, p.tokens_per_second,
                             clock_text(p.seconds_left)));
    }
  }

  void evaluated(const train::Progress& p, const train::Evaluation& e, bool best) override {
    if (json_) {
      print("{{\"step\":{},\"dev_loss\":{},\"dev_accuracy\":{},{}\"averaged\":{},\"best\":{}}}\n", p.step.step, e.loss,
            e.accuracy, e.bleu >= 0 ? fmt::format("\"dev_bleu\":{},", e.bleu) : "", e.averaged, best);
      flush_output();
    } else {
      const std::string what =
          e.averaged > 0 ? fmt::format("mean of the last {}", e.averaged) : fmt::format("step {}", p.step.step);
      print_line(fmt::format("{}  dev loss {:.4f}  token accuracy {:.2f} %{}{}", what, e.loss, 100 * e.accuracy,
                             e.bleu >= 0 ? fmt::format("  BLEU {:.2f}", e.bleu) : "",
                             best ? "  (best so far, saved)" : ""));
    }
  }

  bool stop() override { return stop_asked != 0; }

  void print_line(const std::string& text) const {
    fmt::print(stderr, "{}{}\n", terminal_ ? "\r\x1b[K" : "", text);
    std::fflush(stderr);
  }

 private:
  const bool json_, terminal_;
  double loss_ = 0;
  std::chrono::steady_clock::time_point shown_{};
};

struct Command {
  train::RunOptions options;
  Flags flags;
  std::string out, resume;
  int threads = 0;
  bool json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    flags.apply(fields());
    if (out.empty() == resume.empty()) {
      throw UsageError(out.empty() ? "heed: --out is missing, expected a folder for the model"
                                   : "heed: --out and --resume came, expected one of them");
    }
    int64_t steps = 0;  // of --resume; 0: as they were
    for (const std::string& flag : flags.given()) {
      if (flag == "--steps") steps = options.train.steps;
      if (resume.empty() || flag == "--steps" || flag == "--minutes") continue;
      throw UsageError("heed: " + flag + " came with --resume, expected --steps or --minutes: the rest is as it was");
    }
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    Parallel parallel(threads);
    Reporter reporter(json);
    const train::RunResult result = resume.empty()
                                        ? train::run(options, out, reporter, parallel)
                                        : train::resume(resume, steps, options.loop.minutes, reporter, parallel);
    if (json) return;
    const std::string folder = resume.empty() ? out : resume;
    const std::string best = std::isfinite(result.best.loss)
                                 ? fmt::format("dev loss {:.4f}, token accuracy {:.2f} % at step {}", result.best.loss,
                                               100 * result.best.accuracy, result.best_step)
                                 : "before the first look at the dev set";
    reporter.print_line(
        fmt::format("{} after {} steps, {}: {}", result.why, result.steps, clock_text(result.seconds), best));
    reporter.print_line("the model is in " + folder);
    if (result.why == "stopped") reporter.print_line("heed train --resume " + folder + " goes on");
  }
};

std::string help_with_presets() {
  std::string text = std::string(kHelp) + "\n\nPresets:\n";
  for (const models::Preset& preset : models::presets()) text += fmt::format("  {:<18} {}\n", preset.name, preset.what);
  return text;
}

}  // namespace

void add_train(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("train", help_with_presets());
  auto command = std::make_shared<Command>();
  app->add_option("--out", command->out, "Folder for the model; made if it is missing")->type_name("DIR");
  app->add_option("--resume", command->resume, "Go on with the run in this folder")->type_name("DIR");
  add_threads(*app, command->threads);
  app->add_flag("--json", command->json, "Report in JSON, a line each, on standard output");
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
