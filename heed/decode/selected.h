// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest logits of a row and its log-sum-exp, in one pass where there are many (kernels/select.h), in f32 and f64.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "heed/kernels/select.h"

namespace heed::decode {

// The largest logits of a row, and its log-sum-exp.
struct Selected {
  double max = 0, log_sum = 0;
  std::vector<kernels::Ranked> best;  // f32 alone has so many that it matters; in f64 values are rounded, indices exact
};

// T: the floating type that the model computes in.
template <class T>
void select(const T* row, int64_t V, Selected& to) {
  if constexpr (std::is_same_v<T, float>) {
    const kernels::RowSelection found = kernels::select_largest({row, static_cast<size_t>(V)}, to.best);
    to.max = double{found.max}, to.log_sum = double{found.log_sum};
    to.best.resize(static_cast<size_t>(found.found));
  } else {
    std::vector<int32_t> order(static_cast<size_t>(V));
    std::iota(order.begin(), order.end(), 0);
    const auto middle = order.begin() + std::min<int64_t>(V, std::ssize(to.best));
    std::partial_sort(order.begin(), middle, order.end(),
                      [&](int32_t a, int32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    to.best.clear();
    for (auto token = order.begin(); token != middle; ++token) {
      if (row[*token] > -std::numeric_limits<T>::infinity())
        to.best.push_back({static_cast<float>(row[*token]), *token});
    }
    to.max = *std::max_element(row, row + V);
    double sum = 0;
    for (int64_t i = 0; i < V; ++i) sum += std::exp(row[i] - to.max);
    to.log_sum = std::log(sum);
  }
}

// As log-softmax has it, in the type of the logits.
template <class T>
double log_probability(const Selected& row, T logit) {
  return double{(logit - static_cast<T>(row.max)) - static_cast<T>(row.log_sum)};
}

}  // namespace heed::decode
