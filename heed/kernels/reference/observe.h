// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of what observers say of attention (kernels/attention/observe.h), from the whole matrix of weights
// that the twin's forward pass gives. Rows at the other stages are among that pass's outputs.
#include "heed/base/export.h"
#include "heed/base/view.h"

namespace heed::kernels::reference {

// An empty view: not wanted. All are overwritten.
struct Observations {
  View<double, 3> entropy{};      // [B,H,T], in nats: -sum_s weight_s ln weight_s, where 0 ln 0 = 0
  View<double, 4> top_weights{};  // [B,H,T,K]: the K largest weights of each row, falling; of equals the lower key
  View<int32_t, 4> top_keys{};    // [B,H,T,K]: their keys; -1, with weight 0, where fewer are above 0
  View<double, 3> received{};     // [B,H,S]: the sum of each column
  // [B,H,M,N]: cell (i, j) pools queries [i T / M, (i + 1) T / M) and keys [j S / N, (j + 1) S / N), rounded down and
  // each at least one wide; 0 where there are no queries or no keys.
  View<double, 4> map_mean{}, map_max{};
};

// weights [B,H,T,S]: each row sums to 1, or is 0 where its query sees nothing, or NaN at every key that it sees. NaN
// reaches all that it touches; the keys of a row of NaN are the first that it sees.
HEED_API void attention_observe(const View<const double, 4>& weights, const Observations&);

}  // namespace heed::kernels::reference
