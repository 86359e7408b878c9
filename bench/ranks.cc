// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/decoding.h"
#include "heed/models/presets.h"
#include "heed/train/trainer.h"

namespace heed::bench {
namespace {

using Clock = std::chrono::steady_clock;
using train::SumOrder;

constexpr int64_t kBucket = int64_t{1} << 18, kPart = 4096;  // parameters, as train::Trainer has them

double seconds_of(auto&& call) {
  const Clock::time_point begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class SameBatch final : public data::BatchSource {
 public:
  explicit SameBatch(const data::Batch& batch) : batch_(batch) {}
  int64_t size() const override { return kEndless; }
  data::Batch at(int64_t, int64_t) const override { return batch_; }

 private:
  const data::Batch& batch_;
};

// A way to add gradients up.
struct Way {
  const char* name;
  SumOrder order;
  bool overlap;
};

// Of the fastest step: others may work on the same machine, and only make it slower.
struct Measured {
  double step = 0, waited = 0;
};

// Of the first rank; the others follow it.
Measured measure_steps(const RanksBenchOptions& options, const data::Batch& batch, int64_t accumulate, const Way& way,
                       dist::Communicator& communicator) {
  const models::Preset& preset = models::preset_named(options.preset);
  const auto model = models::make_model(models::model_options(preset, {.source = options.vocabulary}, 0.1), 1);
  Parallel parallel(options.threads);
  train::AdamW optimizer(model->parameters());
  const SameBatch batches(batch);
  train::Trainer trainer(*model, optimizer, batches, {.accumulate = accumulate, .sum_order = way.order}, parallel,
                         &communicator);
  trainer.set_overlap(way.overlap);
  if (communicator.rank() != 0) {
    trainer.follow();
    return {};
  }
  trainer.step();
  Measured fastest;
  for (int64_t i = 0; i < options.rounds; ++i) {
    const double waited = trainer.seconds_waited();
    const double step = seconds_of([&] { trainer.step(); });
    if (i == 0 || step < fastest.step) fastest = {step, trainer.seconds_waited() - waited};
  }
  trainer.finish();
  return fastest;
}

// What one rank does by itself, while all others do the same.
void measure_alone(const RanksBenchOptions& options, const data::Batch& batch, dist::Communicator& communicator,
                   StepCosts& costs) {
  constexpr int64_t kMany = 4;
  const auto alone = dist::single_process();
  const Way way{"alone", SumOrder::tree, false};
  communicator.barrier();
  const double one = measure_steps(options, batch, 1, way, *alone).step;
  const double many = measure_steps(options, batch, kMany, way, *alone).step;
  costs.batch = (many - one) / (kMany - 1);
  costs.rest = std::max(0.0, one - costs.batch);
  communicator.barrier();
}

// Between the first rank and the second.
void measure_messages(dist::Communicator& communicator, StepCosts& costs) {
  constexpr int kTimes = 200;
  constexpr size_t kLarge = size_t{kBucket} / 2;  // floats: as parts of buckets are, and as many under way
  constexpr int kUnderWay = 16;
  const int me = communicator.rank(), other = 1 - me;
  if (me > 1) return;
  std::vector<float> mine(kLarge), theirs(kLarge * kUnderWay);
  const auto exchange = [&](size_t length, int n) {  // the n-th of those under way
    return communicator.start_exchange<float>(other, std::span<const float>(mine).first(length), other,
                                              std::span(theirs).subspan(length * static_cast<size_t>(n), length));
  };
  const auto exchange_large = [&] {
    dist::Transfer all;
    for (int i = 0; i < kUnderWay; ++i) all.add(exchange(kLarge, i));
    all.wait();
  };
  exchange_large();
  costs.latency = seconds_of([&] {
                    for (int i = 0; i < kTimes; ++i) exchange(2, i).wait();
                  }) /
                  kTimes;
  costs.message = seconds_of([&] {
                    dist::Transfer all;
                    for (int i = 0; i < kTimes; ++i) all.add(exchange(2, i));
                    all.wait();
                  }) /
                  kTimes;
  constexpr int kRounds = 5;
  costs.bandwidth = kLarge * sizeof(float) * kUnderWay * kRounds / seconds_of([&] {
                      for (int i = 0; i < kRounds; ++i) exchange_large();
                    });
}

void print_model(const StepCosts& costs, int64_t batches) {
  print_line(fmt::format("\nA model of more ranks, {} batches each:\n{:>6} {:>10} {:>12} {:>12} {:>10}", batches,
                         "ranks", "step ms", "travel ms", "waits ms", "efficiency"));
  const double alone = step_seconds(costs, 1, batches, true);
  for (const int64_t ranks : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000}) {
    const double step = step_seconds(costs, ranks, batches, true);
    print_line(fmt::format("{:>6} {:>10.1f} {:>12.1f} {:>12.1f} {:>9.0f} %", ranks, 1e3 * step,
                           1e3 * travel_seconds(costs, ranks), 1e3 * (step - alone), 100 * alone / step));
  }
}

}  // namespace

double travel_seconds(const StepCosts& costs, int64_t ranks) {
  if (ranks == 1) return 0;
  const auto others = static_cast<double>(ranks - 1), all = static_cast<double>(ranks);
  const double bucket = static_cast<double>(std::max(kBucket, kPart * ranks)) * sizeof(float);
  const double messages = 2 * others * std::ceil(costs.bytes / bucket);
  return 2 * costs.latency + messages * costs.message + 2 * others / all * costs.bytes / costs.bandwidth;
}

double step_seconds(const StepCosts& costs, int64_t ranks, int64_t batches, bool overlap) {
  const double travel = travel_seconds(costs, ranks), hidden = overlap ? costs.hides * costs.batch : 0;
  // The last bucket is whole when backward is over.
  const double buckets = std::max(1.0, costs.bytes / (static_cast<double>(std::max(kBucket, kPart * ranks)) * 4));
  return static_cast<double>(batches) * costs.batch + costs.rest + std::max(travel / buckets, travel - hidden);
}

void bench_ranks(const RanksBenchOptions& options, dist::Communicator& communicator) {
  check_fields("bench ranks", options);
  const data::Batch batch = training_batch(
      {.vocabulary = options.vocabulary, .batch_tokens = options.batch_tokens, .length = options.length});
  const bool first = communicator.rank() == 0;
  const auto say = [&](const std::string& line) {
    if (first) print_line(line);
  };
  const models::Preset& preset = models::preset_named(options.preset);
  StepCosts costs{.hides = 2.0 / 3};
  costs.bytes = 4.0 * static_cast<double>(
                          models::make_model(models::model_options(preset, {.source = options.vocabulary}, 0.1), 1)
                              ->parameters()
                              .values()
                              .size());
  say(fmt::format("{}, {:.1f} MB of gradients, {} batches of {} tokens a step, {} ranks of {} threads", options.preset,
                  costs.bytes / 1e6, options.accumulate, batch.target_tokens, communicator.size(), options.threads));
  measure_alone(options, batch, communicator, costs);
  say(fmt::format("a batch takes {:.1f} ms, the rest of a step {:.1f} ms", 1e3 * costs.batch, 1e3 * costs.rest));
  if (communicator.size() > 1) {
    measure_messages(communicator, costs);
    say(fmt::format("a message takes {:.0f} us, {:.1f} us one behind the other; {:.0f} MB/s there and back",
                    1e6 * costs.latency, 1e6 * costs.message, costs.bandwidth / 1e6));
  }
  say(fmt::format("\n{:<34} {:>10} {:>10}", "way", "step ms", "waits ms"));
  const int64_t batches = (options.accumulate + communicator.size() - 1) / communicator.size();
  double plain = 0, overlapped = 0;
  for (const Way& way :
       {Way{"tree, after backward", SumOrder::tree, false}, Way{"tree, within backward", SumOrder::tree, true},
        Way{"any (all-reduce), after backward", SumOrder::any, false},
        Way{"any (all-reduce), within backward", SumOrder::any, true}}) {
    communicator.barrier();
    const Measured measured = measure_steps(options, batch, options.accumulate, way, communicator);
    if (way.order == SumOrder::tree) (way.overlap ? overlapped : plain) = measured.waited;
    say(fmt::format("{:<34} {:>10.1f} {:>10.1f}", way.name, 1e3 * measured.step, 1e3 * measured.waited));
  }
  if (communicator.size() == 1) return;
  say(fmt::format("hidden by the tree within backward: {:.0f} % of what it waits for after it",
                  100 * (1 - overlapped / plain)));
  say(fmt::format("the model has {:.1f} ms after backward, {:.1f} ms within",
                  1e3 * step_seconds(costs, communicator.size(), batches, false),
                  1e3 * step_seconds(costs, communicator.size(), batches, true)));
  if (first) print_model(costs, batches);
}

}  // namespace heed::bench
