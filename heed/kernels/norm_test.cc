// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/norm.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// One instance: rows, parameters and what backward is given, in both precisions.
struct Norm {
  bool centred, has_weight, has_bias;
  int64_t rows, width;
  double eps;
  Rows x, dy, dx;
  std::vector<float> weight, bias, dweight, dbias;

  static Norm draw(Rng& rng) {
    const bool centred = rng.below(2), weight = rng.below(4) > 0, bias = centred && rng.below(4) > 0;
    const int64_t rows = rng.below(4) == 0 ? 40 + static_cast<int64_t>(rng.below(300)) : draw_rows(rng);
    return Norm(centred, weight, bias, rows, draw_width(rng, false), rng);
  }
  Norm(bool is_centred, bool with_weight, bool with_bias, int64_t row_count, int64_t row_width, Rng& rng)
      : centred(is_centred),
        has_weight(with_weight),
        has_bias(with_bias),
        rows(row_count),
        width(row_width),
        eps(rng.below(2) ? 1e-5 : 1e-12),
        x(Rows::normal(rows, width, rng)),
        dy(Rows::normal(rows, width, rng)),
        dx(Rows::normal(rows, width, rng)),
        weight(normals(width, rng)),
        bias(normals(width, rng)),
        dweight(normals(width, rng)),
        dbias(normals(width, rng)) {
    const float shift = 3 * rng.normal();
    x.for_each([&](float& value) { value += shift; });
  }

  // Views of arrays of either precision.
  template <class T>
  NormInputs<T> inputs(View<const T, 2> of_x, const std::vector<T>& w, const std::vector<T>& b) const {
    NormInputs<T> in{.x = of_x, .eps = eps};
    if (has_weight) in.weight = {w.data(), {width}};
    if (has_bias) in.bias = {b.data(), {width}};
    return in;
  }
  NormInputs<float> inputs() const { return inputs<float>(x.view(), weight, bias); }
};

struct Forward {
  Rows y;
  std::vector<float> mean, rstd;
};

Forward forward(const Norm& norm, Parallel& parallel) {
  Forward out{Rows(norm.rows, norm.width, 3), std::vector<float>(norm.rows, kNaN), std::vector<float>(norm.rows, kNaN)};
  if (norm.centred) {
    layer_norm_forward(norm.inputs(), {out.y.view(), row(out.mean), row(out.rstd)}, parallel);
  } else {
    rms_norm_forward(norm.inputs(), {.y = out.y.view(), .rstd = row(out.rstd)}, parallel);
    out.mean.assign(out.mean.size(), 0);
  }
  return out;
}

struct Backward {
  Rows dx;
  std::vector<float> dweight, dbias;
};

Backward backward(const Norm& norm, const std::vector<float>& mean, const std::vector<float>& rstd,
                  Parallel& parallel) {
  Backward to{norm.dx, norm.dweight, norm.dbias};
  NormGradients<float> gradients{.rstd = {rstd.data(), {norm.rows}}, .dy = norm.dy.view(), .dx = to.dx.view()};
  gradients.dweight = row(to.dweight);
  Workspace workspace(norm_backward_bytes(norm.rows, norm.width));
  if (norm.centred) {
    gradients.mean = {mean.data(), {norm.rows}};
    gradients.dbias = row(to.dbias);
    layer_norm_backward(norm.inputs(), gradients, workspace, parallel);
  } else {
    rms_norm_backward(norm.inputs(), gradients, workspace, parallel);
  }
  return to;
}

// What the twin gives for the same numbers, and how far from it a kernel may be. A sum of n terms in any order changes
// each by at most n u. With c = x - mean and n = c rstd:
//   mean      (W + 2) u mean|x| =: m;  c is wrong by m + u |c|
//   variance  a shift of all c by m adds m^2 and no more, since c sums up to 0; roundings are W + 8
//   rstd      half the relative error of variance + eps, of which the whole is taken here, and four roundings
//   y         carries those of c and rstd, and the product and sum with weight and bias
void check_forward(const Norm& norm) {
  const std::vector<double> w64 = widened(norm.weight), b64 = widened(norm.bias);
  std::vector<double> x = norm.x.doubles(), y(x.size()), mean(norm.rows), rstd(norm.rows);
  const auto in = norm.inputs<double>(matrix(x, norm.rows, norm.width), w64, b64);
  if (norm.centred) {
    reference::layer_norm_forward(in, {matrix(y, norm.rows, norm.width), row(mean), row(rstd)});
  } else {
    reference::rms_norm_forward(in, {.y = matrix(y, norm.rows, norm.width), .rstd = row(rstd)});
  }
  std::vector<double> y_bound, mean_bound, rstd_bound;
  const auto W = static_cast<double>(norm.width);
  for (int64_t r = 0; r < norm.rows; ++r) {
    double size = 0, squares = 0;
    for (int64_t c = 0; c < norm.width; ++c) {
      size += std::abs(in.x(r, c)) / W;
      squares += (in.x(r, c) - mean[r]) * (in.x(r, c) - mean[r]) / W;
    }
    const double m = norm.centred ? (W + 2) * kUnit * size : 0;
    const double relative = ((W + 8) * kUnit * squares + m * m) / (squares + norm.eps) + 4 * kUnit;
    mean_bound.push_back(m);
    rstd_bound.push_back(relative * rstd[r]);
    for (int64_t c = 0; c < norm.width; ++c) {
      const double n = (in.x(r, c) - mean[r]) * rstd[r], weight = in.weight ? in.weight(c) : 1;
      const double bias = in.bias ? in.bias(c) : 0;
      const double n_error = (m * rstd[r] + 2 * kUnit * std::abs(n)) * (1 + relative) + std::abs(n) * relative;
      y_bound.push_back(std::abs(weight) * n_error + 2 * kUnit * (std::abs(n * weight) + std::abs(bias)));
    }
  }
  for_targets([&] {
    Parallel parallel(2);
    const Forward got = forward(norm, parallel);
    EXPECT_TRUE(within(got.mean, mean, mean_bound)) << "mean";
    EXPECT_TRUE(within(got.rstd, rstd, rstd_bound)) << "rstd";
    EXPECT_TRUE(within(got.y.floats(), y, y_bound)) << "y";
    EXPECT_TRUE(got.y.guards_are_whole());
  });
}

// Both get the same mean and rstd. n is wrong by 2 u |n|, g = dy weight by u |g|, their means by W roundings more.
void check_backward(const Norm& norm) {
  Parallel parallel(2);
  const Forward saved = forward(norm, parallel);
  const std::vector<double> w64 = widened(norm.weight), b64 = widened(norm.bias);
  std::vector<double> x = norm.x.doubles(), dy = norm.dy.doubles(), dx = norm.dx.doubles();
  std::vector<double> mean = widened(saved.mean), rstd = widened(saved.rstd);
  std::vector<double> dweight = widened(norm.dweight), dbias = widened(norm.dbias);
  const auto in = norm.inputs<double>(matrix(x, norm.rows, norm.width), w64, b64);
  NormGradients<double> to{.rstd = row(rstd), .dy = matrix(dy, norm.rows, norm.width)};
  to.dx = matrix(dx, norm.rows, norm.width);
  to.dweight = row(dweight);
  if (norm.centred) {
    to.mean = row(mean);
    to.dbias = row(dbias);
    reference::layer_norm_backward(in, to);
  } else {
    reference::rms_norm_backward(in, to);
  }
  const auto W = static_cast<double>(norm.width), N = static_cast<double>(norm.rows);
  const std::vector<double> dx0 = norm.dx.doubles();
  std::vector<double> dx_bound, dweight_bound(norm.width), dbias_bound(norm.width);
  for (int64_t c = 0; c < norm.width; ++c) {
    dweight_bound[c] = (N + 8) * kUnit * std::abs(double{norm.dweight[c]});
    dbias_bound[c] = (N + 8) * kUnit * std::abs(double{norm.dbias[c]});
  }
  for (int64_t r = 0; r < norm.rows; ++r) {
    const auto n = [&](int64_t c) { return (in.x(r, c) - mean[r]) * rstd[r]; };
    const auto g = [&](int64_t c) { return to.dy(r, c) * (in.weight ? in.weight(c) : 1); };
    double size_g = 0, size_gn = 0;
    for (int64_t c = 0; c < norm.width; ++c) {
      if (norm.centred) size_g += std::abs(g(c)) / W;
      size_gn += std::abs(g(c) * n(c)) / W;
      dweight_bound[c] += (N + 8) * kUnit * std::abs(to.dy(r, c) * n(c));
      dbias_bound[c] += (N + 8) * kUnit * std::abs(to.dy(r, c));
    }
    for (int64_t c = 0; c < norm.width; ++c) {
      const double sums = (W + 12) * kUnit * (size_g + std::abs(n(c)) * size_gn);
      const double before = std::abs(dx0[dx_bound.size()]), term = rstd[r] * (sums + 8 * kUnit * std::abs(g(c)));
      dx_bound.push_back(term + 2 * kUnit * (before + std::abs(dx[dx_bound.size()])));
    }
  }
  for_targets([&] {
    const Backward got = backward(norm, saved.mean, saved.rstd, parallel);
    EXPECT_TRUE(within(got.dx.floats(), dx, dx_bound)) << "dx";
    EXPECT_TRUE(within(got.dweight, dweight, dweight_bound)) << "dweight";
    EXPECT_TRUE(within(got.dbias, dbias, dbias_bound)) << "dbias";
    EXPECT_TRUE(got.dx.guards_are_whole());
  });
}

TEST(Norm, IsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const Norm norm = Norm::draw(rng);
    SCOPED_TRACE(std::to_string(norm.rows) + " x " + std::to_string(norm.width) + (norm.centred ? ", layer" : ", RMS"));
    check_forward(norm);
    check_backward(norm);
  });
}

TEST(Norm, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(3));
  for (const bool centred : {false, true}) {
    const Norm norm(centred, true, centred, 333, 129, rng);
    expect_same_on_threads([&](Parallel& parallel) {
      const Forward out = forward(norm, parallel);
      const Backward to = backward(norm, out.mean, out.rstd, parallel);
      std::vector<float> all = out.y.floats();
      for (const std::vector<float>& more : {to.dx.floats(), to.dweight, to.dbias}) {
        all.insert(all.end(), more.begin(), more.end());
      }
      return all;
    });
  }
}

TEST(Norm, WhatIsNotWantedChangesNothingElse) {
  Rng rng(seeded(4));
  const Norm norm(true, true, true, 50, 33, rng);
  Parallel parallel(1);
  const Forward out = forward(norm, parallel);
  const Backward all = backward(norm, out.mean, out.rstd, parallel);
  Workspace workspace(norm_backward_bytes(norm.rows, norm.width));
  NormGradients<float> from{.mean = {out.mean.data(), {norm.rows}}, .rstd = {out.rstd.data(), {norm.rows}}};
  from.dy = norm.dy.view();
  Backward one{norm.dx, norm.dweight, norm.dbias};
  NormGradients<float> only_dx = from, only_dweight = from, only_dbias = from;
  only_dx.dx = one.dx.view();
  only_dweight.dweight = row(one.dweight);
  only_dbias.dbias = row(one.dbias);
  for (const NormGradients<float>& only : {only_dx, only_dweight, only_dbias, from}) {
    layer_norm_backward(norm.inputs(), only, workspace, parallel);
  }
  EXPECT_TRUE(same_bits(one.dx.floats(), all.dx.floats()));
  EXPECT_TRUE(same_bits(one.dweight, all.dweight));
  EXPECT_TRUE(same_bits(one.dbias, all.dbias));
}

TEST(Norm, WorksInPlace) {
  Rng rng(seeded(5));
  const Norm norm(true, true, true, 5, 77, rng);
  for_targets([&] {
    Parallel parallel(1);
    Rows y = norm.x;
    layer_norm_forward(norm.inputs<float>(y.view(), norm.weight, norm.bias), {.y = y.view()}, parallel);
    EXPECT_TRUE(same_bits(y.floats(), forward(norm, parallel).y.floats()));
  });
}

TEST(Norm, NaNFillsItsRowAlone) {
  Rng rng(seeded(6));
  for (const bool centred : {false, true}) {
    for_targets([&] {
      Norm norm(centred, true, false, 3, 37, rng);
      norm.x(1, 36) = kNaN;
      Parallel parallel(1);
      const Forward out = forward(norm, parallel);
      const std::vector<float> dx = backward(norm, out.mean, out.rstd, parallel).dx.floats(), y = out.y.floats();
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i / 37 == 1) << i;
        EXPECT_EQ(std::isnan(dx[i]), i / 37 == 1) << i;
      }
    });
  }
}

}  // namespace
}  // namespace heed::kernels
