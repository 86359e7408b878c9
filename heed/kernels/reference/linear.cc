// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/linear.h"

#include "heed/kernels/reference/activation.h"

namespace heed::kernels::reference {

void linear_forward(const LinearInputs& in, const LinearOutputs& out, Activation activation) {
  for (int64_t m = 0; m < in.x.shape(0); ++m) {
    for (int64_t o = 0; o < in.w.shape(0); ++o) {
      double z = in.b ? in.b(o) : 0;
      for (int64_t i = 0; i < in.x.shape(1); ++i) z += in.x(m, i) * in.w(o, i);
      if (out.z) out.z(m, o) = z;
      out.y(m, o) = activate(activation, z);
    }
  }
}

void linear_backward(const LinearInputs& in, const LinearGradients& grad, Activation activation) {
  for (int64_t m = 0; m < in.x.shape(0); ++m) {
    for (int64_t o = 0; o < in.w.shape(0); ++o) {
      const double dz = grad.dy(m, o) * (activation == Activation::none ? 1 : slope(activation, grad.z(m, o)));
      if (grad.db) grad.db(o) += dz;
      for (int64_t i = 0; i < in.x.shape(1); ++i) {
        if (grad.dx) grad.dx(m, i) += dz * in.w(o, i);
        if (grad.dw) grad.dw(o, i) += dz * in.x(m, i);
      }
    }
  }
}

}  // namespace heed::kernels::reference
