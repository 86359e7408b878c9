// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning rate by step: it rises over `warmup` steps, then falls.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "heed/base/describe.h"

namespace heed::train {

// inverse_sqrt: rate sqrt(warmup / step). cosine: half a wave down to a tenth at `steps`. constant: after warm-up,
// rate.
enum class Schedule : uint8_t { inverse_sqrt, cosine, constant };

constexpr auto enum_names(Schedule) {
  return std::to_array<EnumName<Schedule>>(
      {{"inverse-sqrt", Schedule::inverse_sqrt}, {"cosine", Schedule::cosine}, {"constant", Schedule::constant}});
}

struct RateOptions {
  double rate{1e-3};  // the highest
  int64_t warmup{400};
  Schedule schedule{Schedule::inverse_sqrt};
};

// step counts from 1; steps: the last one, for cosine.
inline double learning_rate(const RateOptions& o, int64_t step, int64_t steps) {
  const double s = static_cast<double>(step), warmup = static_cast<double>(std::max<int64_t>(1, o.warmup));
  if (s < warmup) return o.rate * s / warmup;
  switch (o.schedule) {
    case Schedule::inverse_sqrt:
      return o.rate * std::sqrt(warmup / s);
    case Schedule::cosine: {
      const double left = std::max(1.0, static_cast<double>(steps) - warmup);
      const double done = std::min(1.0, (s - warmup) / left);
      return o.rate * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi * done)) / 2);
    }
    case Schedule::constant:
      break;
  }
  return o.rate;
}

}  // namespace heed::train
