// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the attention layers of one pass did, kept after it: queries, keys, values and the statistics of the rows, from
// which the weights of any query can be computed again. Linear in the length.
// Not here: the weights of whole sentences (weights.h).
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/observer.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// One call of one layer. What its options borrow belongs to the question.
struct HEED_API KeptAttention {
  std::string path{};
  nn::AttentionRole role{};
  Tensor q{}, k{}, v{};  // [B,Hq,T,D]  [B,Hk,S,D]  [B,Hk,S,Dv]
  Tensor gate{}, w{};    // [Hq], [Hq,D], or empty
  Tensor stats{};
  bool projected = false;
  Tensor projection{};  // [width,Hq Dv]: see nn::AttentionEvent
  kernels::AttentionOptions options{};

  int64_t heads() const { return q.shape(1); }
  int64_t queries() const { return q.shape(2); }
  int64_t keys() const { return k.shape(2); }
  int64_t kv_head(int64_t head) const { return head / (q.shape(1) / k.shape(1)); }
  double gate_of(int64_t head) const;
  // The sides that queries and keys are on.
  nn::TextSide query_side() const;
  nn::TextSide key_side() const;

  // [Hq,queries,S] in f64, of the first row of the batch: before the gate.
  Tensor weights(const Context&, std::span<const int64_t> queries) const;
};

// Keeps every call of every layer, in order.
class HEED_API AttentionKeeper final : public nn::ObserverBeside {
 public:
  explicit AttentionKeeper(nn::Observer* other = nullptr) : ObserverBeside(other) {}
  void attention(const nn::AttentionEvent&) override;
  const std::vector<KeptAttention>& layers() const { return layers_; }

 private:
  std::vector<KeptAttention> layers_;
};

// Of a question's pass: those layers whose queries are the tokens of a text. Throws Error where there are none.
HEED_API std::vector<KeptAttention> kept_attention(const nn::Pass&, const Question&);
// The same of what has been kept already.
HEED_API std::vector<KeptAttention> of_texts(std::vector<KeptAttention>, const Question&);

}  // namespace heed::analysis
