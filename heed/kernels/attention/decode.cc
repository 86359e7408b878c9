// SPDX-License-Identifier: Apache-2.0
// Forward for a single query, bound by reading K and V once. The head width is in SIMD lanes. Keys are read in blocks,
// as four streams at a time: a core that follows one stream waits for memory half of the time. The plan divides long
// sequences of keys into chunks; their partial results are combined in order at the end.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/decode.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/flush_denormals.h"
#include "heed/kernels/attention/forward.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Stores the sum of a vector's 128-bit blocks.
template <class D>
HWY_INLINE void store_block_sum(D d, hn::Vec<D> v, float* to) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_block_sum(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}
#endif

// Rows of a block are read in an order in which streams alternate, and are numbered in that order: p. In strided
// memory, row p is (p mod 4) * jump + (p / 4) * step: four streams that are jump rows apart (step 1), or one stream
// (jump 1, step 4).
constexpr int64_t kStreams = 4;
struct Order {
  int64_t jump, step;
  int64_t row(int64_t p) const { return p % kStreams * jump + p / kStreams * step; }
};

// Strided rows in that order; the hardware prefetcher follows the streams.
template <class T>
struct StridedRows {
  using Element = T;
  RowsOf<const T> rows;
  Order order;
  const T* at(int64_t p) const { return rows.row(order.row(p)); }
  void prefetch_after(int64_t, int64_t) const {}
  StridedRows from_column(int64_t c) const { return {{rows.data + c, rows.stride}, order}; }
};

constexpr int64_t kPrefetchDistance = 4;  // rows of a stream, from the one that is read to the one that is prefetched

// Paged rows in that order, by a list of their addresses.
template <class T>
struct ListedRows {
  using Element = T;
  static constexpr int64_t kMost = DecodeScratch::kKeys;
  const T* const* rows;  // with kStreams * kPrefetchDistance more at the end, which are prefetched and not read
  int64_t column;
  const T* at(int64_t p) const { return rows[p] + column; }
  void prefetch_after(int64_t p, int64_t columns) const {
    prefetch_row(rows[p + kStreams * kPrefetchDistance] + column, columns);
  }
  ListedRows from_column(int64_t c) const { return {rows, column + c}; }
};

// `each` rows of each of `streams` streams, which begin at key `first` and `apart` keys from each other.
struct KeyStreams {
  int64_t first, apart, streams, each;
  int64_t count() const { return streams * each; }
};

// Makes the list.
template <class T>
class RowList {
 public:
  ListedRows<T> fill(const KvRows& from, KeyStreams keys) {
    const auto [first, apart, streams, each] = keys;
    for (int64_t stream = 0; stream < streams; ++stream) {
      for (int64_t i = 0, run; i < each; i += run) {
        const int64_t key = first + stream * apart + i;
        run = from.kv.run(key, each - i);
        const RowsOf<const T> rows = from.stored<T>(key);
        for (int64_t j = 0; j < run; ++j) rows_[(i + j) * streams + stream] = rows.row(j);
      }
    }
    std::fill_n(rows_ + keys.count(), kStreams * kPrefetchDistance, rows_[keys.count() - 1]);
    return {rows_, 0};
  }

 private:
  const T* rows_[ListedRows<T>::kMost + kStreams * kPrefetchDistance];
};

// scores[i] = q . k_i for the R rows from p on, R one or a multiple of four; q is padded with zeros.
template <int R, class OrderedRows>
HWY_INLINE void dot_rows(F d, const float* HWY_RESTRICT q, const OrderedRows& k, int64_t p, int64_t D, float* scores) {
  const typename OrderedRows::Element* HWY_RESTRICT row[R];
  V acc[R];
  for (int r = 0; r < R; ++r) {
    row[r] = k.at(p + r);
    k.prefetch_after(p + r, D);
    acc[r] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + kLanes <= D; c += kLanes) {
    const V x = hn::Load(d, q + c);
    for (int r = 0; r < R; ++r) acc[r] = hn::MulAdd(x, load_wide(d, row[r] + c), acc[r]);
  }
  if (c < D) {
    const V x = hn::Load(d, q + c);
    for (int r = 0; r < R; ++r) acc[r] = hn::MulAdd(x, load_part(d, row[r] + c, D - c), acc[r]);
  }
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < R; ++r) scores[r] = hn::GetLane(acc[r]);
#else
  if constexpr (R % 4 == 0) {
    for (int r = 0; r < R; r += 4) {
      transpose_blocks(d, acc[r], acc[r + 1], acc[r + 2], acc[r + 3]);
      const V sum = hn::Add(hn::Add(acc[r], acc[r + 1]), hn::Add(acc[r + 2], acc[r + 3]));
      store_block_sum(d, sum, scores + r);
    }
  } else {
    for (int r = 0; r < R; ++r) scores[r] = hn::GetLane(hn::SumOfLanes(d, acc[r]));
  }
#endif
}

// The weight of a masked key: its row of v is skipped, whatever it holds.
constexpr float kSkipped = -1;

// The weights of a block of keys, and the factor of the output so far.
struct BlockWeights {
  const float* weights;
  int64_t keys;
  float rescale;
};

// out <- rescale * out + sum_p weights[p] v_p over C vectors of columns, of which `left` columns are not padding.
template <int C, class OrderedRows>
HWY_INLINE void accumulate_values(F d, const OrderedRows& v, BlockWeights block, int64_t left,
                                  float* HWY_RESTRICT out) {
  const float* HWY_RESTRICT weights = block.weights;
  const int64_t keys = block.keys;
  V acc[C];
  for (int c = 0; c < C; ++c) acc[c] = hn::Mul(hn::Set(d, block.rescale), hn::Load(d, out + c * kLanes));
  for (int64_t p = 0; p < keys; ++p) {
    if (weights[p] == kSkipped) continue;
    const typename OrderedRows::Element* HWY_RESTRICT row = v.at(p);
    const V w = hn::Set(d, weights[p]);
    if (left >= C * kLanes) {
      v.prefetch_after(p, C * kLanes);
      for (int c = 0; c < C; ++c) acc[c] = hn::MulAdd(w, load_wide(d, row + c * kLanes), acc[c]);
    } else {
      for (int c = 0; c < C; ++c) acc[c] = hn::MulAdd(w, load_part(d, row + c * kLanes, left - c * kLanes), acc[c]);
    }
  }
  for (int c = 0; c < C; ++c) hn::Store(acc[c], d, out + c * kLanes);
}

// Softcap, ALiBi, bias and boolean mask on the scores of `keys` keys from `first` on, the keys in lanes.
inline void stage_scores(F d, const HeadStages& stages, float position, int64_t first, int64_t keys, float* scores) {
  for (int64_t i = 0; i < keys; i += kLanes) {
    V x[1] = {hn::Load(d, scores + i)};
    cap_scores(d, stages, x);
    if (stages.slope != 0) {
      const V at = hn::Iota(d, static_cast<float>(first + i));
      x[0] = hn::NegMulAdd(hn::Set(d, stages.slope), hn::Abs(hn::Sub(hn::Set(d, position), at)), x[0]);
    }
    hn::Store(x[0], d, scores + i);
  }
  for (int64_t i = 0; stages.hides() && i < keys; ++i) {
    const float bias = stages.bias ? stages.bias[(first + i) * stages.bias_s] : 0;
    const bool hidden = bias == kHidden || (stages.dense != nullptr && !stages.dense[(first + i) * stages.dense_s]);
    scores[i] = hidden ? kHidden : scores[i] + bias * std::numbers::log2e_v<float>;
  }
}

// After the softmax: dropped weights become 0, masked ones kSkipped. `first` is the index of the first key.
inline void drop_weights(const HeadStages& stages, int64_t first, int64_t keys, float* weights) {
  for (int64_t i = 0; i < keys; ++i) {
    if (stages.hides()) {
      const bool hidden = (stages.bias && stages.bias[(first + i) * stages.bias_s] == kHidden) ||
                          (stages.dense != nullptr && !stages.dense[(first + i) * stages.dense_s]);
      if (hidden) weights[i] = kSkipped;
    }
    if (weights[i] != kSkipped && !stages.dropout.keeps(stages.head, 0, first + i)) weights[i] = 0;
  }
}

// One query head, as it advances over the keys in blocks of at most DecodeScratch::kKeys.
struct DecodeRow {
  const AttentionShape& s;
  const HeadStages& stages;
  bool plain;
  const float *q, *w;  // padded with zeros; w: of the additive score, or null
  float position;
  float* scores;  // of a block, then its weights
  float &max, &sum;
  float* out;

  // The scores of `keys` keys.
  template <class OrderedRows>
  HWY_INLINE void score(F d, const OrderedRows& k, int64_t keys) const {
    int64_t i = 0;
    if (w) {
      for (; i + 2 <= keys; i += 2) {
        const typename OrderedRows::Element* const rows[] = {k.at(i), k.at(i + 1)};
        additive_dot(d, q, rows, w, s.D, scores + i);
      }
      for (; i < keys; ++i) {
        const typename OrderedRows::Element* const rows[] = {k.at(i)};
        additive_dot(d, q, rows, w, s.D, scores + i);
      }
      return;
    }
    for (; i + 8 <= keys; i += 8) dot_rows<8>(d, q, k, i, s.D, scores + i);
    for (; i < keys; ++i) dot_rows<1>(d, q, k, i, s.D, scores + i);
  }

  // The scores of a block become weights. With stages, the keys have to be in their natural order, from `first` on.
  HWY_INLINE BlockWeights weigh(F d, int64_t first, int64_t keys) const {
    const int64_t whole = round_up(keys, kLanes);
    if (!plain) stage_scores(d, stages, position, first, keys, scores);
    for (int64_t j = keys; j < whole; ++j) scores[j] = kHidden;
    V m = hn::Set(d, max);
    for (int64_t j = 0; j < whole; j += kLanes) m = hn::Max(m, hn::Load(d, scores + j));
    m = hn::Ceil(hn::MaxOfLanes(d, m));
    V l = hn::Zero(d);
    for (int64_t j = 0; j < whole; j += kLanes) {
      const V e = exp2(d, hn::Sub(hn::Load(d, scores + j), m));
      hn::Store(e, d, scores + j);
      l = hn::Add(l, e);
    }
    const float rescale = hn::GetLane(exp2_integer(d, hn::Sub(hn::Set(d, max), m)));
    sum = rescale * sum + hn::GetLane(hn::SumOfLanes(d, l));
    max = hn::GetLane(m);
    if (!plain && (stages.hides() || stages.dropout.on())) drop_weights(stages, first, keys, scores);
    return {scores, keys, rescale};
  }

  // Accumulates the values of a block into the output.
  template <class OrderedRows>
  HWY_INLINE void accumulate(F d, const OrderedRows& v, BlockWeights block) const {
    int64_t c = 0;
    for (; c + 8 * kLanes <= s.Dv; c += 8 * kLanes) accumulate_values<8>(d, v.from_column(c), block, s.Dv - c, out + c);
    for (; c + 4 * kLanes <= s.Dv; c += 4 * kLanes) accumulate_values<4>(d, v.from_column(c), block, s.Dv - c, out + c);
    for (; c < s.Dv; c += kLanes) accumulate_values<1>(d, v.from_column(c), block, s.Dv - c, out + c);
  }
};

// The query heads of one key head over some keys, stored as T.
template <class T>
void decode_keys(F d, const ForwardCall& call, int64_t b, int64_t hk, KeyRange range, const DecodeScratch& mem) {
  const AttentionShape& s = call.plan.shape;
  const KvRows k{call.in.k, b, hk, range}, v{call.in.v, b, hk, range};
  const bool plain = call.plan.stages.plain(), additive = call.plan.stages.additive;
  const float position = static_cast<float>(call.plan.visibility.position(b, 0));
  const auto for_heads = [&](const auto& visit) HWY_ATTR {
    for (int64_t g = 0; g < s.Hq / s.Hk; ++g) {
      const HeadStages stages(call.plan, call.in, b, hk * (s.Hq / s.Hk) + g);
      visit(DecodeRow{s, stages, plain, mem.q + g * mem.width, additive ? mem.w + g * mem.width : nullptr, position,
                      mem.scores, mem.max[g], mem.sum[g], mem.out + g * mem.width_v});
    }
  };
  const auto visit = [&](const KeyStreams& keys, const auto& k_rows, const auto& v_rows) HWY_ATTR {
    const int64_t first = keys.first, count = keys.count();
    for_heads([&](const DecodeRow& row) HWY_ATTR {
      row.score(d, k_rows, count);
      row.accumulate(d, v_rows, row.weigh(d, first, count));
    });
  };
  // Pages that hold all of the keys are as good as rows that follow each other.
  const int64_t all = range.end - range.begin;
  const bool listed = k.kv.run(range.begin, all) < all || v.kv.run(range.begin, all) < all;
  RowList<T> k_list, v_list;
  const auto visit_streams = [&](const KeyStreams& keys) HWY_ATTR {
    if (listed) {
      visit(keys, k_list.fill(k, keys), v_list.fill(v, keys));
    } else {
      const Order order = keys.streams == kStreams ? Order{keys.apart, 1} : Order{1, kStreams};
      visit(keys, StridedRows<T>{k.stored<T>(keys.first), order}, StridedRows<T>{v.stored<T>(keys.first), order});
    }
  };
  // Stages need the keys in their natural order: one stream.
  const int64_t keys = range.end - range.begin, streams = plain ? kStreams : 1, length = keys / streams;
  const int64_t most = DecodeScratch::kKeys / streams;
  for (int64_t i = 0; i < length; i += most) {
    visit_streams({range.begin + i, length, streams, std::min(most, length - i)});
  }
  const int64_t rest = keys - streams * length;
  if (rest > 0) visit_streams({range.begin + streams * length, 0, 1, rest});
}

// The query heads of one key head over one chunk of keys; the results are left in `mem`.
void decode_chunk(const ForwardCall& call, int64_t b, int64_t hk, KeyRange chunk, const DecodeScratch& mem) {
  const F d;
  const AttentionShape& s = call.plan.shape;
  const int64_t group = s.Hq / s.Hk;
  const bool additive = call.plan.stages.additive;
  for (int64_t g = 0; g < group; ++g) {
    const int64_t h = hk * group + g;
    const float factor = HeadStages(call.plan, call.in, b, h).factor, *from = call.in.q.at(b, h, 0);
    for (int64_t c = 0; c < mem.width; ++c) {
      mem.q[g * mem.width + c] = c < s.D ? from[c] * (additive ? 1 : factor) : 0;
      if (additive) mem.w[g * mem.width + c] = c < s.D ? call.in.w(h, c) * factor : 0;
    }
    std::memset(mem.out + g * mem.width_v, 0, static_cast<size_t>(mem.width_v) * sizeof(float));
    mem.max[g] = -FLT_MAX;
    mem.sum[g] = 0;
  }
  const KeyRange seen = call.plan.visibility.row(b, 0);
  const KeyRange keys{std::max(chunk.begin, seen.begin), std::min(chunk.end, seen.end)};
  if (keys.empty()) return;
  switch (call.in.k.dtype()) {
    case DType::f32:
      return decode_keys<float>(d, call, b, hk, keys, mem);
    case DType::bf16:
      return decode_keys<BFloat16>(d, call, b, hk, keys, mem);
    case DType::f16:
      return decode_keys<Float16>(d, call, b, hk, keys, mem);
    case DType::f64:
    case DType::i32:
    case DType::i8:
      assert(false);  // no KvView has these
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(decode_chunk);

namespace {

void write_row(const ForwardCall& call, int64_t b, int64_t h, float max, float sum, const float* out) {
  const float gate = call.in.head_gate ? call.in.head_gate(h) : 1.0f;
  const float inverse = sum == 0 ? 0 : gate * call.plan.stages.dropout.keep_scale() / sum;
  float* to = call.out.out.at(b, h, 0);
  // 0 + -0 is 0, as where partial results of several chunks were added.
  for (int64_t c = 0; c < call.plan.shape.Dv; ++c) to[c] = sum == 0 ? 0 : (0.0f + out[c]) * inverse;
  write_row_stats(call.out, b, h, 0, sum == 0 ? 0 : max, sum);
}

// Combines partial[chunk] = {max, sum, out}: rescales all to the largest maximum, and adds them.
void combine_chunks(const ForwardCall& call, int64_t b, int64_t h, float* partial) {
  const AttentionShape& s = call.plan.shape;
  const int64_t chunks = call.plan.blocking.key_chunks, stride = decode_partial_stride(s);
  float max = partial[0];
  for (int64_t c = 1; c < chunks; ++c) max = std::max(max, partial[c * stride]);
  float sum = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    const float* p = partial + c * stride;
    const float factor = std::exp2(p[0] - max);
    sum += factor * p[1];
    for (int64_t i = 0; i < s.Dv; ++i) partial[2 + i] = (c == 0 ? 0 : partial[2 + i]) + factor * p[2 + i];
  }
  write_row(call, b, h, max, sum, partial + 2);
}

}  // namespace

void forward_decode(const ForwardCall& call, Workspace& workspace, Parallel& parallel) noexcept {
  const AttentionShape& s = call.plan.shape;
  const Blocking& cut = call.plan.blocking;
  const int64_t floats = DecodeScratch(call.plan, nullptr).floats, group = s.Hq / s.Hk;
  const int64_t stride = decode_partial_stride(s);
  float* partials = reinterpret_cast<float*>(workspace.data());
  float* scratch = partials + decode_partial_floats(call.plan);
  parallel.for_each(s.B * s.Hk * cut.key_chunks, [&](int64_t task, int worker) {
    const FlushDenormals flush;
    const int64_t chunk = task % cut.key_chunks, b = task / cut.key_chunks / s.Hk, hk = task / cut.key_chunks % s.Hk;
    const DecodeScratch mem(call.plan, scratch + worker * floats);
    HWY_DYNAMIC_DISPATCH(decode_chunk)
    (call, b, hk, KeyRange{chunk * cut.key_chunk, std::min(s.S, (chunk + 1) * cut.key_chunk)}, mem);
    for (int64_t g = 0; g < group; ++g) {
      const int64_t h = hk * group + g;
      const float* out = mem.out + g * mem.width_v;
      if (cut.key_chunks == 1) {
        write_row(call, b, h, mem.max[g], mem.sum[g], out);
      } else {
        float* p = partials + ((b * s.Hq + h) * cut.key_chunks + chunk) * stride;
        p[0] = mem.max[g];
        p[1] = mem.sum[g];
        std::memcpy(p + 2, out, static_cast<size_t>(s.Dv) * sizeof(float));
      }
    }
  });
  if (cut.key_chunks == 1) return;
  parallel.for_each(s.B * s.Hq, [&](int64_t head, int) {
    combine_chunks(call, head / s.Hq, head % s.Hq, partials + head * cut.key_chunks * stride);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
