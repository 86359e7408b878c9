// SPDX-License-Identifier: Apache-2.0
#pragma once
// What fused attention is compared with: a product, a vectorised softmax, a product, with the T x S weights stored. The
// products are those of heed/kernels/product.h, over every key that some query may see; the softmax is over the visible
// ones. No recomputation in backward: it reads the weights that forward kept, and so does 8 flops where the fused one
// does 10.
#include <cstdint>
#include <vector>

#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::bench {

struct UnfusedTensors {
  View<const float, 4> q, k, v;  // [B,Hq,T,D]  [B,Hk,S,D]  [B,Hk,S,Dv]
  View<float, 4> out;            // [B,Hq,T,Dv], overwritten
  View<const float, 4> d_out;    // [B,Hq,T,Dv]
  View<float, 4> dq, dk, dv;     // accumulated into
};

class Unfused {
 public:
  Unfused(const UnfusedTensors&, const kernels::Visibility&, Parallel&);

  // Weights go to a worker's scratch and are overwritten by the next head.
  void forward();
  // The same, with the weights of all heads kept for backward. They are allocated by the first call.
  void forward_keeping();
  // After forward_keeping.
  void backward();

 private:
  struct Head {
    int64_t b, h, k;     // batch, query head, key head
    int64_t begin, end;  // keys that some query of the batch sees
  };
  // Queries or keys of one head that one task works on.
  struct Part {
    int64_t begin, end;
  };

  Head head(int64_t b, int64_t h) const;
  Part part(int64_t extent, int64_t index) const;
  template <class Weights>
  void forward_into(const Weights&);
  void forward_rows(const Head&, Part rows, float* weights);
  void backward_rows(const Head&, Part rows, const float* weights, float* d_scores);
  void backward_keys(const Head&, Part keys, const float* weights, const float* d_scores);
  float* scratch(const Head&, int worker) const;
  float* kept(const Head&) const;

  UnfusedTensors x_;
  const kernels::Visibility& visibility_;
  Parallel& parallel_;
  int64_t B_, H_, Hk_, T_, S_, D_, Dv_;
  int64_t parts_;  // that each head is cut into: more than one where there are fewer heads than threads
  float scale_;
  std::vector<kernels::KeyRange> seen_;  // by batch: the keys that some query sees
  Workspace scratch_, kept_;
};

}  // namespace heed::bench
