// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/norm.h"

#include <cassert>
#include <cmath>

#include "heed/kernels/elementwise.h"
#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/norm.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/rows-inl.h"

#ifndef HEED_KERNELS_NORM_CC_
#define HEED_KERNELS_NORM_CC_
namespace heed::kernels {

// [width]: a chunk of rows' own sums; null where not wanted.
struct ChunkSums {
  float *dweight, *dbias;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// N vectors of a parameter, or of a constant where there is none.
template <int N>
HWY_INLINE void load_or(F d, const float* p, int64_t at, int64_t left, float otherwise, V (&v)[N]) {
  for (int i = 0; i < N; ++i) {
    v[i] = p ? load_part(d, p + at + i * kLanes, left) : hn::Set(d, otherwise);
  }
}

HWY_INLINE float mean_of(F d, const float* x, int64_t width) {
  Sums sums(d);
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    sums.add(d, v, left);
  });
  return sums.total(d) / static_cast<float>(width);
}

HWY_INLINE float mean_square_of(F d, const float* x, float mean, int64_t width) {
  Sums sums(d);
  for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    for (V& value : v) value = hn::Sub(value, hn::Set(d, mean));
    for (V& value : v) value = hn::Mul(value, value);
    sums.add(d, v, left);
  });
  return sums.total(d) / static_cast<float>(width);
}

// Rows [begin, end). RMS norm is layer norm with a mean of 0.
void norm_forward_rows(const NormInputs<float>& in, const NormOutputs<float>& out, bool centred, int64_t begin,
                       int64_t end) {
  const F d;
  const int64_t width = in.x.shape(1);
  const float *weight = in.weight.data(), *bias = in.bias.data();
  for (int64_t r = begin; r < end; ++r) {
    const float* x = in.x.at(r);
    float* y = out.y.at(r);
    const float mean = centred ? mean_of(d, x, width) : 0;
    const float rstd = 1 / std::sqrt(mean_square_of(d, x, mean, width) + static_cast<float>(in.eps));
    for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
      V v[N], w[N], b[N];
      load_vectors(d, x + at, left, v);
      load_or(d, weight, at, left, 1, w);
      load_or(d, bias, at, left, 0, b);
      for (int i = 0; i < N; ++i) {
        v[i] = hn::Mul(hn::Sub(v[i], hn::Set(d, mean)), hn::Set(d, rstd));
        v[i] = hn::MulAdd(v[i], w[i], b[i]);
      }
      store_vectors(d, v, y + at, left);
    });
    if (out.mean) out.mean(r) = mean;
    if (out.rstd) out.rstd(r) = rstd;
  }
}

// One row of backward. With n = (x - mean) rstd and g = dy weight:
//   dweight += dy n,  dbias += dy,  dx += rstd (g - mean(g) - n mean(g n))
struct BackwardRow {
  int64_t width;
  const float *x, *dy, *weight;
  float mean, rstd;
  bool centred;

  // n, g and dy of N vectors.
  template <int N>
  HWY_INLINE void load(F d, int64_t at, int64_t left, V (&n)[N], V (&g)[N], V (&dy_part)[N]) const {
    load_vectors(d, x + at, left, n);
    load_vectors(d, dy + at, left, dy_part);
    load_or(d, weight, at, left, 1, g);
    for (int i = 0; i < N; ++i) {
      n[i] = hn::Mul(hn::Sub(n[i], hn::Set(d, mean)), hn::Set(d, rstd));
      g[i] = hn::Mul(g[i], dy_part[i]);
    }
  }

  // Adds to dweight and dbias, where wanted, and gives the means of g and g n.
  HWY_INLINE void sums(F d, float* dweight, float* dbias, float& mean_g, float& mean_gn) const {
    Sums sum_g(d), sum_gn(d);
    for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
      V n[N], g[N], dy_part[N], to[N];
      load(d, at, left, n, g, dy_part);
      if (dweight) {
        load_vectors(d, dweight + at, left, to);
        for (int i = 0; i < N; ++i) to[i] = hn::MulAdd(dy_part[i], n[i], to[i]);
        store_vectors(d, to, dweight + at, left);
      }
      if (dbias) {
        load_vectors(d, dbias + at, left, to);
        for (int i = 0; i < N; ++i) to[i] = hn::Add(dy_part[i], to[i]);
        store_vectors(d, to, dbias + at, left);
      }
      sum_g.add(d, g, left);
      for (int i = 0; i < N; ++i) g[i] = hn::Mul(g[i], n[i]);
      sum_gn.add(d, g, left);
    });
    mean_g = centred ? sum_g.total(d) / static_cast<float>(width) : 0;
    mean_gn = sum_gn.total(d) / static_cast<float>(width);
  }

  HWY_INLINE void add_dx(F d, float mean_g, float mean_gn, float* dx) const {
    for_vectors(width, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
      V n[N], g[N], dy_part[N], to[N];
      load(d, at, left, n, g, dy_part);
      load_vectors(d, dx + at, left, to);
      for (int i = 0; i < N; ++i) {
        const V change = hn::NegMulAdd(n[i], hn::Set(d, mean_gn), hn::Sub(g[i], hn::Set(d, mean_g)));
        to[i] = hn::MulAdd(change, hn::Set(d, rstd), to[i]);
      }
      store_vectors(d, to, dx + at, left);
    });
  }
};

// Rows [begin, end).
void norm_backward_rows(const NormInputs<float>& in, const NormGradients<float>& to, bool centred, int64_t begin,
                        int64_t end, ChunkSums chunk) {
  const F d;
  for (int64_t r = begin; r < end; ++r) {
    const BackwardRow row{in.x.shape(1), in.x.at(r), to.dy.at(r), in.weight.data(), centred ? to.mean(r) : 0,
                          to.rstd(r),    centred};
    float mean_g, mean_gn;
    row.sums(d, chunk.dweight, chunk.dbias, mean_g, mean_gn);
    if (to.dx) row.add_dx(d, mean_g, mean_gn, to.dx.at(r));
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(norm_forward_rows);
HWY_EXPORT(norm_backward_rows);

namespace {

// Backward sums dweight and dbias over chunks of rows, at most this many, and then over the chunks, in order.
constexpr int64_t kMostChunks = 32, kLeastChunkRows = 8;

int64_t chunk_rows(int64_t rows) { return std::max(kLeastChunkRows, (rows + kMostChunks - 1) / kMostChunks); }
int64_t chunks_of(int64_t rows) { return (rows + chunk_rows(rows) - 1) / chunk_rows(rows); }

void norm_forward(const NormInputs<float>& in, const NormOutputs<float>& out, bool centred, Parallel& parallel) {
  assert(in.x.shape() == out.y.shape());
  for_rows(in.x.shape(), parallel, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(norm_forward_rows)(in, out, centred, begin, end);
  });
}

void norm_backward(const NormInputs<float>& in, const NormGradients<float>& to, bool centred, Workspace& workspace,
                   Parallel& parallel) {
  const int64_t rows = in.x.shape(0), width = in.x.shape(1), step = chunk_rows(rows), chunks = chunks_of(rows);
  assert(in.x.shape() == to.dy.shape() && workspace.bytes() >= norm_backward_bytes(rows, width));
  // Of dweight, and then of dbias: [chunks, width]
  float* partial = reinterpret_cast<float*>(workspace.data());
  parallel.for_each(chunks, [&](int64_t chunk, int) {
    float *dweight = partial + chunk * width, *dbias = dweight + chunks * width;
    if (to.dweight) std::fill_n(dweight, width, 0.0f);
    if (to.dbias) std::fill_n(dbias, width, 0.0f);
    HWY_DYNAMIC_DISPATCH(norm_backward_rows)
    (in, to, centred, chunk * step, std::min(rows, (chunk + 1) * step),
     ChunkSums{to.dweight ? dweight : nullptr, to.dbias ? dbias : nullptr});
  });
  const Dims<2> shape{chunks, width};
  if (to.dweight) add_row_backward({partial, shape}, {}, to.dweight, parallel);
  if (to.dbias) add_row_backward({partial + chunks * width, shape}, {}, to.dbias, parallel);
}

}  // namespace

size_t norm_backward_bytes(int64_t rows, int64_t width) {
  return static_cast<size_t>(2 * chunks_of(rows) * width) * sizeof(float);
}

void layer_norm_forward(const NormInputs<float>& in, const NormOutputs<float>& out, Parallel& parallel) noexcept {
  norm_forward(in, out, true, parallel);
}

void layer_norm_backward(const NormInputs<float>& in, const NormGradients<float>& to, Workspace& workspace,
                         Parallel& parallel) noexcept {
  norm_backward(in, to, true, workspace, parallel);
}

void rms_norm_forward(const NormInputs<float>& in, const NormOutputs<float>& out, Parallel& parallel) noexcept {
  assert(!in.bias && !out.mean);
  norm_forward(in, out, false, parallel);
}

void rms_norm_backward(const NormInputs<float>& in, const NormGradients<float>& to, Workspace& workspace,
                       Parallel& parallel) noexcept {
  assert(!in.bias && !to.dbias);
  norm_backward(in, to, false, workspace, parallel);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
