// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/weights.h"

#include <algorithm>

#include "heed/nn/attention_weights.h"

namespace heed::analysis {
namespace {

// Concatenates queries: a [B,H,T,S] and b [B,H,U,S'] give [B,H,T+U,max]. A cache may have grown in between.
Tensor after_each_other(const Tensor& a, const Tensor& b) {
  const int64_t T = a.shape(2), U = b.shape(2), S = std::max(a.shape(3), b.shape(3));
  Tensor both = Tensor::zeros({a.shape(0), a.shape(1), T + U, S});
  const auto copy = [&](const Tensor& from, int64_t first) {
    for (int64_t i = 0; i < from.shape(0) * from.shape(1); ++i) {
      for (int64_t t = 0; t < from.shape(2); ++t) {
        const float* row = from.data<float>() + (i * from.shape(2) + t) * from.shape(3);
        std::copy_n(row, from.shape(3), both.data<float>() + (i * (T + U) + first + t) * S);
      }
    }
  };
  copy(a, 0);
  copy(b, T);
  return both;
}

}  // namespace

void WeightRecorder::attention(const nn::AttentionEvent& event) {
  ObserverBeside::attention(event);
  if (event.role != role_) return;
  Tensor rows = nn::attention_weights(event, workspace_, parallel_);
  if (rows.dtype() != DType::f32) rows = rows.converted(DType::f32);
  const auto known = std::find_if(layers_.begin(), layers_.end(), [&](const Layer& l) { return l.path == event.path; });
  if (known == layers_.end()) {
    layers_.push_back({event.path, rows});
  } else {
    known->weights = after_each_other(known->weights, rows);
  }
}

}  // namespace heed::analysis
