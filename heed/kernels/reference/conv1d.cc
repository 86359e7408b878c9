// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/conv1d.h"

namespace heed::kernels::reference {
namespace {

// body(b, t, s, column of w): every real token t, every real token s that it sees, and where its matrix begins.
template <class Body>
void for_taps(const Conv1dInputs<double>& in, const Body& body) {
  for (int64_t b = 0; b < in.x.shape(0); ++b) {
    for (int64_t t = 0; t < in.length(b); ++t) {
      for (int64_t k = 0; k < in.taps(); ++k) {
        const int64_t s = t + k - (in.taps() - 1) / 2;
        if (s >= 0 && s < in.length(b)) body(b, t, s, k * in.x.shape(2));
      }
    }
  }
}

}  // namespace

void conv1d_forward(const Conv1dInputs<double>& in, const View<double, 3>& y) {
  for (int64_t b = 0; b < y.shape(0); ++b) {
    for (int64_t t = 0; t < y.shape(1); ++t) {
      for (int64_t o = 0; o < y.shape(2); ++o) y(b, t, o) = in.b && t < in.length(b) ? in.b(o) : 0;
    }
  }
  for_taps(in, [&](int64_t b, int64_t t, int64_t s, int64_t column) {
    for (int64_t o = 0; o < y.shape(2); ++o) {
      for (int64_t i = 0; i < in.x.shape(2); ++i) y(b, t, o) += in.w(o, column + i) * in.x(b, s, i);
    }
  });
}

void conv1d_backward(const Conv1dInputs<double>& in, const Conv1dGradients<double>& grad) {
  const int64_t O = in.w.shape(0);
  for (int64_t b = 0; grad.db && b < in.x.shape(0); ++b) {
    for (int64_t t = 0; t < in.length(b); ++t) {
      for (int64_t o = 0; o < O; ++o) grad.db(o) += grad.dy(b, t, o);
    }
  }
  for_taps(in, [&](int64_t b, int64_t t, int64_t s, int64_t column) {
    for (int64_t o = 0; o < O; ++o) {
      for (int64_t i = 0; i < in.x.shape(2); ++i) {
        if (grad.dx) grad.dx(b, s, i) += grad.dy(b, t, o) * in.w(o, column + i);
        if (grad.dw) grad.dw(o, column + i) += grad.dy(b, t, o) * in.x(b, s, i);
      }
    }
  });
}

}  // namespace heed::kernels::reference
