#include "heed/ops/elementwise.h"

#include "heed/kernels/elementwise.h"
#include "heed/kernels/reference/activation.h"
#include "heed/kernels/reference/dropout.h"
#include "heed/kernels/reference/elementwise.h"
#include "heed/ops/check.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;
using kernels::Activation;
using kernels::ElementDropout;

bool in_double(const Tensor& x) { return x.dtype() == DType::f64; }

// Columns [begin, begin + count) of the last dimension, as rows with a stride.
template <class T>
View<T, 2> columns_of(const Tensor& x, int64_t begin, int64_t count) {
  return x ? x.view<T, 2>().slice(1, begin, count) : View<T, 2>();
}

void copy(const Context& context, const Tensor& from, int64_t from_column, const Tensor& to, int64_t to_column,
          int64_t count) {
  if (in_double(from)) {
    reference::copy_forward(columns_of<const double>(from, from_column, count),
                            columns_of<double>(to, to_column, count));
  } else {
    kernels::copy_forward(columns_of<const float>(from, from_column, count), columns_of<float>(to, to_column, count),
                          context.parallel);
  }
}

// to[.., to_column ..] += from[.., from_column ..]
void add_columns(const Backward& backward, const Tensor& from, int64_t from_column, const Tensor& to, int64_t to_column,
                 int64_t count) {
  if (!to) return;
  if (in_double(from)) {
    reference::copy_backward(columns_of<const double>(from, from_column, count),
                             columns_of<double>(to, to_column, count));
  } else {
    kernels::copy_backward(columns_of<const float>(from, from_column, count), columns_of<float>(to, to_column, count),
                           backward.parallel());
  }
}

void check_dropout(const Var& x, const ElementDropout& dropout) {
  check_numbers("dropout", "x", x);
  if (!(dropout.rate >= 0 && dropout.rate < 1)) {
    refuse("dropout", "rate is " + std::to_string(dropout.rate) + ", expected at least 0 and below 1");
  }
  if (dropout.stream >> 63) refuse("dropout", "stream is " + std::to_string(dropout.stream) + ", expected below 2^63");
}

}  // namespace

Var add(const Context& context, const Var& a, const Var& b) {
  check_numbers("add", "a", a);
  check_shape("add", "b", b, a.shape());
  check_dtype("add", "b", b, a.dtype());
  const Tensor y = Tensor::like(a.value());
  if (in_double(y)) {
    reference::add_forward(a.value().view<const double, 2>(), b.value().view<const double, 2>(), y.view<double, 2>());
  } else {
    kernels::add_forward(a.value().view<const float, 2>(), b.value().view<const float, 2>(), y.view<float, 2>(),
                         context.parallel);
  }
  return record(context, {a, b}, y, [](const Backward& backward) {
    backward.pass_on(0, backward.of(0));
    backward.pass_on(1, backward.of(0));
  });
}

Var multiply(const Context& context, const Var& a, const Var& b) {
  check_numbers("multiply", "a", a);
  check_shape("multiply", "b", b, a.shape());
  check_dtype("multiply", "b", b, a.dtype());
  const Tensor y = Tensor::like(a.value());
  if (in_double(y)) {
    reference::multiply_forward(a.value().view<const double, 2>(), b.value().view<const double, 2>(),
                                y.view<double, 2>());
  } else {
    kernels::multiply_forward(a.value().view<const float, 2>(), b.value().view<const float, 2>(), y.view<float, 2>(),
                              context.parallel);
  }
  return record(context, {a, b}, y, [from_a = a.value(), from_b = b.value()](const Backward& backward) {
    const Tensor& dy = backward.of(0);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      if (!backward.wants(i)) continue;
      const Tensor& other = i == 0 ? from_b : from_a;
      if (in_double(dy)) {
        reference::multiply_backward(other.view<const double, 2>(), dy.view<const double, 2>(),
                                     backward.to(i).view<double, 2>());
      } else {
        kernels::multiply_backward(other.view<const float, 2>(), dy.view<const float, 2>(),
                                   backward.to(i).view<float, 2>(), backward.parallel());
      }
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
    refuse("add_row",
           "row has shape " + to_string(row.shape()) + ", expected the last dimensions of " + to_string(x.shape()));
  }
  const Shape flat{width == 0 ? 0 : x.value().size() / width, width};
  const Tensor y = Tensor::like(x.value()), x2 = x.value().reshaped(flat), y2 = y.reshaped(flat);
  const Tensor row1 = row.value().reshaped({width});
  if (in_double(y)) {
    reference::add_row_forward(x2.view<const double, 2>(), row1.view<const double, 1>(), y2.view<double, 2>());
  } else {
    kernels::add_row_forward(x2.view<const float, 2>(), row1.view<const float, 1>(), y2.view<float, 2>(),
                             context.parallel);
  }
  return record(context, {x, row}, y, [flat, width](const Backward& backward) {
    if (backward.wants(1)) {
      const Tensor dy = backward.of(0).reshaped(flat), drow = backward.to(1).reshaped({width});
      if (in_double(dy)) {
        reference::add_row_backward(dy.view<const double, 2>(), {}, drow.view<double, 1>());
      } else {
        kernels::add_row_backward(dy.view<const float, 2>(), {}, drow.view<float, 1>(), backward.parallel());
      }
    }
    backward.pass_on(0, backward.of(0));
  });
}

Var scale(const Context& context, const Var& x, double factor) {
  check_numbers("scale", "x", x);
  const Tensor y = Tensor::like(x.value());
  if (in_double(y)) {
    reference::scale_forward(x.value().view<const double, 2>(), factor, y.view<double, 2>());
  } else {
    kernels::scale_forward(x.value().view<const float, 2>(), factor, y.view<float, 2>(), context.parallel);
  }
  return record(context, {x}, y, [factor](const Backward& backward) {
    const Tensor& dy = backward.of(0);
    if (in_double(dy)) {
      reference::scale_backward(dy.view<const double, 2>(), factor, backward.to(0).view<double, 2>());
    } else {
      kernels::scale_backward(dy.view<const float, 2>(), factor, backward.to(0).view<float, 2>(), backward.parallel());
    }
  });
}

Var activation(const Context& context, const Var& x, Activation kind) {
  check_numbers("activation", "x", x);
  const Tensor y = Tensor::like(x.value());
  if (in_double(y)) {
    reference::activation_forward(kind, x.value().view<const double, 2>(), y.view<double, 2>());
  } else {
    kernels::activation_forward(kind, x.value().view<const float, 2>(), y.view<float, 2>(), context.parallel);
  }
  return record(context, {x}, y, [kind, from = x.value()](const Backward& backward) {
    const Tensor& dy = backward.of(0);
    if (in_double(dy)) {
      reference::activation_backward(kind, from.view<const double, 2>(), dy.view<const double, 2>(),
                                     backward.to(0).view<double, 2>());
    } else {
      kernels::activation_backward(kind, from.view<const float, 2>(), dy.view<const float, 2>(),
                                   backward.to(0).view<float, 2>(), backward.parallel());
    }
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
  if (in_double(y)) {
    reference::dropout_forward(dropout, x.value().view<const double, 1>(), residual.value().view<const double, 1>(),
                               y.view<double, 1>());
  } else {
    kernels::dropout_forward(dropout, x.value().view<const float, 1>(), residual.value().view<const float, 1>(),
                             y.view<float, 1>(), context.parallel);
  }
  return record(context, {x, residual}, y, [dropout](const Backward& backward) {
    const Tensor& dy = backward.of(0);
    if (backward.wants(0) && in_double(dy)) {
      reference::dropout_backward(dropout, dy.view<const double, 1>(), backward.to(0).view<double, 1>());
    } else if (backward.wants(0)) {
      kernels::dropout_backward(dropout, dy.view<const float, 1>(), backward.to(0).view<float, 1>(),
                                backward.parallel());
    }
    backward.pass_on(1, dy);
  });
}

Var concat(const Context& context, std::span<const Var> parts) {
  if (parts.empty()) refuse("concat", "no parts came, expected at least one");
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
  bool tracked = false;
  for (const Var& part : parts) {
    copy(context, part.value(), 0, y, at, part.shape(-1));
    widths.push_back(part.shape(-1));
    at += widths.back();
    tracked = tracked || part.tracked();
  }
  if (!context.tape || !tracked) return y;
  return context.tape->record(parts, y, [widths = std::move(widths)](const Backward& backward) {
    int64_t begin = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      add_columns(backward, backward.of(0), begin, backward.to(i), 0, widths[i]);
      begin += widths[i];
    }
  });
}

Var columns(const Context& context, const Var& x, int64_t begin, int64_t count) {
  check_rows("columns", "x", x);
  if (!within(begin, count, x.shape(-1))) {
    refuse("columns", std::to_string(count) + " columns from " + std::to_string(begin) +
                          " on came, expected them within the last dimension of " + to_string(x.shape()));
  }
  const Tensor y = Tensor::uninitialised(x.shape().with(-1, count), x.dtype());
  copy(context, x.value(), begin, y, 0, count);
  return record(context, {x}, y, [begin, count](const Backward& backward) {
    add_columns(backward, backward.of(0), 0, backward.to(0), begin, count);
  });
}

Var reshape(const Context& context, const Var& x, const Shape& shape) {
  check_there("reshape", "x", x);
  if (shape.size() != x.value().size()) {
    refuse("reshape",
           "x has shape " + to_string(x.shape()) + ", expected as many numbers as " + to_string(shape) + " has");
  }
  return record(context, {x}, x.value().reshaped(shape),
                [](const Backward& backward) { backward.pass_on(0, backward.of(0)); });
}

Var rows(const Context& context, const Var& x, int64_t begin, int64_t count) {
  check_rows("rows", "x", x);
  if (!within(begin, count, x.shape(0))) {
    refuse("rows", std::to_string(count) + " entries from " + std::to_string(begin) +
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
