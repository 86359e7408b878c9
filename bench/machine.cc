// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains x <- x * factor + term: more than latency times pipes of any core we know, few enough for 16
// registers. Single variables, because compilers spill arrays of vectors. Returns the number of flops.
double fma_burst(int64_t steps, const float* factor_and_term, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, factor_and_term[0]), term = hn::Set(d, factor_and_term[1]);
  auto x0 = hn::Iota(d, 0.0f), x1 = hn::Iota(d, 1.0f), x2 = hn::Iota(d, 2.0f), x3 = hn::Iota(d, 3.0f);
  auto x4 = hn::Iota(d, 4.0f), x5 = hn::Iota(d, 5.0f), x6 = hn::Iota(d, 6.0f), x7 = hn::Iota(d, 7.0f);
  auto x8 = hn::Iota(d, 8.0f), x9 = hn::Iota(d, 9.0f), x10 = hn::Iota(d, 10.0f), x11 = hn::Iota(d, 11.0f);
  for (int64_t i = 0; i < steps; ++i) {
    x0 = hn::MulAdd(x0, factor, term);
    x1 = hn::MulAdd(x1, factor, term);
    x2 = hn::MulAdd(x2, factor, term);
    x3 = hn::MulAdd(x3, factor, term);
    x4 = hn::MulAdd(x4, factor, term);
    x5 = hn::MulAdd(x5, factor, term);
    x6 = hn::MulAdd(x6, factor, term);
    x7 = hn::MulAdd(x7, factor, term);
    x8 = hn::MulAdd(x8, factor, term);
    x9 = hn::MulAdd(x9, factor, term);
    x10 = hn::MulAdd(x10, factor, term);
    x11 = hn::MulAdd(x11, factor, term);
  }
  const auto a = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(x4, x5));
  const auto b = hn::Add(hn::Add(hn::Add(x6, x7), hn::Add(x8, x9)), hn::Add(x10, x11));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

// A tile as in attention's products, 4 rows by 3 vectors, over 32 rows of 128 numbers: all of it stays in L1. Twelve
// accumulators, because Intel's cores do not reach their peak with eight.
constexpr int64_t kTileRows = 32, kTileColumns = 128, kTileFloats = 48 * kTileColumns;
static_assert(3 * hn::MaxLanes(hn::ScalableTag<float>()) <= 48 && kTileRows <= 48, "one array holds both operands");

double tile_burst(int64_t steps, const float* rows, const float* vectors, float* sink) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < kTileRows; i += 4) {
      const float *r0 = rows + i * kTileColumns, *r1 = r0 + kTileColumns, *r2 = r1 + kTileColumns,
                  *r3 = r2 + kTileColumns;
      auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      auto c0 = a0, c1 = a0, c2 = a0, c3 = a0;
      const float* at = vectors;
      for (int64_t c = 0; c < kTileColumns; ++c, at += 3 * lanes) {
        const auto x = hn::Load(d, at), y = hn::Load(d, at + lanes), z = hn::Load(d, at + 2 * lanes);
        auto k = hn::Set(d, r0[c]);
        a0 = hn::MulAdd(k, x, a0), b0 = hn::MulAdd(k, y, b0), c0 = hn::MulAdd(k, z, c0);
        k = hn::Set(d, r1[c]);
        a1 = hn::MulAdd(k, x, a1), b1 = hn::MulAdd(k, y, b1), c1 = hn::MulAdd(k, z, c1);
        k = hn::Set(d, r2[c]);
        a2 = hn::MulAdd(k, x, a2), b2 = hn::MulAdd(k, y, b2), c2 = hn::MulAdd(k, z, c2);
        k = hn::Set(d, r3[c]);
        a3 = hn::MulAdd(k, x, a3), b3 = hn::MulAdd(k, y, b3), c3 = hn::MulAdd(k, z, c3);
      }
      sum = hn::Add(sum, hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(b0, b1), hn::Add(b2, b3))));
      sum = hn::Add(sum, hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)));
    }
  }
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * static_cast<double>(kTileRows * kTileColumns * 3 * lanes * steps);
}

// Four quarters side by side: the hardware prefetcher then reads from four pages at once, which reads a quarter faster
// than one run from end to end where the bytes come from the last cache level.
uint32_t read_block(const uint32_t* p, size_t count) {
  const hn::ScalableTag<uint32_t> d;
  const size_t n = hn::Lanes(d), step = 2 * n;
  const size_t quarter = count / 4 / step * step;
  const uint32_t *p1 = p + quarter, *p2 = p1 + quarter, *p3 = p2 + quarter;
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  for (size_t i = 0; i < quarter; i += step) {
    a0 = hn::Or(a0, hn::LoadU(d, p + i));
    a1 = hn::Or(a1, hn::LoadU(d, p + i + n));
    a2 = hn::Or(a2, hn::LoadU(d, p1 + i));
    a3 = hn::Or(a3, hn::LoadU(d, p1 + i + n));
    a4 = hn::Or(a4, hn::LoadU(d, p2 + i));
    a5 = hn::Or(a5, hn::LoadU(d, p2 + i + n));
    a6 = hn::Or(a6, hn::LoadU(d, p3 + i));
    a7 = hn::Or(a7, hn::LoadU(d, p3 + i + n));
  }
  uint32_t rest = 0;
  for (size_t i = 4 * quarter; i < count; ++i) rest |= p[i];
  const auto all = hn::Or(hn::Or(hn::Or(a0, a1), hn::Or(a2, a3)), hn::Or(hn::Or(a4, a5), hn::Or(a6, a7)));
  return rest | hn::GetLane(hn::SumOfLanes(d, all));
}

}  // namespace
}  // namespace heed::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <vector>

#include "bench/measure.h"

namespace heed::bench {

HWY_EXPORT(fma_burst);
HWY_EXPORT(tile_burst);
HWY_EXPORT(read_block);

namespace {

std::atomic<uint32_t> ignored;  // results go here, so that the work cannot be left out

// GFLOP/s of `burst`, which leaves a result behind and returns its flops. Many short tasks, so that a worker that wakes
// late or is held up leaves the rest to the others, as kernels do.
template <class Burst>
double gflops_of(Parallel& parallel, int64_t tasks, const Burst& burst) {
  std::atomic<double> flops = 0;
  const double seconds = time(clock_for(parallel), [&] {
    parallel.for_each(tasks * parallel.threads(), [&](int64_t, int) {
      float sink;
      flops.fetch_add(burst(&sink), std::memory_order_relaxed);
      ignored.fetch_add(static_cast<uint32_t>(sink), std::memory_order_relaxed);
    });
  });
  return flops / seconds * 1e-9;
}

}  // namespace

double sample_fma_gflops(Parallel& parallel) {
  volatile float opaque[2] = {0.5f, 1.0f};
  const float factor_and_term[2] = {opaque[0], opaque[1]};
  const auto run = HWY_DYNAMIC_DISPATCH(fma_burst);
  return gflops_of(parallel, 16, [&](float* sink) { return run(32768, factor_and_term, sink); });
}

Moment sample_moment(Parallel& parallel) {
  alignas(64) static const float zeros[HWY_NAMESPACE::kTileFloats] = {};
  const auto run = HWY_DYNAMIC_DISPATCH(tile_burst);
  Moment moment{.fma_gflops = sample_fma_gflops(parallel)};
  moment.tile_gflops = gflops_of(parallel, 4, [&](float* sink) { return run(64, zeros, zeros, sink); });
  return moment;
}

void read_all(std::span<const Bytes> ranges, Parallel& parallel) {
  constexpr size_t kBlock = size_t{128} * 1024;
  const auto run = HWY_DYNAMIC_DISPATCH(read_block);
  for (const Bytes& range : ranges) {
    const auto blocks = static_cast<int64_t>((range.size() + kBlock - 1) / kBlock);
    parallel.for_each(blocks, [&](int64_t block, int) {
      const size_t begin = static_cast<size_t>(block) * kBlock;
      const size_t words = std::min(kBlock, range.size() - begin) / sizeof(uint32_t);
      const auto* p = reinterpret_cast<const uint32_t*>(range.data() + begin);
      ignored.fetch_or(run(p, words), std::memory_order_relaxed);
    });
  }
}

namespace {

constexpr size_t kProbeBytes = size_t{16} << 20;

}  // namespace

ReadProbe::ReadProbe() : buffer_(kProbeBytes) { std::memset(buffer_.data(), 1, kProbeBytes); }

double ReadProbe::sample_gbps(Parallel& parallel) {
  const Bytes all(buffer_.data(), kProbeBytes);
  const double seconds = time(clock_for(parallel), [&] { read_all({&all, 1}, parallel); });
  return static_cast<double>(kProbeBytes) / seconds * 1e-9;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace heed::bench

#endif  // HWY_ONCE
