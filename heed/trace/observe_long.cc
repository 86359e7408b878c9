// SPDX-License-Identifier: Apache-2.0
// What is kept of a long text: with the fused observers, in memory linear in its length.
#include <algorithm>

#include "heed/base/error.h"
#include "heed/kernels/attention/observe.h"
#include "heed/trace/event_reader.h"
#include "heed/trace/recorded.h"

namespace heed::trace {
namespace {

// Appends entry (b, head) of [B,Hq,...] for each head that was chosen, from its numbers [first, first + count).
template <class T, class To>
void take(const Tensor& from, int64_t b, std::span<const int64_t> heads, int64_t first, int64_t count,
          std::vector<To>& to) {
  const int64_t each = from.size() / (from.shape(0) * from.shape(1));
  for (const int64_t head : heads) {
    const T* numbers = from.data<T>() + (b * from.shape(1) + head) * each + first;
    for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<To>(numbers[i]));
  }
}

}  // namespace

void observe_long(const nn::AttentionEvent& event, int64_t b, const RecordedLayer& layer,
                  const RecorderOptions& options, Workspace& workspace, Parallel& parallel, NodeRows& to) {
  const EventReader reader(event);
  const int64_t T = reader.queries(), S = reader.keys(), H = reader.heads(), B = event.stats.shape(0);
  if (event.dtype() != DType::f32) {
    throw Error("trace: a model in f64 came with " + std::to_string(std::max(T, S)) + " tokens, expected at most " +
                std::to_string(options.full) + ": longer texts are observed in f32 alone");
  }
  const int64_t K = options.top, M = std::min(options.map, T), N = std::min(options.map, S);
  const int64_t first = to.begin - to.position;
  {
    const Tensor out = Tensor::uninitialised({B, H, T, reader.value_width()}),
                 entropy = Tensor::uninitialised({B, H, T});
    const Tensor top_weights = Tensor::uninitialised({B, H, T, K});
    const Tensor top_keys = Tensor::uninitialised({B, H, T, K}, DType::i32);
    kernels::attention_forward(event.inputs,
                               {.out = out.view<float, 4>(),
                                .entropy = entropy.view<float, 3>(),
                                .top_weights = top_weights.view<float, 4>(),
                                .top_keys = top_keys.view<int32_t, 4>()},
                               event.options, workspace, parallel);
    take<float>(entropy, b, layer.heads, first, to.kept, to.entropy);
    take<float>(top_weights, b, layer.heads, first * K, to.kept * K, to.top_weights);
    take<int32_t>(top_keys, b, layer.heads, first * K, to.kept * K, to.top_keys);  // -1 becomes kNoKey
  }
  for (size_t i = 0; i < to.entropy.size(); ++i) to.max.push_back(to.top_weights[i * static_cast<size_t>(K)]);
  const Tensor mean = Tensor::uninitialised({B, H, M, N}), max = Tensor::uninitialised({B, H, M, N});
  const Tensor received = Tensor::uninitialised({B, H, S});
  kernels::attention_observe(
      event.inputs, event.stats.view<const float, 4>(),
      {.received = received.view<float, 3>(), .map_mean = mean.view<float, 4>(), .map_max = max.view<float, 4>()},
      event.options, workspace, parallel);
  to.map_rows = M, to.map_columns = N;
  take<float>(mean, b, layer.heads, 0, M * N, to.map_mean);
  take<float>(max, b, layer.heads, 0, M * N, to.map_max);
  take<float>(received, b, layer.heads, 0, S, to.received);
}

}  // namespace heed::trace
