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

const char* to_string(Pass);
const char* to_string(Layout);
const char* to_string(MaskKind);

// One problem to be solved; Dv = D.
struct Case {
  int64_t B = 1, H = 8, Hk = 8, T = 512, S = 512, D = 64;
  Layout layout = Layout::bhtd;
  MaskKind mask = MaskKind::none;
  DType keys = DType::f32;  // how k and v are stored

  bool operator==(const Case&) const = default;
};

struct Row {
  Pass pass = Pass::forward;
  Case problem;
};

// What grouped heads, windows, lengths and keys of 16 bits are held against, a visible score: the plain case, or for
// a single query the same case in f32. The case itself where there is nothing to compare.
Case plain_case(const Case&);

// Keys that are real in a row of mask `lengths`: about three quarters, not a multiple of any tile.
std::vector<int64_t> key_lengths(const Case&);
// The spans that a mask of lengths refers to are the caller's.
kernels::Mask mask_of(const Case&, const std::vector<int64_t>& lengths);

int64_t visible_scores(const Case&);  // of all heads
// 4D a visible score forward and decode, 10D backward, 14D both: 4BHTSD, 10BHTSD, causal 2T(T+1)D and 5T(T+1)D a head.
double flops(Pass, const Case&);

// As in "forward BHTD causal 1,8,512,64": pass, layout, mask, then B,H,T,D; H as Hq:Hk and T as TxS where they differ;
// then how k and v are stored, if not in f32.
std::string name(const Row&);

std::vector<Row> attention_grid();
// The rows in whose names every word of the filter occurs. Throws Error where none is left.
std::vector<Row> select(const std::vector<Row>&, const std::string& filter);

}  // namespace heed::bench
