// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/embedding.h"

#include <array>

#include "heed/kernels/embedding.h"
#include "heed/kernels/reference/embedding.h"
#include "heed/kernels/reference/rope.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"
#include "heed/ops/heads.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

constexpr Kernel kEmbeddingForward{kernels::embedding_forward, reference::embedding_forward};
constexpr Kernel kEmbeddingBackward{kernels::embedding_backward, reference::embedding_backward};
constexpr Kernel kRotaryTables{kernels::rope_tables, reference::rope_tables};
constexpr Kernel kRotaryForward{kernels::rope_forward, reference::rope_forward};
constexpr Kernel kRotaryBackward{kernels::rope_backward, reference::rope_backward};

Shape with_width(const Shape& ids, int64_t width) {
  std::array<int64_t, Shape::kMaxRank + 1> extents;
  for (size_t i = 0; i < ids.rank(); ++i) extents[i] = ids[static_cast<int>(i)];
  extents[ids.rank()] = width;
  return Shape(std::span<const int64_t>(extents.data(), ids.rank() + 1));
}

template <class T>
kernels::RopeTables<T> tables_of(const RotaryTables& tables, const RotaryOptions& options) {
  return {.cos = tables.cos.view<const T, 2>(),
          .sin = tables.sin.view<const T, 2>(),
          .positions = {},
          .offset = options.offset,
          .pairs = options.pairs};
}

void check_rotary(const Var& x, const RotaryTables& tables, const RotaryOptions& options) {
  check_rows("rotary", "x", x);
  if (x.shape().rank() != 3 || options.heads < 1 || x.shape(2) % options.heads != 0) {
    fail("rotary", "x has shape " + to_string(x.shape()) + ", expected [B, T, a multiple of " +
                       std::to_string(options.heads) + " heads]");
  }
  check_there("rotary", "the table of cosines", tables.cos);
  if (tables.cos.shape().rank() != 2) {
    fail("rotary", "the table of cosines has shape " + to_string(tables.cos.shape()) + ", expected [P, R/2]");
  }
  check_shape("rotary", "the table of sines", tables.sin, tables.cos.shape());
  check_dtype("rotary", "the table of cosines", tables.cos, x.dtype());
  check_dtype("rotary", "the table of sines", tables.sin, x.dtype());
  if (tables.cos.shape(1) * 2 > x.shape(2) / options.heads) {
    fail("rotary", "the tables rotate " + std::to_string(tables.cos.shape(1) * 2) + " numbers, expected at most " +
                       std::to_string(x.shape(2) / options.heads) + " (a head's width)");
  }
  if (!within(options.offset, x.shape(1), tables.cos.shape(0))) {
    fail("rotary", std::to_string(x.shape(1)) + " tokens from position " + std::to_string(options.offset) +
                       " on came, expected them within the tables' " + std::to_string(tables.cos.shape(0)));
  }
}

}  // namespace

Var embedding(const Context& context, const Var& table, const Tensor& ids, double factor) {
  check_rows("embedding", "table", table);
  if (table.shape().rank() != 2) {
    fail("embedding", "table has shape " + to_string(table.shape()) + ", expected [V, E]");
  }
  if (!ids || ids.dtype() != DType::i32) fail("embedding", "ids are not i32, expected token ids");
  for (int32_t id : ids.span<int32_t>()) {
    if (id < 0 || id >= table.shape(0)) {
      fail("embedding", "an id is " + std::to_string(id) + ", expected 0 to " + std::to_string(table.shape(0) - 1));
    }
  }
  const Tensor y = Tensor::uninitialised(with_width(ids.shape(), table.shape(1)), table.dtype());
  kEmbeddingForward(context, table, ids, factor, y);
  return record(context, {table}, y, [ids, factor](const Backward& backward) {
    kEmbeddingBackward(backward, ids, backward.of(0), factor, backward.to(0));
  });
}

RotaryTables RotaryTables::make(int64_t positions, int64_t width, double base, DType dtype, int64_t first) {
  if (width < 0 || width % 2 != 0) fail("rotary", "width is " + std::to_string(width) + ", expected an even number");
  if (dtype != DType::f32 && dtype != DType::f64) fail_dtype("rotary", dtype);
  RotaryTables tables{Tensor::uninitialised({positions, width / 2}, dtype),
                      Tensor::uninitialised({positions, width / 2}, dtype)};
  kRotaryTables(None{}, base, tables.cos, tables.sin, first);
  return tables;
}

Var rotary(const Context& context, const Var& x, const RotaryTables& tables, const RotaryOptions& options) {
  check_rotary(x, tables, options);
  const Tensor y = Tensor::like(x.value());
  with_float("rotary", x.dtype(), [&]<class T>(T) {
    kRotaryForward(context, tables_of<T>(tables, options), by_heads<const T>(x.value(), options.heads),
                   by_heads<T>(y, options.heads));
  });
  return record(context, {x}, y, [tables, options](const Backward& backward) {
    const Tensor &dy = backward.of(0), dx = backward.to(0);
    with_float("rotary", dy.dtype(), [&]<class T>(T) {
      kRotaryBackward(backward, tables_of<T>(tables, options), by_heads<const T>(dy, options.heads),
                      by_heads<T>(dx, options.heads));
    });
  });
}

}  // namespace heed::ops
