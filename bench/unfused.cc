// SPDX-License-Identifier: Apache-2.0
#include "bench/unfused.h"

#include <algorithm>
#include <cmath>

#include "bench/softmax.h"
#include "bench/vector_products.h"
#include "heed/kernels/product.h"

namespace heed::bench {

namespace {

// Rows of a tensor [B,H,T,D] from `begin` on.
template <class T>
View<T, 2> rows_of(const View<T, 4>& x, int64_t b, int64_t h, int64_t begin, int64_t count) {
  return View<T, 2>(x.at(b, h, begin), {count, x.shape(3)}, {x.stride(2), 1});
}

float* floats(const Workspace& workspace) { return reinterpret_cast<float*>(workspace.data()); }

}  // namespace

Unfused::Unfused(const UnfusedTensors& x, const kernels::Visibility& visibility, Parallel& parallel)
    : x_(x),
      visibility_(visibility),
      parallel_(parallel),
      B_(x.q.shape(0)),
      H_(x.q.shape(1)),
      Hk_(x.k.shape(1)),
      T_(x.q.shape(2)),
      S_(x.k.shape(2)),
      D_(x.q.shape(3)),
      Dv_(x.v.shape(3)),
      parts_((parallel.threads() + B_ * Hk_ - 1) / (B_ * Hk_)),
      scale_(1.0f / std::sqrt(static_cast<float>(D_))) {
  const int64_t at_once = parts_ == 1 ? parallel.threads() : B_ * H_;
  scratch_.reserve(static_cast<size_t>(at_once * T_ * S_) * sizeof(float));
  for (int64_t b = 0; b < B_; ++b) {
    kernels::KeyRange all{S_, 0};
    for (int64_t t = 0; t < T_; ++t) {
      const kernels::KeyRange range = visibility_.row(b, t);
      if (!range.empty()) all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
    }
    seen_.push_back({std::min(all.begin, all.end), all.end});
  }
}

Unfused::Head Unfused::head(int64_t b, int64_t h) const {
  const kernels::KeyRange& keys = seen_[static_cast<size_t>(b)];
  return {b, h, h / (H_ / Hk_), keys.begin, keys.end};
}

Unfused::Part Unfused::part(int64_t extent, int64_t index) const {
  return {extent * index / parts_, extent * (index + 1) / parts_};
}

// Parts of one head share its scratch, whoever works on them.
float* Unfused::scratch(const Head& head, int worker) const {
  return floats(scratch_) + (parts_ == 1 ? worker : head.b * H_ + head.h) * T_ * S_;
}

float* Unfused::kept(const Head& head) const { return floats(kept_) + (head.b * H_ + head.h) * T_ * S_; }

// Weights are at [t * S + s], s counted from the first key of the tensor; columns outside [begin, end) are not
// touched.
void Unfused::forward_rows(const Head& head, Part rows, float* weights) {
  const int64_t n = rows.end - rows.begin, keys = head.end - head.begin;
  if (n == 0) return;
  const View<float, 2> scores(weights + rows.begin * S_ + head.begin, {n, keys}, {S_, 1});
  const auto q = rows_of(x_.q, head.b, head.h, rows.begin, n);
  const auto k = rows_of(x_.k, head.b, head.k, head.begin, keys), v = rows_of(x_.v, head.b, head.k, head.begin, keys);
  const auto out = rows_of(x_.out, head.b, head.h, rows.begin, n);
  if (n == 1) {
    rows_times_vector(k, q.data(), scores.data());
  } else {
    kernels::product(q, k.transposed(0, 1), scores, {}, parallel_);
  }
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const kernels::KeyRange seen = visibility_.row(head.b, t);
    float* row = weights + t * S_;
    const int64_t first = seen.empty() ? head.end : seen.begin, last = seen.empty() ? head.end : seen.end;
    std::fill(row + head.begin, row + first, 0.0f);
    std::fill(row + last, row + head.end, 0.0f);
    if (!seen.empty()) softmax_row(row + seen.begin, seen.end - seen.begin, scale_);
  }
  if (n == 1) {
    vector_times_rows(scores.data(), v, out.data());
  } else {
    kernels::product(scores, v, out, {}, parallel_);
  }
}

template <class Weights>
void Unfused::forward_into(const Weights& weights) {
  parallel_.for_each(B_ * H_ * parts_, [&](int64_t task, int worker) {
    const int64_t index = task / parts_;
    const Head one = head(index / H_, index % H_);
    forward_rows(one, part(T_, task % parts_), weights(one, worker));
  });
}

void Unfused::forward() {
  forward_into([&](const Head& one, int worker) { return scratch(one, worker); });
}

void Unfused::forward_keeping() {
  kept_.reserve(static_cast<size_t>(B_ * H_ * T_ * S_) * sizeof(float));
  forward_into([&](const Head& one, int) { return kept(one); });
}

// dP <- dO V^T, dS <- scale * P (dP - sum(P dP)), dQ += dS K
void Unfused::backward_rows(const Head& head, Part rows, const float* weights, float* d_scores) {
  const int64_t n = rows.end - rows.begin, keys = head.end - head.begin;
  if (n == 0) return;
  const View<float, 2> ds(d_scores + rows.begin * S_ + head.begin, {n, keys}, {S_, 1});
  kernels::product(rows_of(x_.d_out, head.b, head.h, rows.begin, n),
                   rows_of(x_.v, head.b, head.k, head.begin, keys).transposed(0, 1), ds, {}, parallel_);
  for (int64_t t = rows.begin; t < rows.end; ++t) {
    const kernels::KeyRange seen = visibility_.row(head.b, t);
    float* row = d_scores + t * S_;
    const int64_t first = seen.empty() ? head.end : seen.begin, last = seen.empty() ? head.end : seen.end;
    std::fill(row + head.begin, row + first, 0.0f);
    std::fill(row + last, row + head.end, 0.0f);
    if (!seen.empty()) softmax_backward_row(weights + t * S_ + first, row + first, last - first, scale_);
  }
  kernels::product(ds, rows_of(x_.k, head.b, head.k, head.begin, keys), rows_of(x_.dq, head.b, head.h, rows.begin, n),
                   {.add = true}, parallel_);
}

// dK += dS^T Q, dV += P^T dO
void Unfused::backward_keys(const Head& head, Part keys, const float* weights, const float* d_scores) {
  const int64_t begin = std::max(keys.begin, head.begin), n = std::min(keys.end, head.end) - begin;
  if (n <= 0) return;
  const auto add_product = [&](const float* all, const View<const float, 4>& x, const View<float, 4>& gradient) {
    const View<const float, 2> by_key(all + begin, {n, T_}, {1, S_});
    kernels::product(by_key, rows_of(x, head.b, head.h, 0, T_), rows_of(gradient, head.b, head.k, begin, n),
                     {.add = true}, parallel_);
  };
  add_product(d_scores, x_.q, x_.dk);
  add_product(weights, x_.d_out, x_.dv);
}

void Unfused::backward() {
  const int64_t group = H_ / Hk_;
  const auto query_head = [&](int64_t key_head, int64_t i) {
    return head(key_head / Hk_, (key_head % Hk_) * group + i);
  };
  if (parts_ == 1) {  // a task adds to the gradients of one key head, so no two tasks write to the same rows
    parallel_.for_each(B_ * Hk_, [&](int64_t key_head, int worker) {
      for (int64_t i = 0; i < group; ++i) {
        const Head one = query_head(key_head, i);
        float* d_scores = scratch(one, worker);
        backward_rows(one, {0, T_}, kept(one), d_scores);
        backward_keys(one, {0, S_}, kept(one), d_scores);
      }
    });
    return;
  }
  for (int64_t index = 0; index < B_ * H_; ++index) {
    const Head one = query_head(index / group, index % group);
    float* d_scores = scratch(one, 0);
    parallel_.for_each(parts_, [&](int64_t i, int) { backward_rows(one, part(T_, i), kept(one), d_scores); });
    parallel_.for_each(parts_, [&](int64_t i, int) { backward_keys(one, part(S_, i), kept(one), d_scores); });
  }
}

}  // namespace heed::bench
