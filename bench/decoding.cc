// SPDX-License-Identifier: Apache-2.0
#include "bench/decoding.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "heed/base/error.h"
#include "heed/base/rng.h"
#include "heed/folder/model_folder.h"
#include "heed/kernels/attention/targets.h"
#include "heed/models/presets.h"
#include "heed/text/tokenizer.h"

namespace heed::bench {
namespace {

constexpr uint64_t kSeed = 1;

std::string date() { return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))); }

Subject random_subject(const SubjectOptions& options, int threads) {
  const models::Preset& preset = models::preset_named(options.preset);
  auto parallel = std::make_shared<Parallel>(threads);
  auto model = models::make_model(models::model_options(preset, {.source = options.vocabulary}), kSeed);
  if (!options.save.empty()) folder::save(options.save, *model);
  model->pack(DType::f32, *parallel);
  std::string name = fmt::format("{} with random parameters, {} tokens", options.preset, options.vocabulary);
  return {decode::Engine(data::TextModel(std::move(model), {}, options.preset), parallel), std::move(name), {}};
}

}  // namespace

Subject open_subject(const SubjectOptions& options, models::Task task, int threads) {
  std::optional<Subject> subject;
  if (!options.model.empty() && !options.save.empty()) {
    throw Error("--save came with --model, expected it for random parameters alone");
  }
  if (options.model.empty()) {
    subject = random_subject(options, threads);
  } else {
    const double start = now(Clock::wall);
    decode::Engine engine(options.model, threads);
    subject = Subject{std::move(engine), options.model, 1e3 * (now(Clock::wall) - start)};
  }
  subject->engine.text_model().expect(task);
  return *std::move(subject);
}

Ids random_ids(int64_t count, int64_t shortest, int64_t longest, int64_t vocabulary) {
  constexpr int32_t kFirst = text::kUnknown + 1;
  if (vocabulary <= kFirst) {
    throw Error(fmt::format("the vocabulary has {} tokens, expected {} or more: the first {} are special", vocabulary,
                            kFirst + 1, kFirst));
  }
  Rng rng(kSeed);
  Ids all(static_cast<size_t>(count));
  for (std::vector<int32_t>& ids : all) {
    ids.resize(static_cast<size_t>(shortest) + rng.below(static_cast<uint64_t>(longest - shortest + 1)));
    for (int32_t& id : ids) id = kFirst + static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocabulary - kFirst)));
  }
  return all;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // the system counts in KiB
}

nlohmann::ordered_json machine_facts(int threads) {
  return {{"cpu", cpu_model()}, {"simd", kernels::simd_target()}, {"date", date()}, {"threads", threads}};
}

std::string machine_line(int threads) {
  return fmt::format("{}, {}, {} thread{}, {}", cpu_model(), kernels::simd_target(), threads, threads == 1 ? "" : "s",
                     date());
}

nlohmann::ordered_json facts_of(const Subject& subject) {
  nlohmann::ordered_json facts = machine_facts(subject.engine.parallel().threads());
  facts["model"] = subject.name;
  facts["open_ms"] = optional(subject.open_ms);
  return facts;
}

std::string line_of(const Subject& subject) {
  std::string line = machine_line(subject.engine.parallel().threads()) + "\n" + subject.name;
  if (subject.open_ms) line += fmt::format(", opened in {:.1f} ms", *subject.open_ms);
  return line;
}

void print_line(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace heed::bench
