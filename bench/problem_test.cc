#include "bench/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace heed::bench {
namespace {

double largest(const View<const float, 4>& x) {
  double m = 0;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t)
        for (int64_t d = 0; d < x.shape(3); ++d) m = std::max(m, std::abs(double{x(b, h, t, d)}));
  return m;
}

double largest_norm(const View<const float, 4>& x) {  // of a row
  double m = 0;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t) {
        double squares = 0;
        for (int64_t d = 0; d < x.shape(3); ++d) squares += std::pow(x(b, h, t, d), 2);
        m = std::max(m, std::sqrt(squares));
      }
  return m;
}

std::vector<float> values(const View<const float, 4>& x) {
  std::vector<float> all;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t) all.insert(all.end(), x.at(b, h, t), x.at(b, h, t) + x.shape(3));
  return all;
}

// Both sides of the benchmark solve the same problem. On either side a score has at most D + 8 roundings of scale *
// sum |q k| <= scale |q| |k|, counted twice as it is in the normaliser too; a weight and an output have S + 8 more
// each.
TEST(Problem, FusedAndUnfusedAgree) {
  for (Case c : {Case{}, Case{.layout = Layout::bthd}, Case{.layout = Layout::packed}, Case{.Hk = 2},
                 Case{.mask = MaskKind::causal}, Case{.mask = MaskKind::window128}, Case{.mask = MaskKind::lengths}}) {
    c.B = 2, c.T = c.S = 200;
    SCOPED_TRACE(name({Pass::forward, c}));
    Parallel parallel(1);
    Problem problem(c, parallel);
    const double D = static_cast<double>(c.D), S = static_cast<double>(c.S);
    const double size = largest_norm(problem.inputs().q) * largest_norm(problem.inputs().k.rows()) / std::sqrt(D);
    const double relative = 0x1p-24 * ((D + 8) * 2 * size + 2 * (S + 8));
    problem.forward();
    const std::vector<float> fused = values(problem.outputs().out);
    problem.unfused().forward();
    const std::vector<float> unfused = values(problem.outputs().out);
    const double bound = 2 * std::expm1(relative) * largest(problem.inputs().v.rows());
    for (size_t i = 0; i < fused.size(); ++i) ASSERT_LE(std::abs(double{fused[i]} - double{unfused[i]}), bound) << i;
    EXPECT_GT(largest(problem.outputs().out), 100 * bound);  // so that the comparison says something
  }
}

TEST(Problem, LayoutsAreWhatTheirNamesSay) {
  Parallel parallel(1);
  const Problem bhtd(Case{}, parallel), bthd(Case{.layout = Layout::bthd}, parallel);
  const Problem packed(Case{.layout = Layout::packed}, parallel);
  EXPECT_EQ(bhtd.inputs().k.strides(), (Dims<4>{8 * 512 * 64, 512 * 64, 64, 1}));
  EXPECT_EQ(bthd.inputs().k.strides(), (Dims<4>{512 * 8 * 64, 64, 8 * 64, 1}));
  EXPECT_EQ(packed.inputs().k.strides(), (Dims<4>{512 * 24 * 64, 64, 24 * 64, 1}));
  EXPECT_EQ(packed.inputs().k.rows().data(), packed.inputs().q.data() + 8 * 64);
}

}  // namespace
}  // namespace heed::bench
