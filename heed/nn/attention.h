// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention layer: any score, with or without projections, any number of heads, self, masked or cross, and one step
// at a time over a cache. Without projections it is the parameter-free y_i = sum_j softmax_j(x_i . x_j) x_j, by the
// same code.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/nn/layers.h"
#include "heed/nn/state.h"
#include "heed/ops/attention.h"

namespace heed::nn {

// dot: q . k. scaled: over sqrt of the head's width. bilinear: q W . k. additive: w . tanh(q + k).
enum class Score : uint8_t { dot, scaled, bilinear, additive };

constexpr auto enum_names(Score) {
  return std::to_array<EnumName<Score>>(
      {{"dot", Score::dot}, {"scaled", Score::scaled}, {"bilinear", Score::bilinear}, {"additive", Score::additive}});
}

// Widths, heads, score and positions of an attention layer.
struct AttentionOptions {
  int64_t width{0};  // of the model: of queries and of the output
  int64_t heads{1};
  int64_t kv_heads{0};   // 0: as many as heads
  int64_t key_width{0};  // of a head; 0: width / heads
  int64_t value_width{0};
  int64_t source_width{0};  // of what keys and values are made from; 0: width
  Score score{Score::scaled};
  bool projections{true};  // of q, k, v and the output; without them the inputs are used as they are
  bool bias{true};         // of the projections
  float dropout{0};
  bool rotary{false};  // queries and keys are rotated by their positions (RoPE)
  double rotary_base{10000};
  int64_t positions{4096};  // that the rotary tables have
  bool alibi{false};
};

// The role, mask and position of one call. Spans are borrowed until the backward pass is done.
struct AttentionCall {
  AttentionRole role{AttentionRole::self};
  kernels::Mask mask{};
  int64_t position{0};  // of the first query; the first key is at 0
};

// Calls the observer, if there is one. `stats` are those of ops::attention() of `a`; `projection` is that of the heads'
// outputs, null: none. Internal to layers.
HEED_API void report_attention(Pass&, const std::string& path, const ops::AttentionArguments& a, const Tensor& stats,
                               const AttentionCall&, const Linear* projection = nullptr);

// Multi-head attention: its options, its path in the model and its parameters.
struct HEED_API Attention {
  AttentionOptions options;
  std::string path;               // reported to observers: "encoder.0.self"
  Linear q, k, v, out, bilinear;  // empty where not used
  Parameter w;                    // [heads, key_width], additive

  Attention() = default;
  Attention(const AttentionOptions&, std::string path, Init init);

  // x [B,T,width] attends to source [B,S,source_width].
  Var operator()(Pass&, const Var& x, const Var& source, const AttentionCall&) const;
  // Self-attention over the tokens so far: x [B,n,width] is appended to the cache first. Where rows have different
  // lengths, n is 1. Inference.
  Var step(Pass&, const Var& x, KvCache&) const;
  // Keys and values of a source, computed once, and attention to them. Inference.
  KvCache remember(Pass&, const Var& source) const;
  Var step(Pass&, const Var& x, const KvCache& source, const AttentionCall&) const;

  void visit(auto&& each) {
    each("q", q), each("k", k), each("v", v), each("out", out), each("bilinear", bilinear), each("w", w);
  }

 private:
  struct KeysValues {
    Var k, v;
  };
  Var project_query(Pass&, const Var& x, int64_t position) const;
  KeysValues project_source(Pass&, const Var& source, int64_t position) const;
  Var rotated(Pass&, const Var& x, int64_t heads, int64_t position) const;
  // Each row at its own position, one token each.
  Var rotated(Pass&, const Var& x, int64_t heads, std::span<const int64_t> positions) const;
  kernels::AttentionOptions kernel_options(Pass&, const AttentionCall&) const;
  Var attend(Pass&, const Var& query, const KeysValues&, const AttentionCall&) const;
  Var attend(Pass&, const Var& query, const KvCache&, const AttentionCall&) const;
  Var step_each(Pass&, const Var& x, KvCache&) const;
  void check_inference(const Pass&) const;

  std::vector<float> slopes_;
  ops::RotaryTables tables_;
};

}  // namespace heed::nn
