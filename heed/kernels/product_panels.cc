// SPDX-License-Identifier: Apache-2.0
// x W^T over panels of W. A sum runs over the inputs in order, one rounding a term, whatever tile it was computed in: a
// row's bits do not depend on the rows beside it, nor on how W is stored. Few rows are bound by reading W once: several
// panels are streamed side by side. Many rows are bound by arithmetic: a piece of one panel stays in L1 while all rows
// pass over it, and the next piece is prefetched. 16 bits are widened as they are loaded: that costs less than a copy
// in f32. A matrix that is not packed is packed a piece at a time, as are rows whose inputs are not contiguous.
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

// Some rows of x: each one's inputs are contiguous, or those of all rows are for each input.
struct Inputs {
  const float* data;
  int64_t stride;  // from row to row, or from input to input
  bool by_input = false;
  Inputs from_row(int64_t r) const { return {data + r * (by_input ? 1 : stride), stride, by_input}; }
};

// Input i of row r.
template <int R>
struct ByRow {
  const float* rows[R];
  int64_t ahead;  // to the rows of the next block
  explicit ByRow(const Inputs& x) : ahead(R * x.stride) {
    for (int r = 0; r < R; ++r) rows[r] = x.data + r * x.stride;
  }
  float operator()(int64_t r, int64_t i) const { return rows[r][i]; }
  void prefetch(int64_t i) const {
    if (i % kPanel == 0) unrolled<R>([&](auto r) HEED_INLINED { hwy::Prefetch(rows[r] + ahead + i); });
  }
};
struct ByInput {
  const float* data;
  int64_t stride;
  explicit ByInput(const Inputs& x) : data(x.data), stride(x.stride) {}
  float operator()(int64_t r, int64_t i) const { return data[i * stride + r]; }
  void prefetch(int64_t) const {}
};

// Rows of x and y, and what the sums start from.
struct RowBlock {
  Inputs x;
  RowsOf<float> y;
  int64_t columns;    // of y, from here on
  const float* bias;  // null: none
  bool keep;          // accumulate into y
};

// Panels side by side: `inputs` rows of 16 outputs each, `step` elements from each other, as the panels are `apart`.
template <class T>
struct PanelsOf {
  const T* data;
  int64_t apart, inputs;
  int64_t step = kPanel;
};

// What is prefetched meanwhile: `lines` cache lines with every eight inputs, in each of as many panels. An address past
// the end is harmless.
struct PanelPrefetch {
  const std::byte* from = nullptr;
  int64_t lines = 0;
  int64_t step = kLine, apart = 0;  // bytes, from line to line and from panel to panel

  // For every eight inputs of one of `blocks`, which share `all` lines.
  static PanelPrefetch of(const void* from, int64_t all, int64_t inputs, int64_t blocks) {
    const int64_t turns = std::max<int64_t>(1, inputs / 8 * blocks);
    return {static_cast<const std::byte*>(from), (all + turns - 1) / turns};
  }
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

// sum[r] += x(r, i) times one input's row of each panel.
template <int R, int P, class T, class X>
HWY_INLINE void add_products(F d, const X& x, int64_t i, const T* HWY_RESTRICT panel, int64_t apart,
                             V (&sum)[R][P][kVectors]) {
  V w[P][kVectors];
  unrolled<P>([&](auto p) HEED_INLINED { load_outputs(d, panel + p * apart, w[p]); });
  unrolled<R>([&](auto r) HEED_INLINED {
    const V factor = hn::Set(d, x(r, i));
    unrolled<P * kVectors>([&](auto n) HEED_INLINED {
      constexpr int p = n / kVectors, v = n % kVectors;
      sum[r][p][v] = hn::MulAdd(factor, w[p][v], sum[r][p][v]);
    });
  });
}

// sum += x [R,I] times P panels.
template <int R, int P, class T, class X>
HWY_INLINE void add_all_products(F d, const X& x, const PanelsOf<T>& panels, const PanelPrefetch& prefetch,
                                 V (&sum)[R][P][kVectors]) {
  const T* HWY_RESTRICT panel = panels.data;
  const int64_t apart = panels.apart, inputs = panels.inputs, step = panels.step;
  const std::byte* next = prefetch.from;
  const int64_t lines = prefetch.lines, next_step = prefetch.step, next_apart = prefetch.apart;
  int64_t i = 0;
  for (; i + 8 <= inputs; i += 8) {
    for (int64_t line = 0; line < lines; ++line, next += next_step) {
      for (int p = 0; p < P; ++p) hwy::Prefetch(next + p * next_apart);
    }
    x.prefetch(i);
    for (int64_t j = i; j < i + 8; ++j, panel += step) add_products(d, x, j, panel, apart, sum);
  }
  for (; i < inputs; ++i, panel += step) add_products(d, x, i, panel, apart, sum);
}

// y [R, 16 P] (=|+=) x [R,I] times P panels. Arguments come by reference and are read one by one: a copy of a struct
// whose field has just been written is loaded as a vector, which waits for the store, and so for the block before.
template <int R, int P, class T>
HWY_NOINLINE void multiply(F d, const RowBlock& rows, const PanelsOf<T>& panels, const PanelPrefetch& prefetch) {
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
  // The next block begins with these, and nothing else of it can hide how long they take.
  unrolled<R * P>([&](auto n) HEED_INLINED { hwy::Prefetch(rows.y.row(R + n / P) + n % P * kPanel); });
  if (std::is_same_v<T, float> && rows.x.by_input) {
    add_all_products(d, ByInput(rows.x), panels, prefetch, sum);
  } else {
    add_all_products(d, ByRow<R>(rows.x), panels, prefetch, sum);
  }
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
void stream_panels(F d, RowBlock rows, PanelsOf<T> panels) {
  constexpr int kStreams = streams(R);
  while (rows.columns > 0) {
    const bool together = rows.columns >= kStreams * kPanel;
    if (together) {
      multiply<R, kStreams>(d, rows, panels, {});
    } else {
      multiply_panel<R>(d, rows, panels, {});
    }
    const int64_t count = together ? kStreams : 1, done = kPanel * count;
    panels.data += panels.apart * count;
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

// A tile's rows from some input and some column on.
RowBlock row_block(const Projection& call, const Tile& tile, int64_t input, int64_t column) {
  return {.x = {call.x.at(tile.row, input), call.x.stride(0)},
          .y = {call.y.at(tile.row, column), call.y.stride(0)},
          .columns = tile.column + tile.columns - column,
          .bias = input == 0 && call.options.b ? call.options.b.at(column) : nullptr,
          .keep = input > 0 || call.options.add};
}

// Blocks of rows of a tile.
int64_t blocks_of(const Tile& tile) { return (tile.rows + kMostRows - 1) / kMostRows; }

// All rows of a tile, x from the piece's inputs on, over the panels of a piece. Each block of rows prefetches its share
// of the next piece.
template <class T>
void multiply_blocks(F d, const Projection& call, const Tile& tile, const Piece& piece, const Inputs& x,
                     const PanelsOf<T>& panels, PanelPrefetch prefetch) {
  const int64_t blocks = blocks_of(tile);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t row = tile.rows * b / blocks, end = tile.rows * (b + 1) / blocks;
    const Tile block{tile.row + row, end - row, tile.column, tile.columns};
    RowBlock rows = row_block(call, block, piece.first, piece.column);
    rows.x = x.from_row(row);
    with_rows(end - row, [&](auto R) HWY_ATTR { multiply_panels<R>(d, rows, piece.panels, panels, prefetch); });
    prefetch.from += piece.count / 8 * prefetch.lines * prefetch.step;
  }
}

// A tile's panels: body(column, how many), kSide at a time as far as there are whole ones.
template <class Body>
HWY_INLINE void for_panels(const Tile& tile, const Body& body) {
  const int64_t end = tile.column + tile.columns;
  for (int64_t column = tile.column, panels; column < end; column += panels * kPanel) {
    panels = end - column >= kSide * kPanel ? kSide : 1;
    body(column, panels);
  }
}

// The tile's pieces in the order in which they are read: all panels for some inputs, then for the next inputs, so that
// those columns of x stay in the cache.
template <class Body>
HWY_INLINE void for_pieces(const Tile& tile, int64_t inputs, const Body& body) {
  for (int64_t first = 0; first == 0 || first < inputs; first += kPiece) {
    for_panels(tile, [&](int64_t column, int64_t panels) HWY_ATTR {
      body(Piece{first, std::min(kPiece, inputs - first), column, panels});
    });
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
    const Inputs x{call.x.at(tile.row, piece.first), call.x.stride(0)};
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    auto prefetch =
        PanelPrefetch::of(next + skip * kPanel, piece.count * kPanel * kBytes / kLine, piece.count, blocks_of(tile));
    prefetch.apart = panels.apart * kBytes;
    multiply_blocks(d, call, tile, piece, x, panels, prefetch);
  });
}

// Rows of 16 outputs become a panel: a transpose, some inputs at a time, while those of the 16 rows after them are
// prefetched: each row is too short a run for the hardware to notice. An address past the end is harmless.
void pack(const float* rows, int64_t stride, int64_t inputs, float* panel) {
  const F d;
  for (int64_t i = 0; i < inputs; i += kPanel) {
    for (int64_t j = 0; j < kPanel; ++j) hwy::Prefetch(rows + (kPanel + j) * stride + i);
    for (int64_t j = 0; j < kPanel; j += kLanes) {
      transpose_in(d, {rows + j * stride + i, stride}, std::min(kPanel, inputs - i), hn::Set(d, 1.0f),
                   {panel + i * kPanel + j, kPanel});
    }
  }
}

// Of a matrix that is not packed, `count` inputs of `panels` panels, which are packed before all rows pass over them.
// Reading some panels at once makes longer runs of what is far from each other.
struct Chunk {
  int64_t first, count, column, panels;
};
constexpr int64_t kChunkPanels = 4;
constexpr int64_t kChunkInputs = 256;  // beside kSide panels, some rows of x stay in the L1 cache
constexpr int64_t kChunkApart = kChunkInputs * kPanel;

// Contiguous outputs: a copy.
template <class T>
void copy_panels(F d, const View<const T, 2>& w, const Chunk& chunk, float* panels) {
  for (int64_t i = 0; i < chunk.count; ++i, panels += kPanel) {
    const T* from = w.at(chunk.column, chunk.first + i);
    for (int64_t p = 0; p < chunk.panels; ++p) {
      for (int64_t j = 0; j < kPanel; j += kLanes) {
        hn::Store(load_wide(d, from + p * kPanel + j), d, panels + p * kChunkApart + j);
      }
    }
  }
}

// Any strides, and a panel that the matrix fills only in part.
template <class T>
void gather_panel(const View<const T, 2>& w, const Chunk& chunk, float* panel) {
  const int64_t outputs = std::min(kPanel, w.shape(0) - chunk.column);
  for (int64_t i = 0; i < chunk.count; ++i) {
    const T* from = w.at(chunk.column, chunk.first + i);
    for (int64_t j = 0; j < kPanel; ++j) {
      panel[i * kPanel + j] = j < outputs ? static_cast<float>(from[j * w.stride(0)]) : 0.0f;
    }
  }
}

// In f32, panels kChunkApart from each other.
template <class T>
void pack_chunk(F d, const View<const T, 2>& w, const Chunk& chunk, float* panels) {
  const int64_t whole = std::min(chunk.panels, (w.shape(0) - chunk.column) / kPanel);
  int64_t p = 0;
  if (w.stride(0) == 1) {
    copy_panels(d, w, {chunk.first, chunk.count, chunk.column, whole}, panels);
    p = whole;
  }
  if constexpr (std::is_same_v<T, float>) {
    for (; w.stride(1) == 1 && p < whole; ++p) {
      pack(w.at(chunk.column + p * kPanel, chunk.first), w.stride(0), chunk.count, panels + p * kChunkApart);
    }
  }
  for (; p < chunk.panels; ++p) {
    gather_panel(w, {chunk.first, chunk.count, chunk.column + p * kPanel, 1}, panels + p * kChunkApart);
  }
}

// What takes the place of a piece in the next chunk, where outputs are contiguous: a line or two of every input, far
// from each other. The hardware prefetches contiguous inputs by itself.
template <class T>
PanelPrefetch prefetch_chunk(const View<const T, 2>& w, const Tile& tile, const Piece& piece) {
  const int64_t column = piece.column + kChunkPanels * kPanel;
  if (w.stride(0) != 1 || column >= tile.column + tile.columns) return {};
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  auto prefetch = PanelPrefetch::of(w.at(column, piece.first), piece.count, piece.count, blocks_of(tile));
  prefetch.step = w.stride(1) * kBytes, prefetch.apart = kPanel * kBytes;
  return prefetch;
}

// All rows of a tile, x from the chunk's inputs on, over the panels of a chunk.
template <class T>
void multiply_chunk(F d, const Projection& call, const Tile& tile, const Chunk& chunk, const Inputs& x, float* panels) {
  const View<const T, 2> w = call.w.view<T>();
  pack_chunk(d, w, chunk, panels);
  const Tile columns{tile.row, tile.rows, chunk.column,
                     std::min(chunk.panels * kPanel, tile.column + tile.columns - chunk.column)};
  for_panels(columns, [&](int64_t column, int64_t together) HWY_ATTR {
    const Piece piece{chunk.first, chunk.count, column, together};
    const float* from = panels + (column - chunk.column) / kPanel * kChunkApart;
    multiply_blocks<float>(d, call, tile, piece, x, {from, kChunkApart, chunk.count}, prefetch_chunk(w, tile, piece));
  });
}

// Rows over a matrix that is not packed. inputs_of(first, count) gives those of x.
template <class T, class InputsOf>
HWY_INLINE void block_view(F d, const Projection& call, const Tile& tile, const InputsOf& inputs_of) {
  HWY_ALIGN float panels[kChunkPanels * kChunkApart];
  const int64_t inputs = call.w.inputs(), panels_of_tile = (tile.columns + kPanel - 1) / kPanel;
  for (int64_t first = 0; first == 0 || first < inputs; first += kChunkInputs) {
    const int64_t count = std::min(kChunkInputs, inputs - first);
    const Inputs x = inputs_of(first, count);
    for (int64_t p = 0; p < panels_of_tile; p += kChunkPanels) {
      const Chunk chunk{first, count, tile.column + p * kPanel, std::min(kChunkPanels, panels_of_tile - p)};
      multiply_chunk<T>(d, call, tile, chunk, x, panels);
    }
  }
}

template <class T>
void block_rows(F d, const Projection& call, const Tile& tile) {
  block_view<T>(d, call, tile, [&](int64_t first, int64_t) HWY_ATTR {
    return Inputs{call.x.at(tile.row, first), call.x.stride(0)};
  });
}

// The same for an x whose columns are contiguous: they are copied to where they are near each other.
template <class T>
void block_columns(F d, const Projection& call, const Tile& tile) {
  constexpr int64_t kStride = kMostColumnRows + kPanel;  // not a power of two: inputs would share the sets of a cache
  HWY_ALIGN float columns[kChunkInputs * kStride];
  block_view<T>(d, call, tile, [&](int64_t first, int64_t count) HWY_ATTR {
    copy_rows({{call.x.at(tile.row, first), call.x.stride(1)}, count, tile.rows}, {columns, kStride});
    return Inputs{columns, kStride, true};
  });
}

// A few rows are bound by reading w: where outputs are contiguous it is read as it is, all outputs of some inputs in
// one run.
void stream_view(F d, const Projection& call, const Tile& tile) {
  constexpr int64_t kFewInputs = 16;
  const View<const float, 2> w = call.w.view();
  const int64_t inputs = w.shape(1), part = tile.columns % kPanel, whole = tile.columns - part;
  for (int64_t first = 0; first == 0 || first < inputs; first += kFewInputs) {
    const int64_t count = std::min(kFewInputs, inputs - first), last = tile.column + whole;
    HWY_ALIGN float panel[kFewInputs * kPanel];
    if (part > 0) gather_panel(w, {first, count, last, 1}, panel);
    with_rows(tile.rows, [&](auto R) HWY_ATTR {
      RowBlock rows = row_block(call, tile, first, tile.column);
      rows.columns = whole;
      stream_panels<R, float>(d, rows, {w.at(tile.column, first), kPanel, count, w.stride(1)});
      if (part > 0) multiply_part<R, float>(d, row_block(call, tile, first, last), {panel, 0, count}, {});
    });
  }
}

template <class T>
void project_as(const Projection& call, const Tile& tile) {
  const F d;
  if (!call.w.packed()) {
    if constexpr (std::is_same_v<T, float>) {
      const bool few = tile.rows <= kMostRows && call.w.view().stride(0) == 1;
      if (few && has_contiguous_rows(call.x)) return stream_view(d, call, tile);
    }
    return has_contiguous_rows(call.x) ? block_rows<T>(d, call, tile) : block_columns<T>(d, call, tile);
  }
  if (tile.rows > kMostRows) return block_panels<T>(d, call, tile);
  const int64_t inputs = call.w.inputs();
  const PanelsOf<T> panels{call.w.panel<T>(tile.column / kPanel), inputs * kPanel, inputs};
  with_rows(tile.rows, [&](auto R) HWY_ATTR { stream_panels<R>(d, row_block(call, tile, 0, tile.column), panels); });
}

void project(const Projection& call, const Tile& tile) {
  if (call.w.dtype() == DType::f32) project_as<float>(call, tile);
  if (call.w.dtype() == DType::bf16) project_as<BFloat16>(call, tile);
  if (call.w.dtype() == DType::f16) project_as<Float16>(call, tile);
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::kernels {

HWY_EXPORT(project);
HWY_EXPORT(pack);

void project_tile(const Projection& call, const Tile& tile) noexcept { HWY_DYNAMIC_DISPATCH(project)(call, tile); }

void pack_whole_panel(const float* rows, int64_t stride, int64_t inputs, float* panel) noexcept {
  HWY_DYNAMIC_DISPATCH(pack)(rows, stride, inputs, panel);
}

}  // namespace heed::kernels

#endif  // HWY_ONCE
