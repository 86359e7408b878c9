#include "heed/train/log.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/train/run.h"

namespace heed::train {
namespace {

constexpr int64_t kEvery = 10;  // steps

// NaN and infinity are no JSON.
std::string number(double x) { return std::isfinite(x) ? shortest(x) : "null"; }

// The step of a line; -1 where it says none, as a line that was cut short.
int64_t step_of(const std::string& line) {
  const std::string key = "\"step\":";
  const size_t at = line.find(key);
  if (at == std::string::npos || line.back() != '}') return -1;
  return std::strtoll(line.c_str() + at + key.size(), nullptr, 10);
}

}  // namespace

Log::Log(std::string path) : path_(std::move(path)) {
  file_ = std::fopen(path_.c_str(), "a");
  if (!file_) throw Error(path_ + ": cannot write: " + std::strerror(errno));
}

Log::~Log() { std::fclose(file_); }

void Log::line(const std::string& text) {
  if (std::fputs((text + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0) {
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
       ",\"dev_accuracy\":" + number(e.accuracy) + ",\"best\":" + (best ? "true" : "false") + "}");
}

void Log::cut_after(int64_t step) {
  std::ifstream from(path_);
  std::ostringstream kept;
  for (std::string text; std::getline(from, text);) {
    const int64_t at = text.empty() ? -1 : step_of(text);
    if (at >= 0 && at <= step) kept << text << '\n';
  }
  std::fclose(file_);
  const std::string text = kept.str();
  write_file_atomically(path_, std::as_bytes(std::span(text)));
  file_ = std::fopen(path_.c_str(), "a");
  if (!file_) throw Error(path_ + ": cannot write: " + std::strerror(errno));
}

}  // namespace heed::train
