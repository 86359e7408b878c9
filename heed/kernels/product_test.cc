// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/product_tiles.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// A matrix in memory as it is, or with its rows as columns.
struct Factor {
  Rows memory;
  bool transposed;

  static Factor draw(int64_t rows, int64_t columns, Rng& rng) {
    const bool transposed = rng.below(2);
    return {transposed ? Rows::normal(columns, rows, rng) : Rows::normal(rows, columns, rng), transposed};
  }
  View<float, 2> view() { return transposed ? memory.view().transposed(0, 1) : memory.view(); }
  View<const float, 2> view() const { return transposed ? memory.view().transposed(0, 1) : memory.view(); }
};

std::vector<float> numbers(const View<const float, 2>& view) {
  std::vector<float> all;
  for (int64_t r = 0; r < view.shape(0); ++r) {
    for (int64_t c = 0; c < view.shape(1); ++c) all.push_back(view(r, c));
  }
  return all;
}

// start + a b, and how far a sum in f32 may be from it: each of K terms is rounded by its product and by at most K + 2
// additions (bias and start are two more).
struct Expected {
  std::vector<double> values, bounds;

  void add(const View<const float, 2>& a, const View<const float, 2>& b, const std::vector<float>& start) {
    const int64_t M = a.shape(0), N = b.shape(1), K = a.shape(1);
    const double roundings = std::expm1(static_cast<double>(K + 4) * kUnit);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t n = 0; n < N; ++n) {
        double sum = double{start[static_cast<size_t>(m * N + n)]}, size = std::abs(sum);
        for (int64_t k = 0; k < K; ++k) {
          const double term = double{a(m, k)} * double{b(k, n)};
          sum += term, size += std::abs(term);
        }
        values.push_back(sum);
        bounds.push_back(roundings * size + static_cast<double>(K) * kTiny);
      }
    }
  }
};

TEST(Tiling, CoversEveryElementOnce) {
  for_draws(200, [](Rng& rng) {
    const int64_t M = static_cast<int64_t>(rng.below(200)), N = static_cast<int64_t>(rng.below(400));
    const int64_t unit = std::vector<int64_t>{1, 16, 64}[rng.below(3)];
    const Dims<2> most{1 + static_cast<int64_t>(rng.below(100)), 1 + static_cast<int64_t>(rng.below(150))};
    const Tiling tiling(M, N, most, unit);
    std::vector<int> seen(static_cast<size_t>(M * N));
    for (int64_t i = 0; i < tiling.count(); ++i) {
      const Tile tile = tiling[i];
      EXPECT_EQ(tile.column % unit, 0);
      EXPECT_LE(tile.rows, most[0]);
      for (int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
        for (int64_t c = tile.column; c < tile.column + tile.columns; ++c) ++seen[static_cast<size_t>(r * N + c)];
      }
    }
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  });
}

TEST(Product, IsNearTheSumInDouble) {
  for_draws(150, [](Rng& rng) {
    const int64_t M = draw_width(rng), N = draw_width(rng), K = draw_width(rng);
    const Factor a = Factor::draw(M, K, rng), b = Factor::draw(K, N, rng);
    Factor c = Factor::draw(M, N, rng);
    const ProductOptions options{.add = rng.below(2) == 1};
    if (!options.add) c.memory.for_each([](float& x) { x = kNaN; });  // what was there must not matter
    Expected expected;
    const std::vector<float> nothing(static_cast<size_t>(M * N));
    expected.add(a.view(), b.view(), options.add ? numbers(c.view()) : nothing);
    for_targets([&] {
      Parallel parallel(2);
      Factor result = c;
      product(a.view(), b.view(), result.view(), options, parallel);
      EXPECT_TRUE(within(numbers(result.view()), expected.values, expected.bounds))
          << M << " x " << N << " x " << K << (a.transposed ? " a^T" : "") << (b.transposed ? " b^T" : "")
          << (c.transposed ? " c^T" : "");
      EXPECT_TRUE(result.memory.guards_are_whole());
    });
  });
}

// Whatever stands beside them, and however the factors are stored.
TEST(Product, MakesAnElementFromItsRowAndItsColumnAlone) {
  for_draws(40, [](Rng& rng) {
    const int64_t M = draw_width(rng, false), N = draw_width(rng, false), K = draw_width(rng);
    const Factor a = Factor::draw(M, K, rng), b = Factor::draw(K, N, rng);
    const int64_t rows = 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(M)));
    const int64_t columns = 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(N)));
    const int64_t row = static_cast<int64_t>(rng.below(static_cast<uint64_t>(M - rows + 1)));
    const int64_t column = static_cast<int64_t>(rng.below(static_cast<uint64_t>(N - columns + 1)));
    Factor some_a{Rows(rows, K), false}, some_b{Rows(columns, K), true};
    for (int64_t k = 0; k < K; ++k) {
      for (int64_t m = 0; m < rows; ++m) some_a.view()(m, k) = a.view()(row + m, k);
      for (int64_t n = 0; n < columns; ++n) some_b.view()(k, n) = b.view()(k, column + n);
    }
    SCOPED_TRACE(std::to_string(rows) + " of " + std::to_string(M) + " rows, " + std::to_string(columns) + " of " +
                 std::to_string(N) + " columns, inner " + std::to_string(K));
    for_targets([&] {
      Parallel parallel(2);
      Rows all(M, N);
      Factor some{Rows(columns, rows), true};
      product(a.view(), b.view(), all.view(), {}, parallel);
      product(some_a.view(), some_b.view(), some.view(), {}, parallel);
      EXPECT_TRUE(same_bits(numbers(some.view()), numbers(all.view().slice(0, row, rows).slice(1, column, columns))));
      const PackedWeight packed(some_b.view().transposed(0, 1), DType::f32, parallel);
      Rows from_panels(rows, columns);
      project(some_a.view(), packed, from_panels.view(), {}, parallel);
      EXPECT_TRUE(same_bits(from_panels.floats(), numbers(some.view())));
    });
  });
}

TEST(Product, HasTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(5));
  for (const auto& [M, N, K] : {Dims<3>{700, 1300, 33}, Dims<3>{257, 129, 300}, Dims<3>{1, 3000, 2000}}) {
    const Factor a = Factor::draw(M, K, rng), b = Factor::draw(K, N, rng);
    Rows shape(M, N);
    EXPECT_GT(project_tiling({a.view(), Weight(b.view().transposed(0, 1)), shape.view(), {}}).count(), 1);
    expect_same_on_threads([&, M = M, N = N](Parallel& parallel) {
      Rows c(M, N);
      product(a.view(), b.view(), c.view(), {}, parallel);
      return c.floats();
    });
  }
}

// A matrix [O,I] in every form that a Weight can have.
class AnyWeight {
 public:
  AnyWeight(int64_t O, int64_t I, DType dtype, Rng& rng)
      : w_(Factor::draw(O, I, rng)), dtype_(dtype), narrow_(static_cast<size_t>(O * I)) {
    for (int64_t o = 0; o < O; ++o) {
      for (int64_t i = 0; i < I; ++i) {
        float& value = w_.view()(o, i);
        uint16_t& bits = narrow_[static_cast<size_t>(w_.transposed ? i * O + o : o * I + i)];
        if (dtype == DType::bf16) bits = BFloat16::from(value).bits, value = float(BFloat16{bits});
        if (dtype == DType::f16) bits = Float16::from(value).bits, value = float(Float16{bits});
      }
    }
  }

  View<const float, 2> exact() const { return w_.view(); }  // what is stored, in f32
  Weight stored() const {
    if (dtype_ == DType::f32) return exact();
    return dtype_ == DType::bf16 ? Weight(narrow<BFloat16>()) : Weight(narrow<Float16>());
  }

 private:
  template <class T>
  View<const T, 2> narrow() const {
    const Dims<2> shape = exact().shape();
    const auto* data = reinterpret_cast<const T*>(narrow_.data());
    if (w_.transposed) return View<const T, 2>(data, {shape[1], shape[0]}).transposed(0, 1);
    return {data, shape};
  }

  Factor w_;
  DType dtype_;
  std::vector<uint16_t> narrow_;
};

constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16};

int64_t draw_inputs(Rng& rng) {
  static constexpr int64_t kEdges[] = {0, 1, 2, 3, 8, 17, 64, 100, 511, 512, 513, 1030};
  return kEdges[rng.below(std::size(kEdges))];
}
int64_t draw_few_rows(Rng& rng) { return static_cast<int64_t>(rng.below(4) ? rng.below(20) : rng.below(130)); }

TEST(Project, IsNearTheSumInDouble) {
  for_draws(120, [](Rng& rng) {
    const int64_t M = draw_few_rows(rng), O = draw_width(rng), I = draw_inputs(rng);
    const DType dtype = kDTypes[rng.below(3)];
    const AnyWeight w(O, I, dtype, rng);
    const Rows x = Rows::normal(M, I, rng);
    const Rows b = Rows::normal(1, O, rng);
    const Rows y0 = Rows::normal(M, O, rng);
    const bool biased = rng.below(2), add = rng.below(2), packed = rng.below(3) > 0;
    SCOPED_TRACE(std::to_string(M) + " rows, " + std::to_string(I) + " to " + std::to_string(O) + " " + name_of(dtype) +
                 (packed ? " packed" : ""));
    std::vector<float> start(static_cast<size_t>(M * O));
    Expected expected;
    expected.add(x.view(), w.exact().transposed(0, 1), start);
    for (size_t i = 0; i < start.size(); ++i) {
      const int64_t m = static_cast<int64_t>(i) / O, o = static_cast<int64_t>(i) % O;
      for (const double term : {add ? double{y0.view()(m, o)} : 0, biased ? double{b.view()(0, o)} : 0}) {
        expected.values[i] += term;
        expected.bounds[i] += std::abs(term) * std::expm1(static_cast<double>(I + 5) * kUnit);
      }
    }
    for_targets([&] {
      Parallel parallel(2);
      const PackedWeight panels(w.stored(), dtype, parallel);
      Rows y = y0;
      if (!add) y.for_each([](float& v) { v = kNaN; });
      const View<const float, 1> bias = biased ? View<const float, 1>(b.view().data(), {O}) : View<const float, 1>();
      project(x.view(), packed ? panels.weight() : w.stored(), y.view(), {.b = bias, .add = add}, parallel);
      EXPECT_TRUE(within(y.floats(), expected.values, expected.bounds));
      EXPECT_TRUE(y.guards_are_whole());
    });
  });
}

// However many there are, and however the weights are stored.
TEST(Project, MakesARowFromItselfAlone) {
  for_draws(20, [](Rng& rng) {
    const int64_t O = draw_width(rng, false), I = draw_inputs(rng), M = 200;
    const DType dtype = kDTypes[rng.below(3)];
    const AnyWeight w(O, I, dtype, rng);
    const Rows x = Rows::normal(M, I, rng);
    for_targets([&] {
      Parallel parallel(2);
      const PackedWeight panels(w.stored(), dtype, parallel), wide(w.exact(), DType::f32, parallel);
      Rows all(M, O);
      project(x.view(), wide, all.view(), {}, parallel);
      for (const int64_t rows : {1, 2, 3, 5, 7, 8, 64}) {
        const int64_t first = static_cast<int64_t>(rng.below(static_cast<uint64_t>(M - rows)));
        Rows some(rows, O);
        project(x.view().slice(0, first, rows), panels, some.view(), {}, parallel);
        EXPECT_TRUE(same_bits(some.floats(), numbers(all.view().slice(0, first, rows)))) << rows << " rows";
        project(x.view().slice(0, first, rows), w.stored(), some.view(), {}, parallel);
        EXPECT_TRUE(same_bits(some.floats(), numbers(all.view().slice(0, first, rows)))) << rows << " rows, not packed";
      }
    });
  });
}

TEST(Project, HasTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(6));
  Parallel one(1);
  for (const DType dtype : kDTypes) {
    for (const int64_t M : {1, 8, 64, 300}) {
      const int64_t O = 700, I = 90;
      const AnyWeight w(O, I, dtype, rng);
      const Rows x = Rows::normal(M, I, rng);
      const PackedWeight panels(w.stored(), dtype, one);
      for (const Weight& weight : {w.stored(), panels.weight()}) {
        expect_same_on_threads([&](Parallel& parallel) {
          Rows y(M, O);
          project(x.view(), weight, y.view(), {}, parallel);
          return y.floats();
        });
      }
    }
  }
}

TEST(PackedWeight, RoundsToWhatItStores) {
  Rng rng(seeded(7));
  const int64_t O = 37, I = 21;
  const AnyWeight w(O, I, DType::f32, rng);
  Parallel parallel(2);
  const PackedWeight packed(w.exact(), DType::bf16, parallel);
  EXPECT_EQ(packed.weight().shape(), (Dims<2>{O, I}));
  EXPECT_EQ(packed.panels().size(), static_cast<size_t>(48 * I * 2));
  for (int64_t o = 0; o < 48; ++o) {
    const BFloat16* panel = packed.weight().panel<BFloat16>(o / Weight::kPanel);
    for (int64_t i = 0; i < I; ++i) {
      const uint16_t expected = o < O ? BFloat16::from(w.exact()(o, i)).bits : uint16_t{0};
      const int64_t place = Weight::place(DType::bf16, o % Weight::kPanel);
      EXPECT_EQ(panel[i * Weight::kPanel + place].bits, expected) << o << ", " << i;
    }
  }
}

// An output has the same bits in whatever panel it is, beside whatever others: some of them can be had by themselves.
TEST(PackedWeight, GivesItsRowsBackForAPackingOfSome) {
  for_draws(20, [](Rng& rng) {
    const int64_t O = 1 + static_cast<int64_t>(rng.below(80)), I = draw_inputs(rng), M = draw_width(rng, false);
    const DType dtype = kDTypes[rng.below(3)];
    const AnyWeight w(O, I, dtype, rng);
    const Rows x = Rows::normal(M, I, rng);
    std::vector<int32_t> outputs(1 + rng.below(70));
    for (int32_t& output : outputs) output = static_cast<int32_t>(rng.below(static_cast<uint64_t>(O)));
    const int64_t n = std::ssize(outputs);
    Parallel parallel(2);
    const PackedWeight all(w.stored(), dtype, parallel);
    Rows rows(n, I);
    unpack_outputs(all, outputs, rows.view(), parallel);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t i = 0; i < I; ++i) EXPECT_EQ(rows(r, i), w.exact()(outputs[static_cast<size_t>(r)], i));
    }
    for_targets([&] {
      const PackedWeight some(rows.view(), dtype, parallel);
      Rows whole(M, O), part(M, n);
      project(x.view(), all, whole.view(), {}, parallel);
      project(x.view(), some, part.view(), {}, parallel);
      for (int64_t m = 0; m < M; ++m) {
        for (int64_t r = 0; r < n; ++r) EXPECT_EQ(part(m, r), whole(m, outputs[static_cast<size_t>(r)]));
      }
    });
  });
}

TEST(Project, ShowsNaN) {
  Parallel parallel(1);
  Rng rng(seeded(8));
  Rows x = Rows::normal(9, 20, rng);
  x(4, 7) = kNaN;
  const AnyWeight w(33, 20, DType::f32, rng);
  const PackedWeight panels(w.exact(), DType::f32, parallel);
  for (const Weight& weight : {w.stored(), panels.weight()}) {
    Rows y(9, 33);
    project(x.view(), weight, y.view(), {}, parallel);
    for (int64_t m = 0; m < 9; ++m) {
      for (int64_t o = 0; o < 33; ++o) EXPECT_EQ(std::isnan(y(m, o)), m == 4);
    }
  }
}

}  // namespace
}  // namespace heed::kernels
