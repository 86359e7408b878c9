// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/dropout.h"

#include <cassert>

#include "heed/kernels/elementwise.h"
#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/dropout.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/philox-inl.h"
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Elements [begin, end); begin is a multiple of kGroup. residual may be null.
void dropout_groups(const ElementDropout& dropout, const float* x, const float* residual, float* y, int64_t begin,
                    int64_t end) {
  const F d;
  const hn::RebindToUnsigned<F> du;
  const hn::RebindToSigned<F> di;
  const auto last_dropped = hn::Set(di, static_cast<int32_t>(dropout.threshold()) - 1);
  const V scale = hn::Set(d, dropout.keep_scale());
  constexpr int64_t kBlocks = ElementDropout::kBlocks, kGroup = ElementDropout::kGroup;
  for (int64_t group = begin; group < end; group += kGroup) {
    for (int64_t lane = 0; lane < kBlocks; lane += kLanes) {
      const Block4 counter = dropout.counter(group / kGroup * kBlocks + lane);
      VU words[4] = {hn::Iota(du, counter[0]), hn::Set(du, counter[1]), hn::Set(du, counter[2]),
                     hn::Set(du, counter[3])};
      philox_lanes(words, dropout.seed);
      for (int64_t j = 0; j < ElementDropout::kDraws; ++j) {
        const int64_t at = group + j * kBlocks + lane, left = end - at;
        if (left <= 0) break;
        const VU bits = j % 2 == 0 ? hn::And(words[j / 2], hn::Set(du, 0xFFFFu)) : hn::ShiftRight<16>(words[j / 2]);
        const auto kept = hn::RebindMask(d, hn::Gt(hn::BitCast(di, bits), last_dropped));
        V v = hn::IfThenElseZero(kept, hn::Mul(load_part(d, x + at, left), scale));
        if (residual) v = hn::Add(v, load_part(d, residual + at, left));
        store_part(d, v, y + at, left);
      }
    }
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(dropout_groups);

void dropout_forward(const ElementDropout& dropout, View<const float, 1> x, View<const float, 1> residual,
                     View<float, 1> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape() && (!residual || residual.shape() == x.shape()));
  const int64_t n = x.shape(0);
  if (!dropout.on()) {
    const Dims<2> shape{1, n};
    return residual ? add_forward({residual.data(), shape}, {x.data(), shape}, {y.data(), shape}, parallel)
                    : copy_forward({x.data(), shape}, {y.data(), shape}, parallel);
  }
  static_assert(kTaskElements % ElementDropout::kGroup == 0);
  parallel.for_each((n + kTaskElements - 1) / kTaskElements, [&](int64_t task, int) {
    HWY_DYNAMIC_DISPATCH(dropout_groups)
    (dropout, x.data(), residual.data(), y.data(), task * kTaskElements, std::min(n, (task + 1) * kTaskElements));
  });
}

void dropout_backward(const ElementDropout& dropout, View<const float, 1> dy, View<float, 1> dx,
                      Parallel& parallel) noexcept {
  dropout_forward(dropout, dy, dx, dx, parallel);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
