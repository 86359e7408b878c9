// Forward for a single query, bound by reading K and V once: the head width stands in SIMD lanes, keys are streamed in
// blocks, from four places at a time: a core that follows one stream waits for memory half of the time. Long keys are
// cut into chunks by the plan; their partial results are joined in order at the end.
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
// The 128-bit blocks of a vector, added up.
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

// The order in which rows are read: place p is row (p mod 4) * jump + (p / 4) * step. Four streams, jump rows apart
// (step 1), or one (jump 1, step 4).
constexpr int64_t kStreams = 4;
struct Order {
  int64_t jump, step;
  int64_t row(int64_t p) const { return p % kStreams * jump + p / kStreams * step; }
};

// Where the row of each place stands: evenly spaced, so that the prefetchers see it coming ...
template <class T>
struct EvenPlaces {
  using Element = T;
  RowsOf<T> rows;
  Order order;
  const T* at(int64_t p) const { return rows.row(order.row(p)); }
  void ask_ahead(int64_t, int64_t) const {}
  EvenPlaces from_column(int64_t c) const { return {{rows.data + c, rows.stride}, order}; }
};

constexpr int64_t kAhead = 4;  // rows of a stream, from the one that is read to the one that is asked for

// ... or anywhere, as a list says.
template <class T>
struct ListedPlaces {
  using Element = T;
  static constexpr int64_t kMost = DecodeScratch::kKeys;
  const T* const* rows;  // with kStreams * kAhead more at the end, which are asked for and not read
  int64_t column;
  const T* at(int64_t p) const { return rows[p] + column; }
  void ask_ahead(int64_t p, int64_t columns) const { prefetch_row(rows[p + kStreams * kAhead] + column, columns); }
  ListedPlaces from_column(int64_t c) const { return {rows, column + c}; }
};

// The list of rows in blocks: `each` rows of `streams` streams, which begin `apart` rows from each other.
template <class T>
class RowList {
 public:
  ListedPlaces<T> fill(const KvView& kv, int64_t b, int64_t h, int64_t first, int64_t apart, int64_t streams,
                       int64_t each) {
    for (int64_t stream = 0; stream < streams; ++stream) {
      for (int64_t i = 0, run; i < each; i += run) {
        const int64_t key = first + stream * apart + i;
        run = kv.run(key, each - i);
        const RowsOf<T> rows = stored_rows<T>(kv, b, h, key);
        for (int64_t j = 0; j < run; ++j) rows_[(i + j) * streams + stream] = rows.row(j);
      }
    }
    const int64_t count = streams * each;
    std::fill_n(rows_ + count, kStreams * kAhead, rows_[count - 1]);
    return {rows_, 0};
  }

 private:
  const T* rows_[ListedPlaces<T>::kMost + kStreams * kAhead];
};

// scores[i] = q . k_i for the R rows from place p on, R a multiple of four; q is padded with zeros.
template <int R, class Places>
HWY_INLINE void dot_rows(F d, const float* HWY_RESTRICT q, const Places& k, int64_t p, int64_t D, float* scores) {
  const typename Places::Element* HWY_RESTRICT row[R];
  V acc[R];
  for (int r = 0; r < R; ++r) {
    row[r] = k.at(p + r);
    k.ask_ahead(p + r, D);
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

// A weight that says 'hidden': whatever stands in the row of v then, it is left out.
constexpr float kLeftOut = -1;

// out <- keep * out + sum_p weights[p] v_p over C vectors of columns; `left` columns are real.
template <int C, class Places>
HWY_INLINE void mix_rows(F d, const Places& v, int64_t keys, int64_t left, const float* HWY_RESTRICT weights,
                         float keep, float* HWY_RESTRICT out) {
  V acc[C];
  for (int c = 0; c < C; ++c) acc[c] = hn::Mul(hn::Set(d, keep), hn::Load(d, out + c * kLanes));
  for (int64_t p = 0; p < keys; ++p) {
    if (weights[p] == kLeftOut) continue;
    const typename Places::Element* HWY_RESTRICT row = v.at(p);
    const V w = hn::Set(d, weights[p]);
    if (left >= C * kLanes) {
      v.ask_ahead(p, C * kLanes);
      for (int c = 0; c < C; ++c) acc[c] = hn::MulAdd(w, load_wide(d, row + c * kLanes), acc[c]);
    } else {
      for (int c = 0; c < C; ++c) acc[c] = hn::MulAdd(w, load_part(d, row + c * kLanes, left - c * kLanes), acc[c]);
    }
  }
  for (int c = 0; c < C; ++c) hn::Store(acc[c], d, out + c * kLanes);
}

// Softcap, ALiBi, bias and mask on the scores of `keys` keys from `first` on, the keys in lanes.
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

// What the softmax does not know: dropped weights become 0, and hidden ones are left out. `first` is the first key.
inline void drop_weights(const HeadStages& stages, int64_t first, int64_t keys, float* weights) {
  for (int64_t i = 0; i < keys; ++i) {
    if (stages.hides()) {
      const bool hidden = (stages.bias && stages.bias[(first + i) * stages.bias_s] == kHidden) ||
                          (stages.dense != nullptr && !stages.dense[(first + i) * stages.dense_s]);
      if (hidden) weights[i] = kLeftOut;
    }
    if (weights[i] != kLeftOut && !stages.dropout.keeps(stages.head, 0, first + i)) weights[i] = 0;
  }
}

// One query head on its way through the keys, a block of at most DecodeScratch::kKeys at a time.
struct DecodeRow {
  const AttentionShape& s;
  const HeadStages& stages;
  bool plain;
  const float *q, *w;  // padded with zeros; w: null for the product
  float position;
  float* scores;  // of a block
  float &max, &sum;
  float* out;

  // The scores of `keys` keys.
  template <class Places>
  HWY_INLINE void score(F d, const Places& k, int64_t keys) const {
    int64_t i = 0;
    if (w) {
      for (; i + 2 <= keys; i += 2) {
        const typename Places::Element* const rows[] = {k.at(i), k.at(i + 1)};
        additive_dot(d, q, rows, w, s.D, scores + i);
      }
      for (; i < keys; ++i) {
        const typename Places::Element* const rows[] = {k.at(i)};
        additive_dot(d, q, rows, w, s.D, scores + i);
      }
      return;
    }
    for (; i + 8 <= keys; i += 8) dot_rows<8>(d, q, k, i, s.D, scores + i);
    for (; i < keys; ++i) dot_rows<1>(d, q, k, i, s.D, scores + i);
  }

  // The scores of a block become weights; returns what becomes of the output so far. In stages the keys have to be in
  // their natural order, `first` the first one's index.
  HWY_INLINE float weigh(F d, int64_t first, int64_t keys) const {
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
    const float keep = hn::GetLane(exp2_integer(d, hn::Sub(hn::Set(d, max), m)));
    sum = keep * sum + hn::GetLane(hn::SumOfLanes(d, l));
    max = hn::GetLane(m);
    if (!plain && (stages.hides() || stages.dropout.on())) drop_weights(stages, first, keys, scores);
    return keep;
  }

  // What the values of `keys` keys give to the output, which counts `keep` times from now on.
  template <class Places>
  HWY_INLINE void mix(F d, const Places& v, int64_t keys, float keep) const {
    int64_t c = 0;
    for (; c + 8 * kLanes <= s.Dv; c += 8 * kLanes) {
      mix_rows<8>(d, v.from_column(c), keys, s.Dv - c, scores, keep, out + c);
    }
    for (; c + 4 * kLanes <= s.Dv; c += 4 * kLanes) {
      mix_rows<4>(d, v.from_column(c), keys, s.Dv - c, scores, keep, out + c);
    }
    for (; c < s.Dv; c += kLanes) mix_rows<1>(d, v.from_column(c), keys, s.Dv - c, scores, keep, out + c);
  }
};

// The query heads of one key head over keys [begin, begin + keys), stored as T.
template <class T>
void decode_keys(F d, const ForwardCall& call, int64_t b, int64_t hk, int64_t begin, int64_t keys,
                 const DecodeScratch& mem) {
  const AttentionShape& s = call.plan.shape;
  const KvView &k = call.in.k, &v = call.in.v;
  const bool plain = call.plan.stages.plain(), additive = call.plan.stages.additive;
  const float position = static_cast<float>(call.plan.visibility.position(b, 0));
  const auto for_heads = [&](const auto& visit) HWY_ATTR {
    for (int64_t g = 0; g < s.Hq / s.Hk; ++g) {
      const HeadStages stages(call.plan, call.in, b, hk * (s.Hq / s.Hk) + g);
      visit(DecodeRow{s, stages, plain, mem.q + g * mem.width, additive ? mem.w + g * mem.width : nullptr, position,
                      mem.scores, mem.max[g], mem.sum[g], mem.out + g * mem.width_v});
    }
  };
  const auto visit = [&](int64_t first, int64_t count, const auto& k_places, const auto& v_places) HWY_ATTR {
    for_heads([&](const DecodeRow& row) HWY_ATTR {
      row.score(d, k_places, count);
      row.mix(d, v_places, count, row.weigh(d, first, count));
    });
  };
  // `each` rows of each of the streams that begin with `first`, `apart` rows from each other.
  const bool listed = k.is_paged() || v.is_paged();
  RowList<T> k_list, v_list;
  const auto visit_streams = [&](int64_t first, int64_t apart, int64_t streams, int64_t each) HWY_ATTR {
    if (listed) {
      visit(first, streams * each, k_list.fill(k, b, hk, first, apart, streams, each),
            v_list.fill(v, b, hk, first, apart, streams, each));
    } else {
      const Order order = streams == kStreams ? Order{apart, 1} : Order{1, kStreams};
      visit(first, streams * each, EvenPlaces<T>{stored_rows<T>(k, b, hk, first), order},
            EvenPlaces<T>{stored_rows<T>(v, b, hk, first), order});
    }
  };
  // Stages want the keys in their order.
  const int64_t streams = plain ? kStreams : 1, length = keys / streams, most = DecodeScratch::kKeys / streams;
  for (int64_t i = 0; i < length; i += most) visit_streams(begin + i, length, streams, std::min(most, length - i));
  const int64_t rest = keys - streams * length;
  if (rest > 0) visit_streams(begin + streams * length, 0, 1, rest);
}

// The query heads of one key head over one chunk of keys, in `mem`.
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
  const int64_t begin = std::max(chunk.begin, seen.begin), keys = std::min(chunk.end, seen.end) - begin;
  if (keys <= 0) return;
  switch (call.in.k.dtype()) {
    case DType::f32:
      return decode_keys<float>(d, call, b, hk, begin, keys, mem);
    case DType::bf16:
      return decode_keys<BFloat16>(d, call, b, hk, begin, keys, mem);
    case DType::f16:
      return decode_keys<Float16>(d, call, b, hk, begin, keys, mem);
    case DType::f64:
    case DType::i32:
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
  for (int64_t c = 0; c < call.plan.shape.Dv; ++c) to[c] = sum == 0 ? 0 : out[c] * inverse;
  write_row_stats(call.out, b, h, 0, sum == 0 ? 0 : max, sum);
}

// partial[chunk] = {max, sum, out}: brings all to the largest maximum, and adds.
void join_chunks(const ForwardCall& call, int64_t b, int64_t h, float* partial) {
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
    join_chunks(call, head / s.Hq, head % s.Hq, partials + head * cut.key_chunks * stride);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
