// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/norm.h"

#include <cassert>
#include <cmath>

namespace heed::kernels::reference {
namespace {

using Inputs = NormInputs<double>;
using Outputs = NormOutputs<double>;
using Gradients = NormGradients<double>;

double weight_at(const Inputs& in, int64_t c) { return in.weight ? in.weight(c) : 1; }
double bias_at(const Inputs& in, int64_t c) { return in.bias ? in.bias(c) : 0; }

// y = n weight + bias, n = (x - mean) rstd, where mean is 0 for RMS norm.
void forward_row(const Inputs& in, const Outputs& out, int64_t r, double mean) {
  const int64_t width = in.x.shape(1);
  double squares = 0;
  for (int64_t c = 0; c < width; ++c) squares += (in.x(r, c) - mean) * (in.x(r, c) - mean);
  const double rstd = 1 / std::sqrt(squares / static_cast<double>(width) + in.eps);
  for (int64_t c = 0; c < width; ++c) {
    out.y(r, c) = (in.x(r, c) - mean) * rstd * weight_at(in, c) + bias_at(in, c);
  }
  if (out.mean) out.mean(r) = mean;
  if (out.rstd) out.rstd(r) = rstd;
}

double mean_of_row(const View<const double, 2>& x, int64_t r) {
  double sum = 0;
  for (int64_t c = 0; c < x.shape(1); ++c) sum += x(r, c);
  return sum / static_cast<double>(x.shape(1));
}

// With g = dy weight:  dx = rstd (g - mean(g) - n mean(g n)), where RMS norm, which takes no mean away, lacks mean(g).
void backward_row(const Inputs& in, const Gradients& to, int64_t r, bool centred) {
  const int64_t width = in.x.shape(1);
  const double mean = centred ? to.mean(r) : 0, rstd = to.rstd(r);
  double mean_g = 0, mean_gn = 0;
  for (int64_t c = 0; c < width; ++c) {
    const double n = (in.x(r, c) - mean) * rstd, g = to.dy(r, c) * weight_at(in, c);
    mean_g += g / static_cast<double>(width);
    mean_gn += g * n / static_cast<double>(width);
    if (to.dweight) to.dweight(c) += to.dy(r, c) * n;
    if (to.dbias) to.dbias(c) += to.dy(r, c);
  }
  if (!to.dx) return;
  for (int64_t c = 0; c < width; ++c) {
    const double n = (in.x(r, c) - mean) * rstd, g = to.dy(r, c) * weight_at(in, c);
    to.dx(r, c) += rstd * (g - (centred ? mean_g : 0) - n * mean_gn);
  }
}

}  // namespace

void layer_norm_forward(const Inputs& in, const Outputs& out) {
  for (int64_t r = 0; r < in.x.shape(0); ++r) forward_row(in, out, r, mean_of_row(in.x, r));
}

void layer_norm_backward(const Inputs& in, const Gradients& to) {
  for (int64_t r = 0; r < in.x.shape(0); ++r) backward_row(in, to, r, true);
}

void rms_norm_forward(const Inputs& in, const Outputs& out) {
  assert(!in.bias && !out.mean);
  for (int64_t r = 0; r < in.x.shape(0); ++r) forward_row(in, out, r, 0);
}

void rms_norm_backward(const Inputs& in, const Gradients& to) {
  assert(!in.bias && !to.dbias);
  for (int64_t r = 0; r < in.x.shape(0); ++r) backward_row(in, to, r, false);
}

}  // namespace heed::kernels::reference
