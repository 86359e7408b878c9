// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/attention_weights.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "heed/base/allocator.h"
#include "heed/base/error.h"
#include "heed/kernels/attention/observe.h"

namespace heed::nn {
namespace {

int64_t queries_of(const AttentionEvent& event) { return event.stats.shape(2); }

void check_queries(const AttentionEvent& event, std::span<const int64_t> queries) {
  const int64_t T = queries_of(event);
  for (size_t i = 0; i < queries.size(); ++i) {
    if (queries[i] >= 0 && queries[i] < T) continue;
    throw Error("attention weights: queries[" + std::to_string(i) + "] is " + std::to_string(queries[i]) +
                ", expected 0 to " + std::to_string(T - 1) + " (T - 1)");
  }
}

// The f64 twin computes all queries or none.
Tensor all_weights_f64(const AttentionEvent& event) {
  const kernels::reference::Inputs& in = event.inputs_f64;
  const Dims<4>& q = in.q.shape();
  const Tensor out = Tensor::uninitialised({q[0], q[1], q[2], in.v.shape(3)}, DType::f64);
  Tensor weights = Tensor::uninitialised({q[0], q[1], q[2], in.k.shape(2)}, DType::f64);
  kernels::reference::attention_forward(in, {.out = out.view<double, 4>(), .weights = weights.view<double, 4>()},
                                        event.options);
  return weights;
}

Tensor weights_f64(const AttentionEvent& event, std::span<const int64_t> queries) {
  const Tensor all = all_weights_f64(event);
  const int64_t T = all.shape(2), S = all.shape(3), chosen = std::ssize(queries);
  Tensor rows = Tensor::uninitialised(all.shape().with(2, chosen), DType::f64);
  for (int64_t head = 0; head < all.shape(0) * all.shape(1); ++head) {
    for (int64_t i = 0; i < chosen; ++i) {
      std::copy_n(all.data<double>() + (head * T + queries[static_cast<size_t>(i)]) * S, S,
                  rows.data<double>() + (head * chosen + i) * S);
    }
  }
  return rows;
}

}  // namespace

Tensor attention_weights(const AttentionEvent& event, Workspace& workspace, Parallel& parallel) {
  if (event.dtype() == DType::f64) return all_weights_f64(event);
  CachedVector<int64_t> queries(static_cast<size_t>(queries_of(event)));
  std::iota(queries.begin(), queries.end(), int64_t{0});
  return attention_weights(event, queries, workspace, parallel);
}

Tensor attention_weights(const AttentionEvent& event, std::span<const int64_t> queries, Workspace& workspace,
                         Parallel& parallel) {
  check_queries(event, queries);
  if (event.dtype() == DType::f64) return weights_f64(event, queries);
  const kernels::AttentionInputs& in = event.inputs;
  Tensor rows = Tensor::uninitialised({in.q.shape(0), in.q.shape(1), std::ssize(queries), in.k.shape(2)});
  if (rows.size() == 0) return rows;
  kernels::attention_observe(in, event.stats.view<const float, 4>(),
                             {.queries = queries, .rows = rows.view<float, 4>()}, event.options, workspace, parallel);
  return rows;
}

}  // namespace heed::nn
