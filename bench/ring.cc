// SPDX-License-Identifier: Apache-2.0
#include "bench/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/decoding.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "heed/base/error.h"
#include "heed/base/rng.h"
#include "heed/dist/open.h"
#include "heed/dist/ring_attention.h"
#include "heed/dist/testing.h"

namespace heed::bench {
namespace {

using dist::Communicator;
using dist::Placement;
using dist::RingAttention;
using Json = nlohmann::ordered_json;

constexpr uint64_t kSeed = 1;
constexpr double kMega = 1e6;
constexpr std::array kPasses = {"forward", "backward", "received"};
constexpr std::array kCompared = {"out", "dq", "dk", "dv", "received"};

kernels::AttentionOptions options_of(const RingBenchOptions& o) {
  kernels::AttentionOptions options;
  if (!o.full) options.mask.causal = kernels::Causal::top_left();
  const int64_t left = o.window > 0 ? o.window - 1 : kernels::Window::kUnbounded;
  if (o.window > 0) options.mask.window = kernels::Window::top_left(left, o.full ? left : 0);
  return options;
}

// What a process has of a sequence: the rows of one rank, or all.
class Part {
 public:
  Part(const RingBenchOptions& o, int64_t rows) : o_(o) {
    for (View<float, 4>* view : {&q, &d_out, &out, &dq}) *view = floats(o.heads, rows, o.width);
    for (View<float, 4>* view : {&k, &v, &dk, &dv}) *view = floats(o.kv_heads, rows, o.width);
    stats = floats(o.heads, rows, 2);
    received = floats(o.heads, rows, 1);
  }

  // Rows [from, from + count), as rows [first, first + count) of the sequence: the same numbers on every rank.
  void draw(int64_t from, int64_t first, int64_t count) {
    uint64_t tensor = 0;
    for (const View<float, 4>& view : {q, k, v, d_out}) {
      for (int64_t h = 0; h < view.shape(1); ++h) {
        for (int64_t t = 0; t < count; ++t) {
          const uint64_t row = (tensor * static_cast<uint64_t>(o_.heads) + h) * static_cast<uint64_t>(o_.length);
          Rng rng(kSeed, row + static_cast<uint64_t>(first + t));
          for (int64_t d = 0; d < o_.width; ++d) view(0, h, from + t, d) = rng.normal();
        }
      }
      ++tensor;
    }
  }

  kernels::AttentionInputs inputs() const { return {.q = q, .k = k, .v = v}; }
  kernels::AttentionOutputs outputs() const { return {.out = out, .stats = stats}; }
  kernels::AttentionGradients gradients() const {
    for (const View<float, 4>& view : {dq, dk, dv}) std::fill_n(view.data(), view.size(), 0.0f);
    return {.out = out, .stats = stats, .d_out = d_out, .dq = dq, .dk = dk, .dv = dv};
  }
  kernels::AttentionObservations observations() const {
    return {.received = {received.data(), {1, received.shape(1), received.shape(2)}}};
  }
  // In the order of kCompared.
  std::array<View<float, 4>, kCompared.size()> results() const { return {out, dq, dk, dv, received}; }
  double megabytes() const { return static_cast<double>(bytes_) / kMega; }

  View<float, 4> q, k, v, d_out, out, stats, dq, dk, dv, received;

 private:
  View<float, 4> floats(int64_t heads, int64_t rows, int64_t width) {
    const Dims<4> shape{1, heads, rows, width};
    const size_t bytes = sizeof(float) * static_cast<size_t>(element_count(shape));
    memory_.push_back(Workspace::cached(bytes));
    bytes_ += bytes;
    return {reinterpret_cast<float*>(memory_.back().data()), shape};
  }

  const RingBenchOptions& o_;
  std::vector<Workspace> memory_;
  size_t bytes_ = 0;
};

// The passes on one rank.
class RankPasses {
 public:
  RankPasses(Communicator& communicator, const RingBenchOptions& o)
      : communicator_(communicator),
        options_(options_of(o)),
        parallel_(o.threads),
        ring_(communicator, o.length, parallel_),
        part_(o, ring_.rows()) {
    int64_t from = 0;
    for (const int chunk : ring_.placement().chunks_of(communicator.rank())) {
      const dist::Rows rows = ring_.placement().chunk(chunk);
      part_.draw(from, rows.begin, rows.count());
      from += rows.count();
    }
  }

  // Seconds until all ranks were done, in the order of kPasses.
  std::array<double, kPasses.size()> round() {
    return {timed([&] { ring_.forward(part_.inputs(), part_.outputs(), options_); }),
            timed([&] { ring_.backward(part_.inputs(), part_.gradients(), options_); }),
            timed([&] { ring_.observe(part_.inputs(), part_.stats, part_.observations(), options_); })};
  }

  RingRankFigures figures() const {
    const RingAttention::Costs& costs = ring_.costs();
    return {.rows = ring_.rows(),
            .pairs = costs.pairs,
            .megabytes_sent = static_cast<double>(costs.bytes_sent) / kMega,
            .megabytes = part_.megabytes() + static_cast<double>(costs.bytes_held) / kMega,
            .seconds_waited = costs.seconds_waited};
  }
  const Part& part() const { return part_; }
  const Placement& placement() const { return ring_.placement(); }

 private:
  template <class F>
  double timed(F&& f) {
    communicator_.barrier();
    const double begin = now(Clock::wall);
    f();
    communicator_.barrier();
    return now(Clock::wall) - begin;
  }

  Communicator& communicator_;
  const kernels::AttentionOptions options_;
  Parallel parallel_;
  RingAttention ring_;
  Part part_;
};

// The same in one process.
class OneProcess {
 public:
  explicit OneProcess(const RingBenchOptions& o, int ranks)
      : options_(options_of(o)),
        parallel_(std::min(Parallel(0).threads(), ranks * Parallel(o.threads).threads())),
        part_(o, o.length) {
    part_.draw(0, 0, o.length);
  }

  std::array<double, kPasses.size()> round() {
    const kernels::AttentionInputs in = part_.inputs();
    return {time(Clock::wall, [&] { attention_forward(in, part_.outputs(), options_, workspace_, parallel_); }),
            time(Clock::wall, [&] { attention_backward(in, part_.gradients(), options_, workspace_, parallel_); }),
            time(Clock::wall,
                 [&] { attention_observe(in, part_.stats, part_.observations(), options_, workspace_, parallel_); })};
  }
  const Part& part() const { return part_; }
  int threads() const { return parallel_.threads(); }
  double megabytes() const { return part_.megabytes() + static_cast<double>(workspace_.bytes()) / kMega; }

 private:
  const kernels::AttentionOptions options_;
  Parallel parallel_;
  Part part_;
  Workspace workspace_;
};

RingDifference difference(const char* name, const View<float, 4>& own, const View<const float, 4>& expected) {
  RingDifference result{.of = name};
  for (int64_t i = 0; i < own.size(); ++i) {
    const double a = own.data()[i], b = expected.data()[i];
    // Written so that a NaN of either shows.
    if (!(std::abs(a - b) <= result.most)) result.most = std::abs(a - b);
    result.largest = std::max(result.largest, std::abs(b));
  }
  return result;
}

// Rank 0 has the whole, and sends every rank its rows; each compares, and all know the result.
std::vector<RingDifference> compare(Communicator& communicator, const Placement& placement, const Part& own,
                                    const OneProcess* whole) {
  std::vector<RingDifference> all;
  for (size_t i = 0; i < kCompared.size(); ++i) {
    const View<float, 4> mine = own.results()[i];
    std::vector<float> expected(static_cast<size_t>(mine.size()));
    dist::Transfer coming = communicator.start_receive<float>(0, expected);
    for (int rank = 0; whole && rank < communicator.size(); ++rank) {
      const View<float, 4> from = whole->part().results()[i];
      const Dims<4> shape{1, from.shape(1), placement.rows(rank), from.shape(3)};
      std::vector<float> rows(static_cast<size_t>(element_count(shape)));
      dist::take_rows<float>(placement, rank, from, {rows.data(), shape});
      communicator.start_send<float>(rank, rows).wait();
    }
    coming.wait();
    const RingDifference here = difference(kCompared[i], mine, {expected.data(), mine.shape()});
    std::vector<double> numbers(2 * static_cast<size_t>(communicator.size()));
    communicator.all_gather<double>(std::array{here.most, here.largest}, numbers);
    RingDifference most{.of = kCompared[i]};
    for (size_t r = 0; r < numbers.size(); r += 2) {
      if (!(numbers[r] <= most.most)) most.most = numbers[r];
      most.largest = std::max(most.largest, numbers[r + 1]);
    }
    all.push_back(most);
  }
  return all;
}

void check(const RingBenchOptions& o, int ranks) {
  if (o.heads % o.kv_heads != 0) {
    throw Error(fmt::format("--kv-heads is {}, expected a divisor of {} (--heads)", o.kv_heads, o.heads));
  }
  if (const int64_t least = 2 * int64_t{ranks}; o.length < least) {
    throw Error(
        fmt::format("--length is {}, expected {} or more, two rows for each of {} ranks", o.length, least, ranks));
  }
}

double pairs_of_all(const RingReport& report) {
  double sum = 0;
  for (const RingRankFigures& rank : report.ranks) sum += rank.pairs;
  return sum;
}

void print(const RingReport& report, const RingBenchOptions& o, const char* kind) {
  const auto ranks = report.ranks.size();
  print_line(machine_line(o.threads));
  print_line(fmt::format("{} rows, {} heads of {} ({} of keys), {}{}; {} ranks ({}) of {} thread{}", o.length, o.heads,
                         o.width, o.kv_heads, o.full ? "full" : "causal",
                         o.window > 0 ? fmt::format(", a window of {}", o.window) : "", ranks, kind, o.threads,
                         o.threads == 1 ? "" : "s"));
  print_line(fmt::format("{:<10} {:>10} {:>14} {:>8}", "pass", "ring s", "one process s", "ratio"));
  for (const RingPassFigures& f : report.passes) {
    const std::string one = f.one_process ? fmt::format("{:.2f}", *f.one_process) : "-";
    const std::string ratio = f.one_process ? fmt::format("{:.2f}", f.seconds / *f.one_process) : "-";
    print_line(fmt::format("{:<10} {:>10.2f} {:>14} {:>8}", f.pass, f.seconds, one, ratio));
  }
  print_line(fmt::format("{:<10} {:>10} {:>14} {:>8} {:>10} {:>10}", "rank", "rows", "share of work", "MB sent",
                         "MB held", "s waited"));
  const double pairs = pairs_of_all(report);
  for (size_t i = 0; i < ranks; ++i) {
    const RingRankFigures& f = report.ranks[i];
    print_line(fmt::format("{:<10} {:>10} {:>13.2f}% {:>8.1f} {:>10.1f} {:>10.2f}", i, f.rows, 100 * f.pairs / pairs,
                           f.megabytes_sent, f.megabytes, f.seconds_waited));
  }
  if (report.differences.empty()) return;
  print_line(fmt::format("one process of {} threads holds {:.1f} MB; largest difference of an element:",
                         report.one_process_threads, report.one_process_megabytes));
  for (const RingDifference& d : report.differences) {
    print_line(fmt::format("{:<10} {:>10.1e}   of elements up to {:.3g}", d.of, d.most, d.largest));
  }
}

Json to_json(const RingReport& report, const RingBenchOptions& o, const char* kind) {
  Json all = machine_facts(o.threads);
  all["ranks_are"] = kind;
  all["length"] = o.length, all["heads"] = o.heads, all["kv_heads"] = o.kv_heads, all["width"] = o.width;
  all["causal"] = !o.full, all["window"] = o.window, all["rounds"] = o.rounds;
  for (const RingPassFigures& f : report.passes) {
    all["passes"].push_back({{"pass", f.pass}, {"seconds", f.seconds}, {"one_process", optional(f.one_process)}});
  }
  const double pairs = pairs_of_all(report);
  for (const RingRankFigures& f : report.ranks) {
    all["ranks"].push_back({{"rows", f.rows},
                            {"share_of_work", f.pairs / pairs},
                            {"megabytes_sent", f.megabytes_sent},
                            {"megabytes", f.megabytes},
                            {"seconds_waited", f.seconds_waited}});
  }
  all["one_process_threads"] = report.one_process_threads;
  all["one_process_megabytes"] = report.one_process_megabytes;
  all["differences"] = Json::array();
  for (const RingDifference& d : report.differences) {
    all["differences"].push_back({{"of", d.of}, {"most", d.most}, {"largest", d.largest}});
  }
  return all;
}

}  // namespace

RingReport measure_ring(Communicator& communicator, const RingBenchOptions& o) {
  check(o, communicator.size());
  const bool first = communicator.rank() == 0;
  RankPasses ring(communicator, o);
  std::optional<OneProcess> one;
  if (first && !o.alone) one.emplace(o, communicator.size());
  std::array<std::vector<double>, kPasses.size()> ring_seconds, one_seconds;
  for (int64_t round = 0; round < o.rounds; ++round) {
    int go_on = 1;  // the others wait for rank 0 and its pass alone; a broadcast has no limit of time
    communicator.broadcast<int>(0, {&go_on, 1});
    const auto seconds = ring.round();
    const auto alone = one ? one->round() : decltype(ring.round()){};
    for (size_t i = 0; i < kPasses.size(); ++i) {
      ring_seconds[i].push_back(seconds[i]), one_seconds[i].push_back(alone[i]);
    }
  }
  RingReport report;
  for (size_t i = 0; i < kPasses.size(); ++i) {
    report.passes.push_back({.pass = kPasses[i], .seconds = median(ring_seconds[i])});
    if (one) report.passes.back().one_process = median(one_seconds[i]);
  }
  int go_on = 1;
  communicator.broadcast<int>(0, {&go_on, 1});
  const RingRankFigures mine = ring.figures();
  report.ranks.resize(static_cast<size_t>(communicator.size()));
  communicator.all_gather<RingRankFigures>({&mine, 1}, report.ranks);
  if (!o.alone) report.differences = compare(communicator, ring.placement(), ring.part(), one ? &*one : nullptr);
  if (one) report.one_process_threads = one->threads(), report.one_process_megabytes = one->megabytes();
  return report;
}

void bench_ring(const RingBenchOptions& options) {
  const dist::Launch launch = dist::launch_of_environment();
  const bool processes = launch.size > 1;
  const char* kind = processes ? "processes" : "threads of a process";
  check(options, processes ? launch.size : static_cast<int>(options.ranks));
  std::optional<JsonFile> file;
  if (!options.json.empty() && launch.rank == 0) file.emplace(options.json);
  RingReport report;
  if (processes) {
    const std::unique_ptr<Communicator> communicator = dist::open();
    report = measure_ring(*communicator, options);
    if (communicator->rank() != 0) return;
  } else {
    dist::testing::run_ranks(static_cast<int>(options.ranks), [&](Communicator& communicator) {
      RingReport own = measure_ring(communicator, options);
      if (communicator.rank() == 0) report = std::move(own);
    });
  }
  print(report, options, kind);
  if (file) file->commit(to_json(report, options, kind).dump(2) + "\n");
}

}  // namespace heed::bench
