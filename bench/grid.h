// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows of `heed bench attention`: which shapes, masks, layouts and passes are measured, and what they count as.
#include <cstdint>
#include <string>
#include <vector>

#include "heed/base/half.h"
#include "heed/kernels/attention/mask.h"

namespace heed::bench {

enum class Pass { forward, backward, forward_backward, decode };
enum class Layout { bhtd, bthd, packed };  // [B,H,T,D], [B,T,H,D], [B,T,(Hq + 2 Hk) D]
enum class MaskKind { none, causal, window128, lengths };
// What else is asked of attention.
enum class Extra {
  none,
  alibi,
  dense,     // a boolean mask [B,H,T,S] that hides a tenth of the pairs, at random, so that nothing can be skipped
  bias,      // [B,H,T,S]; backward has its gradient
  dropout,   // of 0.1
  softcap,   // at 30
  top8,      // forward: the entropy of each row and its eight strongest keys
  map256,    // forward: the attention that keys receive and a map pooled to 256 x 256, mean and max, by a second pass
  additive,  // the score sum_a w_a tanh(q_a + k_a), with A = D
  paged16,   // k and v through a block table, 16 rows a block
  paged128,
};

const char* to_string(Pass);
const char* to_string(Layout);
const char* to_string(MaskKind);
const char* to_string(Extra);

// One problem to be solved; Dv = D.
struct Case {
  int64_t B = 1, H = 8, Hk = 8, T = 512, S = 512, D = 64;
  Layout layout = Layout::bhtd;
  MaskKind mask = MaskKind::none;
  DType keys = DType::f32;  // how k and v are stored
  Extra extra = Extra::none;

  bool operator==(const Case&) const = default;
};

struct Row {
  Pass pass = Pass::forward;
  Case problem;
};

// What a case is held against, a visible score. An extra: the same case without it. Grouped heads, windows, lengths and
// keys of 16 bits: Case{}, or for a single query the same case in f32. The case itself where there is nothing to
// compare.
Case plain_case(const Case&);

// Keys that are real in a row of mask `lengths`: about three quarters, not a multiple of any tile.
std::vector<int64_t> key_lengths(const Case&);
// The spans that a mask of lengths refers to are the caller's.
kernels::Mask mask_of(const Case&, const std::vector<int64_t>& lengths);

// Of all heads. A dense mask counts as if it hid nothing: every pair is scored, and its ratio is one of times.
int64_t visible_scores(const Case&);
// 4D a visible score forward and decode, 10D backward, 14D both: 4BHTSD, 10BHTSD, causal 2T(T+1)D and 5T(T+1)D a head.
// An extra adds nothing, and the additive score counts as the product in its place: tanhs are counted apart.
double flops(Pass, const Case&);
int64_t tanhs(const Case&);  // that forward evaluates for an additive score: D a visible one

// As in "forward BHTD causal 1,8,512,64": pass, layout, mask, then B,H,T,D; H as Hq:Hk and T as TxS where they differ;
// then how k and v are stored, if not in f32, and the extra, if any.
std::string name(const Row&);

std::vector<Row> attention_grid();
// The row of that name, or the rows in whose names every word of the filter occurs. Throws Error where none is left.
std::vector<Row> select(const std::vector<Row>&, const std::string& filter);

}  // namespace heed::bench
