// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/elementwise.h"

#include "heed/kernels/elementwise.h"
#include "heed/kernels/reference/activation.h"
#include "heed/kernels/reference/dropout.h"
#include "heed/kernels/reference/elementwise.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;
using kernels::Activation;
using kernels::ElementDropout;

constexpr Kernel kAddForward{kernels::add_forward, reference::add_forward};
constexpr Kernel kMultiplyForward{kernels::multiply_forward, reference::multiply_forward};
constexpr Kernel kMultiplyBackward{kernels::multiply_backward, reference::multiply_backward};
constexpr Kernel kAddRowForward{kernels::add_row_forward, reference::add_row_forward};
constexpr Kernel kAddRowBackward{kernels::add_row_backward, reference::add_row_backward};
constexpr Kernel kScaleForward{kernels::scale_forward, reference::scale_forward};
constexpr Kernel kScaleBackward{kernels::scale_backward, reference::scale_backward};
constexpr Kernel kActivationForward{kernels::activation_forward, reference::activation_forward};
constexpr Kernel kActivationBackward{kernels::activation_backward, reference::activation_backward};
constexpr Kernel kDropoutForward{kernels::dropout_forward, reference::dropout_forward};
constexpr Kernel kDropoutBackward{kernels::dropout_backward, reference::dropout_backward};
constexpr Kernel kCopyForward{kernels::copy_forward, reference::copy_forward};
constexpr Kernel kCopyBackward{kernels::copy_backward, reference::copy_backward};

// Columns of a tensor: where they begin, and how many there are.
struct Columns {
  const Tensor& x;
  int64_t begin;

  template <class T>
  View<T, 2> view(int64_t count) const {
    return x.view<T, 2>().slice(1, begin, count);
  }
};

void copy(const Context& context, const Columns& from, const Columns& to, int64_t count) {
  with_float("copy", from.x.dtype(),
             [&]<class T>(T) { kCopyForward(context, from.view<const T>(count), to.view<T>(count)); });
}

// to += from, where the gradient `to` is wanted.
void add_columns(const Backward& backward, const Columns& from, const Columns& to, int64_t count) {
  if (!to.x) return;
  with_float("copy", from.x.dtype(),
             [&]<class T>(T) { kCopyBackward(backward, from.view<const T>(count), to.view<T>(count)); });
}

// Two operands of one shape and dtype.
void check_alike(const char* op, const Var& a, const Var& b) {
  check_numbers(op, "a", a);
  check_shape(op, "b", b, a.shape());
  check_dtype(op, "b", b, a.dtype());
}

void check_dropout(const Var& x, const ElementDropout& dropout) {
  check_numbers("dropout", "x", x);
  if (!(dropout.rate >= 0 && dropout.rate < 1)) {
    fail("dropout", "rate is " + std::to_string(dropout.rate) + ", expected at least 0 and below 1");
  }
  if (dropout.stream >> 63) fail("dropout", "stream is " + std::to_string(dropout.stream) + ", expected below 2^63");
}

}  // namespace

Var add(const Context& context, const Var& a, const Var& b) {
  check_alike("add", a, b);
  const Tensor y = Tensor::like(a.value());
  kAddForward(context, a, b, y);
  return record(context, {a, b}, y, [](const Backward& backward) {
    backward.pass_on(0, backward.of(0));
    backward.pass_on(1, backward.of(0));
  });
}

Var multiply(const Context& context, const Var& a, const Var& b) {
  check_alike("multiply", a, b);
  const Tensor y = Tensor::like(a.value());
  kMultiplyForward(context, a, b, y);
  return record(context, {a, b}, y, [from_a = a.value(), from_b = b.value()](const Backward& backward) {
    const Tensor& dy = backward.of(0);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (!backward.wants(i)) continue;
      kMultiplyBackward(backward, i == 0 ? from_b : from_a, dy, backward.to(i));
    }
  });
}

Var add_row(const Context& context, const Var& x, const Var& row) {
  check_numbers("add_row", "x", x);
  check_there("add_row", "row", row);
  check_dtype("add_row", "row", row, x.dtype());
  const int64_t width = row.value().size();
  bool fits = row.shape().rank() <= x.shape().rank();
  for (int i = -1; fits && i >= -static_cast<int>(row.shape().rank()); --i) fits = row.shape(i) == x.shape(i);
  if (!fits) {
    fail("add_row",
         "row has shape " + to_string(row.shape()) + ", expected the last dimensions of " + to_string(x.shape()));
  }
  const Shape flat{width == 0 ? 0 : x.value().size() / width, width};
  const Tensor y = Tensor::like(x.value()), x2 = x.value().reshaped(flat), y2 = y.reshaped(flat);
  const Tensor row1 = row.value().reshaped({width});
  kAddRowForward(context, x2, row1, y2);
  return record(context, {x, row}, y, [flat, width](const Backward& backward) {
    if (backward.wants(1)) {
      const Tensor dy = backward.of(0).reshaped(flat), drow = backward.to(1).reshaped({width});
      kAddRowBackward(backward, dy, Tensor(), drow);
    }
    backward.pass_on(0, backward.of(0));
  });
}

Var scale(const Context& context, const Var& x, double factor) {
  check_numbers("scale", "x", x);
  const Tensor y = Tensor::like(x.value());
  kScaleForward(context, x, factor, y);
  return record(context, {x}, y, [factor](const Backward& backward) {
    kScaleBackward(backward, backward.of(0), factor, backward.to(0));
  });
}

Var activation(const Context& context, const Var& x, Activation kind) {
  check_numbers("activation", "x", x);
  const Tensor y = Tensor::like(x.value());
  kActivationForward(context, kind, x, y);
  return record(context, {x}, y, [kind, from = x.value()](const Backward& backward) {
    kActivationBackward(backward, kind, from, backward.of(0), backward.to(0));
  });
}

Var dropout(const Context& context, const Var& x, const ElementDropout& dropout) {
  check_dropout(x, dropout);
  return dropout.on() ? residual_dropout(context, {}, x, dropout) : x;
}

Var residual_dropout(const Context& context, const Var& residual, const Var& x, const ElementDropout& dropout) {
  check_dropout(x, dropout);
  if (residual) check_shape("dropout", "residual", residual, x.shape());
  check_dtype("dropout", "residual", residual, x.dtype());
  if (!dropout.on()) return residual ? add(context, residual, x) : x;
  const Tensor y = Tensor::like(x.value());
  kDropoutForward(context, dropout, x, residual, y);
  return record(context, {x, residual}, y, [dropout](const Backward& backward) {
    if (backward.wants(0)) kDropoutBackward(backward, dropout, backward.of(0), backward.to(0));
    backward.pass_on(1, backward.of(0));
  });
}

Var concat(const Context& context, std::span<const Var> parts) {
  if (parts.empty()) fail("concat", "no parts came, expected at least one");
  check_rows("concat", "the first part", parts[0]);
  int64_t width = 0;
  for (const Var& part : parts) {
    check_rows("concat", "a part", part);
    check_shape("concat", "a part", part, parts[0].shape().with(-1, part.shape(-1)));
    check_dtype("concat", "a part", part, parts[0].dtype());
    width += part.shape(-1);
  }
  const Tensor y = Tensor::uninitialised(parts[0].shape().with(-1, width), parts[0].dtype());
  CachedVector<int64_t> widths;
  int64_t at = 0;
  for (const Var& part : parts) {
    copy(context, {part.value(), 0}, {y, at}, part.shape(-1));
    widths.push_back(part.shape(-1));
    at += widths.back();
  }
  return record(context, parts, y, [widths = std::move(widths)](const Backward& backward) {
    int64_t begin = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      add_columns(backward, {backward.of(0), begin}, {backward.to(i), 0}, widths[i]);
      begin += widths[i];
    }
  });
}

Var columns(const Context& context, const Var& x, int64_t begin, int64_t count) {
  check_rows("columns", "x", x);
  if (!within(begin, count, x.shape(-1))) {
    fail("columns", std::to_string(count) + " columns from " + std::to_string(begin) +
                        " on came, expected them within the last dimension of " + to_string(x.shape()));
  }
  const Tensor y = Tensor::uninitialised(x.shape().with(-1, count), x.dtype());
  copy(context, {x.value(), begin}, {y, 0}, count);
  return record(context, {x}, y, [begin, count](const Backward& backward) {
    add_columns(backward, {backward.of(0), 0}, {backward.to(0), begin}, count);
  });
}

Var reshape(const Context& context, const Var& x, const Shape& shape) {
  check_there("reshape", "x", x);
  if (shape.size() != x.value().size()) {
    fail("reshape",
         "x has shape " + to_string(x.shape()) + ", expected as many numbers as " + to_string(shape) + " has");
  }
  return record(context, {x}, x.value().reshaped(shape),
                [](const Backward& backward) { backward.pass_on(0, backward.of(0)); });
}

Var rows(const Context& context, const Var& x, int64_t begin, int64_t count) {
  check_rows("rows", "x", x);
  if (!within(begin, count, x.shape(0))) {
    fail("rows", std::to_string(count) + " entries from " + std::to_string(begin) +
                     " on came, expected them within the first dimension of " + to_string(x.shape()));
  }
  return record(context, {x}, x.value().slice(begin, count), [begin, count](const Backward& backward) {
    const Tensor to = backward.to(0).slice(begin, count), &from = backward.of(0);
    with_float("rows", to.dtype(), [&](auto tag) {
      using T = decltype(tag);
      for (int64_t i = 0; i < to.size(); ++i) to.data<T>()[i] += from.data<T>()[i];
    });
  });
}

Var sum(const Context& context, const Var& x) {
  check_numbers("sum", "x", x);
  double total = 0;
  with_float("sum", x.dtype(), [&](auto tag) {
    for (const auto element : x.value().span<decltype(tag)>()) total += static_cast<double>(element);
  });
  return record(context, {x}, Tensor::full({}, total, x.dtype()), [](const Backward& backward) {
    const double d = backward.of(0).item();
    const Tensor to = backward.to(0);
    with_float("sum", to.dtype(), [&](auto tag) {
      using T = decltype(tag);
      for (T& element : to.span<T>()) element += static_cast<T>(d);
    });
  });
}

}  // namespace heed::ops
