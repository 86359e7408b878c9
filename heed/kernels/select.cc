// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/select.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/select.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/exp-inl.h"
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The largest so far, in falling order.
class Largest {
 public:
  explicit Largest(std::span<Ranked> to) : to_(to) {}

  // What a number has to exceed to enter.
  float threshold() const {
    return count_ < std::ssize(to_) ? -std::numeric_limits<float>::infinity()
                                    : to_[static_cast<size_t>(count_ - 1)].value;
  }
  int64_t count() const { return count_; }
  // Indices come in rising order, so that of equals the first stays before.
  void offer(float value, int64_t index) {
    if (!(value > threshold())) return;
    int64_t at = count_ < std::ssize(to_) ? count_++ : count_ - 1;
    for (; at > 0 && to_[static_cast<size_t>(at - 1)].value < value; --at) {
      to_[static_cast<size_t>(at)] = to_[static_cast<size_t>(at - 1)];
    }
    to_[static_cast<size_t>(at)] = {value, static_cast<int32_t>(index)};
  }

 private:
  std::span<Ranked> to_;
  int64_t count_ = 0;
};

RowSelection select(std::span<const float> x, std::span<Ranked> to) {
  const F d;
  const auto width = std::ssize(x);
  RowSelection row;
  row.max = max_of(d, x.data(), width);
  row.log_sum = std::log(sum_exp_of(d, x.data(), row.max, width, nullptr));
  if (to.empty()) return row;
  Largest largest(to);
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    const V low = hn::Set(d, largest.threshold());
    V v[N];
    load_vectors(d, x.data() + at, left, v);
    V most = v[0];
    for (int i = 1; i < N; ++i) most = hn::IfThenElse(hn::Gt(v[i], most), v[i], most);
    // A NaN in `most` would hide the lanes behind it.
    const bool none = hn::AllFalse(d, hn::Gt(most, low)) && hn::AllTrue(d, hn::Eq(most, most));
    if (none) return;
    for (int64_t i = at; i < at + (N == 1 ? left : N * kLanes); ++i) largest.offer(x[static_cast<size_t>(i)], i);
  });
  row.found = largest.count();
  return row;
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(select);

RowSelection select_largest(std::span<const float> x, std::span<Ranked> to) noexcept {
  return HWY_DYNAMIC_DISPATCH(select)(x, to);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
