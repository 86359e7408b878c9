// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/weights.h"

#include <algorithm>
#include <charconv>

#include "heed/base/error.h"
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

HeadSwitch::HeadSwitch(const std::string& text) {
  const size_t point = text.rfind('.');
  const char* end = text.data() + text.size();
  const bool number = point != text.npos && std::from_chars(text.data() + point + 1, end, head_).ptr == end;
  if (!number || point + 1 == text.size() || head_ < 0) {
    throw Error("head '" + text + "' is no layer and head, expected such as encoder.0.self.2");
  }
  layer_ = text.substr(0, point);
}

Tensor HeadSwitch::head_gate(const std::string& path, int64_t heads) {
  if (layer_.empty()) return {};
  if (std::find(seen_.begin(), seen_.end(), path) == seen_.end()) seen_.push_back(path);
  if (path != layer_) return {};
  if (head_ >= heads) {
    throw Error("layer '" + path + "' has no head " + std::to_string(head_) + ", expected 0 to " +
                std::to_string(heads - 1));
  }
  Tensor gate = Tensor::full({heads}, 1);
  gate.data<float>()[head_] = 0;
  return gate;
}

void HeadSwitch::check_found() const {
  if (layer_.empty() || std::find(seen_.begin(), seen_.end(), layer_) != seen_.end()) return;
  std::string there;
  for (const std::string& path : seen_) there += (there.empty() ? "" : ", ") + path;
  throw Error("there is no layer '" + layer_ + "', expected one of: " + there);
}

void WeightRecorder::attention(const nn::AttentionEvent& event) {
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
