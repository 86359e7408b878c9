// SPDX-License-Identifier: Apache-2.0
// The stages of a score between the product and the softmax: softcap, ALiBi, bias, boolean mask; and dropout's mask.
// Scores are in base 2 here. Bias and boolean mask, [query][key] in memory, are transposed into a tile [key][query],
// where -inf means 'masked'.
#if defined(HEED_KERNELS_ATTENTION_STAGES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_STAGES_INL_H_
#undef HEED_KERNELS_ATTENTION_STAGES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_STAGES_INL_H_
#endif

#include <numbers>

#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/plan.h"
#include "heed/kernels/attention/tiles-inl.h"
#include "heed/kernels/philox-inl.h"
#include "heed/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The stages of one head's scores.
struct HeadStages {
  float factor;  // of the product: scale * log2(e), or scale / softcap where there is one
  float cap;     // softcap * log2(e); 0: none
  float slope;   // of ALiBi, times log2(e); 0: none
  // The head's bias and boolean mask, and their strides over queries and keys; null: none.
  const float* bias;
  int64_t bias_t, bias_s;
  const bool* dense;
  int64_t dense_t, dense_s;
  Dropout dropout;
  int64_t head;  // b * Hq + h, for dropout

  HeadStages(const AttentionPlan::Details& plan, const AttentionInputs& in, int64_t b, int64_t h)
      : dropout(plan.stages.dropout), head(b * plan.shape.Hq + h) {
    constexpr float kLog2e = std::numbers::log2e_v<float>;
    const ScoreStages& stages = plan.stages;
    factor = stages.softcap == 0 ? plan.scale * kLog2e : plan.scale / stages.softcap;
    cap = stages.softcap * kLog2e;
    slope = stages.slopes.empty() ? 0 : stages.slopes[static_cast<size_t>(h)] * kLog2e;
    const View<const float, 4> wide = broadcast(in.bias, plan.shape);
    bias = wide.at(b, h);
    bias_t = wide.stride(2);
    bias_s = wide.stride(3);
    dense = stages.dense.at(b, h);
    dense_t = stages.dense.stride(2);
    dense_s = stages.dense.stride(3);
  }

  bool plain() const { return cap == 0 && slope == 0 && !hides(); }   // no stage changes a score
  bool hides() const { return bias != nullptr || dense != nullptr; }  // may mask pairs inside the visible ranges
};

// Loads what the stages read of a head and a block of queries: w, times the factor that the product's queries get, and
// the queries' positions. The block's count is that of whole tiles.
inline void load_stage_scratch(const AttentionPlan::Details& plan, const AttentionInputs& in, const HeadStages& stages,
                               const QueryBlock& queries, const StageScratch& to) {
  const AttentionShape& s = plan.shape;
  for (int64_t a = 0; plan.stages.additive && a < round_up(s.D, kMaxLanes); ++a) {
    to.w[a] = a < s.D ? in.w(queries.h, a) * stages.factor : 0;
  }
  for (int64_t i = 0; !plan.stages.slopes.empty() && i < queries.count; ++i) {
    to.position[i] = static_cast<float>(plan.visibility.position(queries.b, std::min(queries.t + i, s.T - 1)));
  }
}

// The softcap: x <- cap tanh(x).
template <int N>
HWY_INLINE void cap_scores(F d, const HeadStages& stages, V (&x)[N]) {
  if (stages.cap == 0) return;
  tanh(d, x);
  for (int i = 0; i < N; ++i) x[i] = hn::Mul(x[i], hn::Set(d, stages.cap));
}

// ALiBi, bias and boolean mask on R rows of a tile, from `key` on. position: of the tile's queries; extra: these rows
// of what load_extra wrote.
template <int R, int NV>
HWY_INLINE void add_terms(F d, const HeadStages& stages, int64_t key, const float* position, const float* extra,
                          V (&x)[R * NV]) {
  if (stages.slope != 0) {
    const V slope = hn::Set(d, stages.slope);
    unrolled<R * NV>([&](auto i) HEED_INLINED {
      const int64_t key_of_i = key + i / NV;
      const V at = hn::Set(d, static_cast<float>(key_of_i));
      const V distance = hn::Abs(hn::Sub(hn::Load(d, position + i % NV * kLanes), at));
      x[i] = hn::NegMulAdd(slope, distance, x[i]);
    });
  }
  if (stages.hides()) {
    const V hidden = hn::Set(d, kHidden);
    unrolled<R * NV>([&](auto i) HEED_INLINED {
      const V term = hn::Load(d, extra + i / NV * kTile + i % NV * kLanes);
      // Selected, not added: a masked score may be NaN.
      x[i] = hn::IfThenElse(hn::Eq(term, hidden), hidden, hn::Add(x[i], term));
    });
  }
}

// One query's bias (or 0) where the boolean mask lets it see, -inf where not, for `keys` keys. Returns whether it sees
// any.
inline bool masked_bias(F d, const HeadStages& stages, int64_t t, int64_t first, int64_t keys, float* to) {
  const float* bias = stages.bias ? stages.bias + t * stages.bias_t + first * stages.bias_s : nullptr;
  const bool* visible = stages.dense + t * stages.dense_t + first * stages.dense_s;
  int64_t i = 0;
  bool any = false;
  if (stages.dense_s == 1 && (!bias || stages.bias_s == 1)) {
    const hn::Rebind<uint8_t, F> d8;
    const hn::RebindToSigned<F> di;
    auto all = hn::Zero(di);
    for (; i + kLanes <= keys; i += kLanes) {
      const auto seen = hn::PromoteTo(di, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(visible + i)));
      const V value = bias ? hn::LoadU(d, bias + i) : hn::Zero(d);
      const auto mask = hn::RebindMask(d, hn::Ne(seen, hn::Zero(di)));
      hn::StoreU(hn::IfThenElse(mask, value, hn::Set(d, kHidden)), d, to + i);
      all = hn::Or(all, seen);
    }
    any = !hn::AllTrue(di, hn::Eq(all, hn::Zero(di)));
  }
  for (; i < keys; ++i) {
    const float value = bias ? bias[i * stages.bias_s] : 0;
    to[i] = visible[i * stages.dense_s] ? value : kHidden;
    any = any || visible[i * stages.dense_s];
  }
  return any;
}

// Bias and boolean mask of a tile, whose first query is t, over the keys of its current block: extra[key][query].
// Returns whether some pair may be visible. `stage` is scratch.
inline bool load_extra(F d, const HeadStages& stages, const Tile& tile, int64_t t, float* stage, float* extra) {
  const V log2e = hn::Set(d, std::numbers::log2e_v<float>);
  const bool dense = stages.dense != nullptr;
  const int64_t first = tile.first, keys = tile.rows;
  bool any = !dense;
  for (int64_t n = 0; n < tile.count; n += kLanes) {
    const int64_t queries = std::min(kLanes, tile.count - n);
    if (!dense && stages.bias_s == 1) {
      const Rows rows{stages.bias + (t + n) * stages.bias_t + first, stages.bias_t};
      rows_to_lanes(d, {rows, queries, keys}, log2e, extra + n, stage);
      continue;
    }
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t query = t + n + std::min(i, queries - 1);
      if (dense) {
        any = masked_bias(d, stages, query, first, keys, stage + i * keys) || any;
      } else {
        std::fill_n(stage + i * keys, keys, stages.bias[query * stages.bias_t]);
      }
    }
    transpose_in(d, {stage, keys}, keys, log2e, {extra + n, kTile});
  }
  return any;
}

// Dropout's mask for a vector of queries from t on, and `keys` keys from `first` on: keep[key][query] has all bits set
// where a pair is kept, and none where it is dropped.
inline void draw_dropout(F d, const HeadStages& stages, int64_t t, int64_t first, int64_t keys, float* keep) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  for (int64_t i = 0; i < keys; ++i) {
    const uint32_t bits = stages.dropout.keeps(stages.head, t, first + i) ? ~0u : 0u;
    std::memcpy(keep + i * kTile, &bits, sizeof(bits));
  }
#else
  const hn::RebindToUnsigned<F> du;
  const hn::RebindToSigned<F> di;
  const auto last_dropped = hn::Set(di, static_cast<int32_t>(stages.dropout.threshold()) - 1);
  constexpr int64_t kDraw = Dropout::kKeysADraw;
  for (int64_t from = first / kDraw * kDraw; from < first + keys; from += kDraw) {
    const Block4 counter = Dropout::counter(stages.head, t, from);
    VU words[4] = {hn::Set(du, counter[0]), hn::Iota(du, counter[1]), hn::Set(du, counter[2]), hn::Set(du, counter[3])};
    philox_lanes(words, stages.dropout.seed);
    for (int64_t j = std::max<int64_t>(0, first - from); j < std::min(kDraw, first + keys - from); ++j) {
      const VU word = words[j / 2];
      const VU bits = j % 2 == 0 ? hn::And(word, hn::Set(du, 0xFFFFu)) : hn::ShiftRight<16>(word);
      const auto kept = hn::VecFromMask(di, hn::Gt(hn::BitCast(di, bits), last_dropped));
      hn::Store(hn::BitCast(d, kept), d, keep + (from + j - first) * kTile);
    }
  }
#endif
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
