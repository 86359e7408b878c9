// SPDX-License-Identifier: Apache-2.0
#include "cli/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "cli/elapsed.h"
#include "cli/flags.h"
#include "cli/interrupts.h"
#include "cli/model_flags.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "heed/base/count.h"
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
evaluated models, and keeps it if it is better than any one. --minutes does as many steps as fit: they are estimated once,
from the first ones, and the schedule follows. Ctrl-C saves and stops (exit code 130; a second one ends at once), as do
SIGTERM, SIGHUP and a closed pipe; --resume DIR goes on to the same bits as a run that was never stopped, and takes a new
rate, schedule, number of steps and the like, but no other data or model. A language model reads one column; a tagger's
target is a tag for each word of the source, with spaces between. On several machines, mpirun -n 4 heed train ... shares
the batches of each step (--accumulate) between ranks, with the same result on any number of them. Example:

  heed corpus --pairs 40000 --seed 1 --split corpus
  heed train --data corpus/train.tsv --dev corpus/dev.tsv --preset transformer-tiny --out model --minutes 4)";

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                       : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Where it was measured.
std::string bleu_text(const char* before, const train::Evaluation& e) {
  return e.bleu >= 0 ? fmt::format("{}BLEU {:.2f}", before, e.bleu) : "";
}

// A bar on a terminal, a line now and then elsewhere, or JSON lines. Never throws once there is something to save: what
// cannot be written to ends the run, and is an error after it was saved.
class Reporter final : public train::Listener {
 public:
  Reporter(bool json, Interrupts& interrupts)
      : json_(json), terminal_(!json && isatty(STDERR_FILENO) != 0), interrupts_(interrupts) {}
  ~Reporter() override { clear_bar(); }

  void told(const std::string& message) override {
    if (!json_) print_line(message);
  }

  void working(const std::string& what) override {
    elapsed_.reset();
    if (!json_) elapsed_.emplace(what, terminal_);
  }

  void began() override {
    elapsed_.reset();
    interrupts_.can_save();
  }

  void stepped(const train::Progress& p) override {
    loss_ = loss_ == 0 ? p.step.loss : 0.95 * loss_ + 0.05 * p.step.loss;
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - shown_).count() < (terminal_ ? 0.2 : 10)) return;
    shown_ = now;
    const std::string report = fmt::format("step {}  loss {:.3f}  {:.0f} tokens/s  {} left", p.step.step, loss_,
                                           p.tokens_per_second, clock_text(p.seconds_left));
    if (json_) {
      print_json(
          fmt::format("{{\"step\":{},\"loss\":{},\"rate\":{},\"tokens_per_second\":{:.0f},\"seconds_left\":{:.0f}}}",
                      p.step.step, p.step.loss, p.step.rate, p.tokens_per_second, p.seconds_left));
    } else if (terminal_) {
      show_bar(p.done, report);
    } else {
      print_line(report);
    }
  }

  void evaluated(const train::Progress& p, const train::Evaluation& e, bool best) override {
    if (json_) {
      print_json(fmt::format("{{\"step\":{},\"dev_loss\":{},\"dev_accuracy\":{},{}\"averaged\":{},\"best\":{}}}",
                             p.step.step, e.loss, e.accuracy,
                             e.bleu >= 0 ? fmt::format("\"dev_bleu\":{},", e.bleu) : "", e.averaged, best));
    } else {
      const std::string what =
          e.averaged > 0 ? fmt::format("mean of the last {}", e.averaged) : fmt::format("step {}", p.step.step);
      print_line(fmt::format("{}  dev loss {:.4f}  token accuracy {:.2f} %{}{}", what, e.loss, 100 * e.accuracy,
                             bleu_text("  ", e), best ? "  (best so far, saved)" : ""));
    }
  }

  const Cancel* cancel() override { return interrupts_.cancel(); }
  bool stop() override { return error_ != 0 || Listener::stop(); }

  void print_line(const std::string& text) {
    elapsed_.reset();
    clear_bar();
    put(stderr, text + "\n");
  }
  // Throws Error where a line of JSON could not be written.
  void check_output() const {
    if (error_ != 0) throw Error(std::string("standard output: cannot write: ") + std::strerror(error_));
  }

 private:
  void show_bar(double done, const std::string& report) {
    constexpr size_t kWidest = 24, kNarrowest = 6, kAround = 3;
    const size_t room = terminal_room(), taken = report.size() + kAround;
    const size_t width = std::min(kWidest, room > taken ? room - taken : 0);  // the numbers come first
    const auto filled = static_cast<size_t>(std::min(1.0, done) * static_cast<double>(width));
    const std::string bar =
        width < kNarrowest ? report : fmt::format("[{:#<{}}{:.<{}}] {}", "", filled, "", width - filled, report);
    put(stderr, "\r\x1b[K" + cut_to_terminal(bar));
    bar_ = true;
  }
  void clear_bar() {
    if (bar_) put(stderr, "\r\x1b[K");
    bar_ = false;
  }
  void print_json(const std::string& line) {
    const int error = put(stdout, line + "\n");
    if (error == 0 || error == EPIPE) return;
    error_ = error;
  }
  // Gives errno, or 0. A reader that is gone asks to stop; that progress cannot be shown for another reason is no harm.
  int put(std::FILE* to, const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0) return 0;
    const int error = errno;
    std::clearerr(to);
    if (error == EPIPE) interrupts_.request(SIGPIPE);
    return error;
  }

  const bool json_, terminal_;
  Interrupts& interrupts_;
  std::optional<Elapsed> elapsed_;
  bool bar_ = false;
  int error_ = 0;  // of standard output
  double loss_ = 0;
  std::chrono::steady_clock::time_point shown_{};
};

struct Command {
  train::RunOptions options;
  Flags flags;
  ModelFlags model;
  std::string out, resume;
  int threads = 0;
  bool json = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) { visit_fields(options, visitor); };
  }

  void run() {
    if (out.empty() == resume.empty()) {
      throw UsageError(out.empty() ? "heed: --out is missing, expected a folder for the model"
                                   : "heed: --out and --resume came, expected one of them");
    }
    if (!resume.empty()) options = train::options_of(resume);
    flags.apply(fields());
    model.apply(options, flags.given(), !resume.empty());
    Interrupts interrupts;
    on_ranks([&](dist::Communicator& communicator) { run_on(communicator, interrupts); });
    if (interrupts.signal() != 0) throw Interrupted{interrupts.signal()};
  }

 private:
  void run_on(dist::Communicator& communicator, Interrupts& interrupts) {
    Parallel parallel(threads);
    Reporter reporter(json, interrupts);
    const train::RunResult result = resume.empty() ? train::run(options, out, reporter, parallel, &communicator)
                                                   : train::resume(resume, options, reporter, parallel, &communicator);
    if (!json && communicator.rank() == 0) print_end(reporter, result);
    reporter.check_output();
  }
  void print_end(Reporter& reporter, const train::RunResult& result) const {
    const std::string folder = resume.empty() ? out : resume;
    const std::string best =
        std::isfinite(result.best.loss)
            ? fmt::format("dev loss {:.4f}, token accuracy {:.2f} %{} at step {}", result.best.loss,
                          100 * result.best.accuracy, bleu_text(", ", result.best), result.best_step)
            : "before the first look at the dev set";
    reporter.print_line(fmt::format("{} after {}, {}: {}", result.why, counted(result.steps, "step"),
                                    clock_text(result.seconds), best));
    if (result.unknown.source.unknown + result.unknown.target.unknown > 0) {
      reporter.print_line("dev set: " + describe(result.unknown));
    }
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
  command->model.add(*app);
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
