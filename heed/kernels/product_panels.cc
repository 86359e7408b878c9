// SPDX-License-Identifier: Apache-2.0
// x W^T over packed panels of W. A sum runs over the inputs in order, one rounding a term, whatever tile it was
// computed in: a row's bits do not depend on the rows beside it. Few rows are bound by reading W once: several panels
// are streamed side by side. Many rows are bound by arithmetic: a piece of one panel stays in L1 while all rows pass
// over it, and the next piece is prefetched. 16 bits are widened as they are loaded: that costs less than a copy in
// f32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/product_panels.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/product_tiles.h"
#include "heed/kernels/vec-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

constexpr int64_t kPanel = Weight::kPanel;
constexpr int kVectors = static_cast<int>(kPanel / kLanes);  // in a panel's row
// Accumulators: 12 of 16 vector registers, or 16 of 32, where the addresses of more rows would not fit into the scalar
// registers.
constexpr int kSums = kManyRegisters ? 16 : 12;
constexpr int kMostRows = kManyRegisters ? 8 : kVectors < 12 ? 12 / kVectors : 1;
// Panels of a piece, side by side, and their inputs: 32 KiB in f32.
constexpr int kSide = kManyRegisters ? 2 : 1;
constexpr int64_t kPiece = 512 / kSide;

// Panels read side by side for some rows: enough accumulators to hide the latency of an FMA, and several streams from
// memory.
constexpr int streams(int rows) {
  const int most = kSums / (kVectors * rows);
  return most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

constexpr int64_t kLine = 64;  // bytes

// Rows of x and y, and what the sums start from.
struct RowBlock {
  Rows x;
  RowsOf<float> y;
  int64_t columns;    // of y, from here on
  const float* bias;  // null: none
  bool keep;          // accumulate into y
};

// Panels side by side: `inputs` rows of 16 outputs each, the panels `apart` elements from each other.
template <class T>
struct PanelsOf {
  const T* data;
  int64_t apart, inputs;
};

// What is prefetched meanwhile: `lines` cache lines with every eight inputs, in each of as many panels. An address past
// the end is harmless.
struct PanelPrefetch {
  const std::byte* from = nullptr;
  int64_t lines = 0;
  int64_t apart = 0;  // bytes, from panel to panel
};

// One input's 16 outputs, widened. Each bf16 of a pair becomes an f32 in its lane by one instruction; see
// Weight::place.
template <class T>
HWY_INLINE void load_outputs(F d, const T* row, V (&w)[kVectors]) {
  if constexpr (!std::is_same_v<T, BFloat16>) {
    for (int v = 0; v < kVectors; ++v) w[v] = load_wide(d, row + v * kLanes);
  } else if constexpr (kVectors > 1) {
    const hn::RebindToUnsigned<F> du;
    for (int v = 0; v < kVectors / 2; ++v) {
      const auto pairs = hn::LoadU(du, reinterpret_cast<const uint32_t*>(row) + v * kLanes);
      w[v] = hn::BitCast(d, hn::ShiftLeft<16>(pairs));
      w[v + kVectors / 2] = hn::BitCast(d, hn::And(pairs, hn::Set(du, 0xFFFF0000u)));
    }
  } else {
    HWY_ALIGN int32_t places[kPanel];
    for (int64_t j = 0; j < kPanel; ++j) places[j] = static_cast<int32_t>(Weight::place(DType::bf16, j));
    w[0] = hn::TableLookupLanes(load_wide(d, row), hn::SetTableIndices(d, places));
  }
}

// sum[r] += x[r] times one input's row of each panel.
template <int R, int P, class T>
HWY_INLINE void add_products(F d, const float* const (&x)[R], int64_t i, const T* HWY_RESTRICT panel, int64_t apart,
                             V (&sum)[R][P][kVectors]) {
  V w[P][kVectors];
  unrolled<P>([&](auto p) HEED_INLINED { load_outputs(d, panel + p * apart, w[p]); });
  unrolled<R>([&](auto r) HEED_INLINED {
    const V factor = hn::Set(d, x[r][i]);
    unrolled<P * kVectors>([&](auto n) HEED_INLINED {
      constexpr int p = n / kVectors, v = n % kVectors;
      sum[r][p][v] = hn::MulAdd(factor, w[p][v], sum[r][p][v]);
    });
  });
}

// y [R, 16 P] (=|+=) x [R,I] times P panels. Arguments come by reference and are read one by one: a copy of a struct
// whose field has just been written is loaded as a vector, which waits for the store, and so for the block before.
template <int R, int P, class T>
HWY_NOINLINE void multiply(F d, const RowBlock& rows, const PanelsOf<T>& panels, const PanelPrefetch& prefetch) {
  const T* HWY_RESTRICT panel = panels.data;
  const int64_t apart = panels.apart, inputs = panels.inputs;
  const std::byte* next = prefetch.from;
  const int64_t lines = prefetch.lines, next_apart = prefetch.apart;
  V sum[R][P][kVectors];
  unrolled<P * kVectors>([&](auto n) HEED_INLINED {
    constexpr int p = n / kVectors, v = n % kVectors;
    const int64_t column = p * kPanel + v * kLanes;
    const V bias = rows.bias ? hn::LoadU(d, rows.bias + column) : hn::Zero(d);
    unrolled<R>([&](auto r) HEED_INLINED {
      const float* y = rows.y.row(r) + column;
      sum[r][p][v] = rows.keep ? hn::Add(bias, hn::LoadU(d, y)) : bias;
    });
  });
  const float* x[R];
  unrolled<R>([&](auto r) HEED_INLINED { x[r] = rows.x.row(r); });
  int64_t i = 0;
  for (; i + 8 <= inputs; i += 8) {
    for (int64_t line = 0; line < lines; ++line, next += kLine) {
      for (int p = 0; p < P; ++p) hwy::Prefetch(next + p * next_apart);
    }
    for (int64_t j = i; j < i + 8; ++j, panel += kPanel) add_products(d, x, j, panel, apart, sum);
  }
  for (; i < inputs; ++i, panel += kPanel) add_products(d, x, i, panel, apart, sum);
  unrolled<R * P * kVectors>([&](auto n) HEED_INLINED {
    constexpr int r = n / (P * kVectors), p = n / kVectors % P, v = n % kVectors;
    hn::StoreU(sum[r][p][v], d, rows.y.row(r) + p * kPanel + v * kLanes);
  });
}

// The last panel of a matrix, where y has fewer columns than the panel: through a whole one in scratch.
template <int R, class T>
void multiply_part(F d, const RowBlock& rows, const PanelsOf<T>& panel, const PanelPrefetch& prefetch) {
  HWY_ALIGN float y[R * kPanel] = {}, bias[kPanel] = {};
  if (rows.bias) copy_rows({{rows.bias, 0}, 1, rows.columns}, {bias, 0});
  if (rows.keep) copy_rows({{rows.y.data, rows.y.stride}, R, rows.columns}, {y, kPanel});
  RowBlock whole = rows;
  whole.y = {y, kPanel};
  if (rows.bias) whole.bias = bias;
  multiply<R, 1>(d, whole, panel, prefetch);
  copy_rows({{y, kPanel}, R, rows.columns}, rows.y);
}

// One panel.
template <int R, class T>
HWY_INLINE void multiply_panel(F d, const RowBlock& rows, const PanelsOf<T>& panel, const PanelPrefetch& prefetch) {
  if (rows.columns < kPanel) return multiply_part<R>(d, rows, panel, prefetch);
  multiply<R, 1>(d, rows, panel, prefetch);
}

// `count` of them: one, or kSide whole ones.
template <int R, class T>
HWY_INLINE void multiply_panels(F d, const RowBlock& rows, int64_t count, const PanelsOf<T>& panels,
                                const PanelPrefetch& prefetch) {
  if constexpr (kSide > 1) {
    if (count == kSide) return multiply<R, kSide>(d, rows, panels, prefetch);
  }
  multiply_panel<R>(d, rows, panels, prefetch);
}

// All panels of a tile for R rows, each read once.
template <int R, class T>
void stream_panels(F d, RowBlock rows, const T* panel, int64_t inputs) {
  constexpr int kStreams = streams(R);
  while (rows.columns > 0) {
    const bool together = rows.columns >= kStreams * kPanel;
    const PanelsOf<T> panels{panel, inputs * kPanel, inputs};
    if (together) {
      multiply<R, kStreams>(d, rows, panels, {});
    } else {
      multiply_panel<R>(d, rows, panels, {});
    }
    const int64_t done = kPanel * (together ? kStreams : 1);
    panel += done * inputs;
    rows.y.data += done;
    rows.columns -= done;
    if (rows.bias) rows.bias += done;
  }
}

// run(integral constant R) for the R in [1, kMostRows] that is `rows`.
template <int R = kMostRows, class Run>
HWY_INLINE void with_rows(int64_t rows, const Run& run) {
  if constexpr (R > 1) {
    if (rows != R) return with_rows<R - 1>(rows, run);
  }
  run(std::integral_constant<int, R>());
}

// A part of one panel or of kSide of them: `count` inputs from `first` on, for 16 columns of y a panel.
struct Piece {
  int64_t first, count, column, panels;
};

// All rows of a tile over the panels of a piece. Each block of rows prefetches its share of the next piece, if that is
// not null.
template <class T>
void multiply_blocks(F d, const Projection& call, const Tile& tile, const Piece& piece, const PanelsOf<T>& panels,
                     const T* next) {
  const int64_t blocks = (tile.rows + kMostRows - 1) / kMostRows, size = sizeof(T);
  PanelPrefetch prefetch;
  if (next) {
    constexpr int64_t kLinesOfEight = 8 * kPanel * static_cast<int64_t>(sizeof(T)) / kLine;
    prefetch = {reinterpret_cast<const std::byte*>(next), (kLinesOfEight + blocks - 1) / blocks, panels.apart * size};
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t row = tile.row + tile.rows * b / blocks, end = tile.row + tile.rows * (b + 1) / blocks;
    const RowBlock rows{.x = {call.x.at(row, piece.first), call.x.stride(0)},
                        .y = {call.y.at(row, piece.column), call.y.stride(0)},
                        .columns = tile.column + tile.columns - piece.column,
                        .bias = piece.first == 0 && call.options.b ? call.options.b.at(piece.column) : nullptr,
                        .keep = piece.first > 0 || call.options.add};
    with_rows(end - row, [&](auto R) HWY_ATTR { multiply_panels<R>(d, rows, piece.panels, panels, prefetch); });
    prefetch.from += piece.count / 8 * prefetch.lines * kLine;
  }
}

// The tile's pieces in the order in which they are read: all panels for some inputs, then for the next inputs, so that
// those columns of x stay in the cache.
template <class Body>
HWY_INLINE void for_pieces(const Tile& tile, int64_t inputs, const Body& body) {
  for (int64_t first = 0; first == 0 || first < inputs; first += kPiece) {
    const int64_t end = tile.column + tile.columns;
    for (int64_t column = tile.column, panels; column < end; column += panels * kPanel) {
      panels = end - column >= kSide * kPanel ? kSide : 1;
      body(Piece{first, std::min(kPiece, inputs - first), column, panels});
    }
  }
}

// Many rows over panels.
template <class T>
void block_panels(F d, const Projection& call, const Tile& tile) {
  const int64_t inputs = call.w.inputs();
  for_pieces(tile, inputs, [&](const Piece& piece) HWY_ATTR {
    const int64_t p = piece.column / kPanel, after = p + piece.panels;
    const bool last_panel = after * kPanel >= tile.column + tile.columns;
    const bool last_piece = piece.first + kPiece >= inputs;
    // After the tile's last panel come its next inputs, or the tile after it.
    const T* next = call.w.panel<T>(last_panel && !last_piece ? tile.column / kPanel : after);
    const int64_t skip = last_panel ? (last_piece ? 0 : piece.first + kPiece) : piece.first;
    const PanelsOf<T> panels{call.w.panel<T>(p) + piece.first * kPanel, inputs * kPanel, piece.count};
    multiply_blocks(d, call, tile, piece, panels, next + skip * kPanel);
  });
}

// Rows of 16 outputs become a panel: a transpose.
void pack(const float* rows, int64_t stride, int64_t inputs, float* panel) {
  const F d;
  for (int64_t j = 0; j < kPanel; j += kLanes) {
    transpose_in(d, {rows + j * stride, stride}, inputs, hn::Set(d, 1.0f), {panel + j, kPanel});
  }
}

// A piece of a matrix that is not packed, 16 outputs from `column` on, as one of a panel, in f32.
template <class T>
void pack_piece(const View<const T, 2>& w, const Piece& piece, int64_t column, float* panel) {
  const int64_t outputs = std::min(kPanel, w.shape(0) - column);
  if constexpr (std::is_same_v<T, float>) {
    if (outputs == kPanel && w.stride(1) == 1) {
      return pack(w.at(column, piece.first), w.stride(0), piece.count, panel);
    }
  }
  for (int64_t i = 0; i < piece.count; ++i) {
    const T* from = w.at(column, piece.first + i);
    for (int64_t j = 0; j < kPanel; ++j) {
      panel[i * kPanel + j] = j < outputs ? static_cast<float>(from[j * w.stride(0)]) : 0.0f;
    }
  }
}

// Rows over such a matrix.
template <class T>
void block_view(F d, const Projection& call, const Tile& tile) {
  constexpr int64_t kApart = kPiece * kPanel;
  HWY_ALIGN float panels[kSide * kApart];
  const View<const T, 2> w = call.w.view<T>();
  for_pieces(tile, w.shape(1), [&](const Piece& piece) HWY_ATTR {
    for (int64_t p = 0; p < piece.panels; ++p) pack_piece(w, piece, piece.column + p * kPanel, panels + p * kApart);
    multiply_blocks<float>(d, call, tile, piece, {panels, kApart, piece.count}, nullptr);
  });
}

template <class T>
void project_as(const Projection& call, const Tile& tile) {
  const F d;
  if (!call.w.packed()) return block_view<T>(d, call, tile);
  if (tile.rows > kMostRows) return block_panels<T>(d, call, tile);
  const RowBlock rows{.x = {call.x.at(tile.row), call.x.stride(0)},
                      .y = {call.y.at(tile.row, tile.column), call.y.stride(0)},
                      .columns = tile.columns,
                      .bias = call.options.b ? call.options.b.at(tile.column) : nullptr,
                      .keep = call.options.add};
  const T* panel = call.w.panel<T>(tile.column / kPanel);
  with_rows(tile.rows, [&](auto R) HWY_ATTR { stream_panels<R>(d, rows, panel, call.w.inputs()); });
}

void project(const Projection& call, const Tile& tile) {
  if (call.w.dtype() == DType::f32) project_as<float>(call, tile);
  if (call.w.dtype() == DType::bf16) project_as<BFloat16>(call, tile);
  if (call.w.dtype() == DType::f16) project_as<Float16>(call, tile);
}

// R rows of w, `apart` from each other, with two accumulators each: bound by reading w.
template <int R>
HWY_INLINE void dot_some_rows(F d, const RowDots& call, int64_t row, int64_t apart) {
  V sum[R][2];
  const float* w[R];
  for (int r = 0; r < R; ++r) {
    sum[r][0] = sum[r][1] = hn::Zero(d);
    w[r] = call.w + (row + r * apart) * call.stride;
  }
  int64_t i = 0;
  for (; i + 2 * kLanes <= call.inputs; i += 2 * kLanes) {
    const V x0 = hn::LoadU(d, call.x + i), x1 = hn::LoadU(d, call.x + i + kLanes);
    for (int r = 0; r < R; ++r) {
      sum[r][0] = hn::MulAdd(x0, hn::LoadU(d, w[r] + i), sum[r][0]);
      sum[r][1] = hn::MulAdd(x1, hn::LoadU(d, w[r] + i + kLanes), sum[r][1]);
    }
  }
  for (; i < call.inputs; i += kLanes) {
    const V x = load_part(d, call.x + i, call.inputs - i);
    for (int r = 0; r < R; ++r) sum[r][0] = hn::MulAdd(x, load_part(d, w[r] + i, call.inputs - i), sum[r][0]);
  }
  for (int r = 0; r < R; ++r) {
    float* c = call.c + (row + r * apart) * call.c_stride;
    const float dot = call.alpha * hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[r][0], sum[r][1])));
    *c = call.add ? *c + dot : dot;
  }
}

// Four long streams from memory, not four neighbouring rows: the hardware prefetcher follows each.
void dots(const RowDots& call) {
  const F d;
  const int64_t quarter = call.outputs / 4;
  for (int64_t row = 0; row < quarter; ++row) dot_some_rows<4>(d, call, row, quarter);
  for (int64_t row = 4 * quarter; row < call.outputs; ++row) dot_some_rows<1>(d, call, row, 0);
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::kernels {

HWY_EXPORT(project);
HWY_EXPORT(pack);
HWY_EXPORT(dots);

void project_panels(const Projection& call, const Tile& tile) noexcept { HWY_DYNAMIC_DISPATCH(project)(call, tile); }

void dot_rows(const RowDots& call) noexcept { HWY_DYNAMIC_DISPATCH(dots)(call); }

void pack_whole_panel(const float* rows, int64_t stride, int64_t inputs, float* panel) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(rows, stride, inputs, panel);
}

}  // namespace heed::kernels

#endif  // HWY_ONCE
