// SPDX-License-Identifier: Apache-2.0
#pragma once
// The numbers of an attention event as floats, whatever they are stored in. Internal.
#include <cmath>

#include "heed/nn/observer.h"

namespace heed::trace {

class EventReader {
 public:
  explicit EventReader(const nn::AttentionEvent& event) : event_(event), f64_(event.dtype() == DType::f64) {}

  int64_t queries() const { return event_.stats.shape(2); }
  int64_t keys() const { return f64_ ? event_.inputs_f64.k.shape(2) : event_.inputs.k.shape(2); }
  int64_t key_width() const { return f64_ ? event_.inputs_f64.k.shape(3) : event_.inputs.k.shape(3); }
  int64_t value_width() const { return f64_ ? event_.inputs_f64.v.shape(3) : event_.inputs.v.shape(3); }
  int64_t heads() const { return event_.stats.shape(1); }
  int64_t key_heads() const { return f64_ ? event_.inputs_f64.k.shape(1) : event_.inputs.k.shape(1); }
  bool has_w() const { return f64_ ? !event_.inputs_f64.w.empty() : !event_.inputs.w.empty(); }
  bool has_bias() const { return f64_ ? !event_.inputs_f64.bias.empty() : !event_.inputs.bias.empty(); }

  // Each appends one row.
  void q(int64_t b, int64_t h, int64_t t, std::vector<float>& to) const {
    f64_ ? add(event_.inputs_f64.q.at(b, h, t), key_width(), to) : add(event_.inputs.q.at(b, h, t), key_width(), to);
  }
  void k(int64_t b, int64_t h, int64_t s, std::vector<float>& to) const {
    f64_ ? add(event_.inputs_f64.k.at(b, h, s), key_width(), to) : add_stored(event_.inputs.k, b, h, s, to);
  }
  void v(int64_t b, int64_t h, int64_t s, std::vector<float>& to) const {
    f64_ ? add(event_.inputs_f64.v.at(b, h, s), value_width(), to) : add_stored(event_.inputs.v, b, h, s, to);
  }
  void w(int64_t h, std::vector<float>& to) const {
    f64_ ? add(event_.inputs_f64.w.at(h), key_width(), to) : add(event_.inputs.w.at(h), key_width(), to);
  }
  // The natural log-sum-exp of a row; 0 where it sees nothing.
  double lse(int64_t b, int64_t h, int64_t t) const {
    const int64_t at = ((b * heads() + h) * queries() + t) * 2;
    double max = 0, sum = 0;
    if (f64_) {
      max = event_.stats.data<double>()[at], sum = event_.stats.data<double>()[at + 1];
    } else {
      max = double{event_.stats.data<float>()[at]}, sum = double{event_.stats.data<float>()[at + 1]};
    }
    return sum > 0 ? (max + std::log2(sum)) * std::log(2.0) : 0;
  }

 private:
  template <class T>
  static void add(const T* row, int64_t count, std::vector<float>& to) {
    for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<float>(row[i]));
  }
  static void add_stored(const kernels::KvView& rows, int64_t b, int64_t h, int64_t s, std::vector<float>& to) {
    const int64_t width = rows.shape(3);
    if (rows.dtype() == DType::bf16) return add(rows.row<BFloat16>(b, h, s), width, to);
    if (rows.dtype() == DType::f16) return add(rows.row<Float16>(b, h, s), width, to);
    add(rows.row<float>(b, h, s), width, to);
  }

  const nn::AttentionEvent& event_;
  const bool f64_;
};

}  // namespace heed::trace
