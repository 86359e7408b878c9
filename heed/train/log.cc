// SPDX-License-Identifier: Apache-2.0
#include "heed/train/log.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/train/report.h"

namespace heed::train {
namespace {

constexpr int64_t kEvery = 10;  // steps

// NaN and infinity are no JSON.
std::string number(double x) { return std::isfinite(x) ? shortest(x) : "null"; }

// A number of a line that this file wrote; nothing where it has none, as a line that was cut short.
std::optional<double> number_in(const std::string& line, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const size_t at = line.find(key);
  if (at == std::string::npos || line.back() != '}') return std::nullopt;
  const char* begin = line.c_str() + at + key.size();
  char* end = nullptr;
  const double value = std::strtod(begin, &end);
  return end == begin ? std::nullopt : std::optional(value);
}

}  // namespace

Log::Log(std::string path) : path_(std::move(path)) { open(); }

void Log::open() {
  file_.reset(std::fopen(path_.c_str(), "a"));
  if (!file_) throw Error(path_ + ": cannot write: " + std::strerror(errno));
}

void Log::line(const std::string& text) {
  if (std::fputs((text + "\n").c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) {
    throw Error(path_ + ": cannot write: " + std::strerror(errno));
  }
}

void Log::step(const Progress& p) {
  if (p.step.step % kEvery != 0) return;
  line("{\"step\":" + std::to_string(p.step.step) + ",\"loss\":" + number(p.step.loss) +
       ",\"norm\":" + number(p.step.norm) + ",\"rate\":" + number(p.step.rate) +
       ",\"tokens_per_second\":" + number(p.tokens_per_second) + ",\"seconds\":" + number(p.seconds) + "}");
}

void Log::evaluation(const Progress& p, const Evaluation& e, bool best) {
  line("{\"step\":" + std::to_string(p.step.step) + ",\"dev_loss\":" + number(e.loss) +
       ",\"dev_accuracy\":" + number(e.accuracy) + (e.bleu >= 0 ? ",\"dev_bleu\":" + number(e.bleu) : "") +
       (e.averaged > 0 ? ",\"averaged\":" + std::to_string(e.averaged) : "") +
       ",\"best\":" + (best ? "true" : "false") + "}");
}

void Log::cut_after(int64_t step) {
  std::ifstream from(path_);
  std::ostringstream kept;
  for (std::string text; std::getline(from, text);) {
    const std::optional<double> at = number_in(text, "step");
    if (at && *at <= static_cast<double>(step)) kept << text << '\n';
  }
  const std::string text = kept.str();
  write_file_atomically(path_, std::as_bytes(std::span(text)));
  open();
}

Curves read_curves(const std::string& path) {
  Curves curves;
  std::ifstream from(path);
  for (std::string line; std::getline(from, line);) {
    if (line.empty() || number_in(line, "averaged")) continue;
    const std::optional<double> step = number_in(line, "step");
    const auto add = [&](const char* name, std::vector<Point>& to) {
      const std::optional<double> value = number_in(line, name);
      if (step && value) to.push_back({static_cast<int64_t>(*step), *value});
    };
    add("loss", curves.loss);
    add("rate", curves.rate);
    add("dev_loss", curves.dev_loss);
    add("dev_bleu", curves.dev_bleu);
  }
  return curves;
}

}  // namespace heed::train
