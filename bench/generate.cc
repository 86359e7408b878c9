// SPDX-License-Identifier: Apache-2.0
#include "bench/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/measure.h"
#include "bench/report.h"
#include "heed/base/error.h"

namespace heed::bench {
namespace {

using Json = nlohmann::ordered_json;

// [batch, length], of random ids.
Tensor prompt_of(const decode::Engine& engine, int64_t batch, int64_t length) {
  const Ids rows = random_ids(batch, length, length, engine.model().vocabulary());
  Tensor prompt = Tensor::uninitialised({batch, length}, DType::i32);
  for (int64_t i = 0; i < batch; ++i) {
    std::copy_n(rows[static_cast<size_t>(i)].begin(), length, prompt.data<int32_t>() + i * length);
  }
  return prompt;
}

// The likeliest token after the last one of each row: logits [B,n,V] -> [B,1].
Tensor likeliest(const Tensor& logits) {
  const int64_t B = logits.shape(0), n = logits.shape(1), V = logits.shape(2);
  Tensor ids = Tensor::uninitialised({B, 1}, DType::i32);
  for (int64_t i = 0; i < B; ++i) {
    const float* row = logits.data<float>() + ((i + 1) * n - 1) * V;
    ids.data<int32_t>()[i] = static_cast<int32_t>(std::max_element(row, row + V) - row);
  }
  return ids;
}

struct Times {
  double prompt, steps;
};

Times run_once(const decode::Engine& engine, const Tensor& prompt, int64_t steps) {
  decode::InferencePass pass(engine, {});
  nn::State state = engine.model().begin(pass, {});
  Tensor next;
  Times times{};
  times.prompt = time(Clock::wall, [&] { next = likeliest(engine.model().step(pass, prompt, state).value()); });
  times.steps = time(Clock::wall, [&] {
    for (int64_t i = 0; i < steps; ++i) next = likeliest(engine.model().step(pass, next, state).value());
  });
  return times;
}

void check(const decode::Engine& engine, const GenerateBenchOptions& options) {
  if (options.lengths.empty()) throw Error("--length is empty, expected numbers such as 16,128");
  if (options.batches.empty()) throw Error("--batch is empty, expected numbers such as 1,8");
  const int64_t most = engine.model().max_length() - options.steps;
  for (const int64_t length : options.lengths) {
    if (length >= 1 && length <= most) continue;
    throw Error(fmt::format("--length has {}, expected 1 to {}: the model takes {} tokens, and {} are for --steps",
                            length, most, engine.model().max_length(), options.steps));
  }
  for (const int64_t batch : options.batches) {
    if (batch < 1 || batch > 1024) throw Error(fmt::format("--batch has {}, expected 1 to 1024", batch));
  }
}

Json to_json(const GenerateFigures& f) {
  return {{"batch", f.batch},
          {"length", f.length},
          {"steps", f.steps},
          {"prompt_seconds", rounded(f.prompt_seconds)},
          {"prompt_tokens_per_second", rounded(f.prompt_tokens_per_second())},
          {"steps_tokens_per_second", rounded(f.steps_tokens_per_second())},
          {"step_ms", rounded(f.step_ms())}};
}

}  // namespace

std::vector<GenerateFigures> measure_generate(const decode::Engine& engine, const GenerateBenchOptions& options) {
  check(engine, options);
  std::vector<GenerateFigures> rows;
  std::vector<Tensor> prompts;
  for (const int64_t batch : options.batches) {
    for (const int64_t length : options.lengths) {
      rows.push_back({.batch = batch, .length = length, .steps = options.steps});
      prompts.push_back(prompt_of(engine, batch, length));
    }
  }
  std::vector<std::vector<double>> prompt_seconds(rows.size()), steps_seconds(rows.size());
  for (int64_t round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const Times times = run_once(engine, prompts[i], options.steps);
      if (round == 0) continue;
      prompt_seconds[i].push_back(times.prompt);
      steps_seconds[i].push_back(times.steps);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].prompt_seconds = median(prompt_seconds[i]);
    rows[i].steps_seconds = median(steps_seconds[i]);
  }
  return rows;
}

void bench_generate(const GenerateBenchOptions& options) {
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const Subject subject = open_subject(options.subject, models::Task::language, options.threads);
  check(subject.engine, options);
  print_line(line_of(subject));
  print_line(fmt::format("{} steps, {} rounds", options.steps, options.rounds));
  print_line(fmt::format("{:>6} {:>7} {:>11} {:>16} {:>16} {:>9}", "batch", "length", "prompt ms", "prompt tokens/s",
                         "steps tokens/s", "step ms"));
  Json all = facts_of(subject);
  all["rounds"] = options.rounds;
  all["rows"] = Json::array();
  for (const GenerateFigures& f : measure_generate(subject.engine, options)) {
    print_line(fmt::format("{:>6} {:>7} {:>11.2f} {:>16.1f} {:>16.1f} {:>9.3f}", f.batch, f.length,
                           1e3 * f.prompt_seconds, f.prompt_tokens_per_second(), f.steps_tokens_per_second(),
                           f.step_ms()));
    all["rows"].push_back(to_json(f));
  }
  print_line(fmt::format("peak memory {:.1f} MiB", peak_megabytes()));
  all["peak_mib"] = rounded(peak_megabytes());
  if (file) file->commit(all.dump(2) + "\n");
}

}  // namespace heed::bench
