// SPDX-License-Identifier: Apache-2.0
#include "bench/tanh.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/tanh.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, which includes this file once for each target.
#include "heed/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
namespace hk = heed::kernels::HWY_NAMESPACE;

void tanh_row(const float* HWY_RESTRICT x, float* HWY_RESTRICT y, int64_t n) {
  constexpr int kTogether = 4;  // independent ones, so that the divider always has the next to work on
  const hk::F d;
  for (int64_t i = 0; i < n; i += kTogether * hk::kLanes) {
    hk::V v[kTogether];
    for (int j = 0; j < kTogether; ++j) v[j] = hn::Load(d, x + i + j * hk::kLanes);
    hk::tanh(d, v);
    for (int j = 0; j < kTogether; ++j) hn::Store(v[j], d, y + i + j * hk::kLanes);
  }
}

}  // namespace
}  // namespace heed::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>

#include "heed/base/rng.h"

namespace heed::bench {

HWY_EXPORT(tanh_row);

void tanh_row(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(tanh_row)(x, y, n); }

namespace {

constexpr int64_t kNumbers = 2048;          // with as many results, half of a small L1
constexpr int64_t kTasks = 8, kTimes = 64;  // a thread; how often a task goes through the numbers

}  // namespace

TanhProbe::TanhProbe() : numbers_(kNumbers * sizeof(float)) {
  Rng rng(1);
  std::generate_n(reinterpret_cast<float*>(numbers_.data()), kNumbers, [&] { return rng.normal(); });
}

void TanhProbe::run(Parallel& parallel) {
  const auto* x = reinterpret_cast<const float*>(numbers_.data());
  parallel.for_each(kTasks * parallel.threads(), [&](int64_t, int) {
    alignas(Workspace::kAlignment) float y[kNumbers];
    for (int64_t i = 0; i < kTimes; ++i) tanh_row(x, y, kNumbers);
  });
}

int64_t TanhProbe::count(const Parallel& parallel) { return kTasks * parallel.threads() * kTimes * kNumbers; }

}  // namespace heed::bench

#endif  // HWY_ONCE
