// SPDX-License-Identifier: Apache-2.0
// The building blocks of the additive score on every SIMD target, against plain loops in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/base/rng.h"
#include "heed/kernels/attention/targets.h"
#include "heed/kernels/attention/testing.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "heed/kernels/attention/additive_test.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/base/testing.h"
#include "heed/kernels/attention/additive-inl.h"
#include "hwy/aligned_allocator.h"

#ifndef HEED_KERNELS_ATTENTION_ADDITIVE_TEST_ONCE_
#define HEED_KERNELS_ATTENTION_ADDITIVE_TEST_ONCE_
namespace heed::kernels {

using heed::testing::seeded;

// A tile's worth of queries against some keys; rows of k lie `stride` apart.
struct AdditiveCase {
  int64_t queries, keys, D, stride;
  const float *q, *k, *w;    // [queries][D], [keys][stride], [D]
  const float *ds, *hidden;  // [keys][queries]; hidden may be null
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

const char* compiled_for() { return hwy::TargetName(HWY_TARGET); }

int64_t tile_queries() { return kTile; }

template <int N>
void tanh_blocks(const float* x, float* y, int64_t n) {
  const F d;
  for (int64_t i = 0; i < n; i += N * kLanes) {
    V v[N];
    for (int j = 0; j < N; ++j) v[j] = load_part(d, x + i + j * kLanes, n - i - j * kLanes);
    tanh(d, v);
    HWY_ALIGN float out[N * kLanes];
    for (int j = 0; j < N; ++j) hn::Store(v[j], d, out + j * kLanes);
    std::copy_n(out, std::min<int64_t>(N * kLanes, n - i), y + i);
  }
}

void tanh_array(const float* x, float* y, int64_t n, int together_n) {
  (together_n == 1 ? tanh_blocks<1> : together_n == 2 ? tanh_blocks<2> : tanh_blocks<5>)(x, y, n);
}

template <int R, int NV>
void score_tile(const AdditiveCase& x, const float* tile, int64_t first_query, float* scores) {
  const F d;
  for (int64_t key = 0; key + R <= x.keys; key += R) {
    V acc[R][NV];
    additive_rows<R, NV>(d, {x.k + key * x.stride, x.stride}, x.D, tile + first_query, x.w, acc);
    HWY_ALIGN float row[NV * kLanes];
    for (int r = 0; r < R; ++r) {
      for (int n = 0; n < NV; ++n) hn::Store(acc[r][n], d, row + n * kLanes);
      const int64_t count = std::min(NV * kLanes, x.queries - first_query);
      std::copy_n(row, count, scores + (key + r) * x.queries + first_query);
    }
  }
}

// scores [keys][queries] from tiles of `rows` keys (the last keys % rows are left out) and `vectors` vectors.
void additive_scores(const AdditiveCase& x, int rows, int vectors, float* scores) {
  const auto tile = hwy::AllocateAligned<float>(static_cast<size_t>(x.D * kTile));
  for (int64_t c = 0; c < x.D; ++c) {
    for (int64_t i = 0; i < kTile; ++i) tile[static_cast<size_t>(c * kTile + i)] = i < x.queries ? x.q[i * x.D + c] : 0;
  }
  using Score = void (*)(const AdditiveCase&, const float*, int64_t, float*);
  const Score one = rows == 1 ? Score(score_tile<1, 1>) : rows == 3 ? Score(score_tile<3, 1>) : Score(score_tile<4, 1>);
  const Score two = rows == 1 ? Score(score_tile<1, 2>) : rows == 3 ? Score(score_tile<3, 2>) : Score(score_tile<4, 2>);
  for (int64_t i = 0; i < x.queries; i += vectors * kLanes) (vectors == 1 ? one : two)(x, tile.get(), i, scores);
}

template <int R, class T>
void dot_all(const AdditiveCase& x, const T* k, const float* q, const float* w, float* scores) {
  for (int64_t key = 0; key + R <= x.keys; key += R) {
    const T* rows[R];
    for (int r = 0; r < R; ++r) rows[r] = k + (key + r) * x.stride;
    const T* const(&fixed)[R] = rows;
    additive_dot<R>(F(), q, fixed, w, x.D, scores + key);
  }
}

// scores [keys] of the first query; k is of `dtype`.
void additive_dots(const AdditiveCase& x, const void* k, DType dtype, int rows, float* scores) {
  const int64_t width = round_up(x.D, kLanes);
  const auto padded = hwy::AllocateAligned<float>(static_cast<size_t>(2 * width));
  float *q = padded.get(), *w = q + width;
  for (int64_t c = 0; c < width; ++c) {
    q[c] = c < x.D ? x.q[c] : 0;
    w[c] = c < x.D ? x.w[c] : 0;
  }
  const auto run = [&](const auto* typed) {
    using T = std::remove_cvref_t<decltype(*typed)>;
    (rows == 1 ? dot_all<1, T> : dot_all<4, T>)(x, typed, q, w, scores);
  };
  if (dtype == DType::f32) run(static_cast<const float*>(k));
  if (dtype == DType::bf16) run(static_cast<const BFloat16*>(k));
  if (dtype == DType::f16) run(static_cast<const Float16*>(k));
}

// Accumulates into dq [queries][D], dk [keys][D], dw [D].
void additive_backward(const AdditiveCase& x, float* dq, float* dk, float* dw) {
  const int64_t width = round_up(x.D, kMaxLanes), rows = 2 * x.queries + x.keys + 2;
  const auto memory = hwy::AllocateAligned<float>(static_cast<size_t>(rows * width));
  std::fill_n(memory.get(), rows * width, 0.0f);
  float *q = memory.get(), *dq_rows = q + x.queries * width, *dk_rows = dq_rows + x.queries * width,
        *dw_row = dk_rows + x.keys * width, *w = dw_row + width;
  copy_rows({{x.q, x.D}, x.queries, x.D}, {q, width});
  copy_rows({{dq, x.D}, x.queries, x.D}, {dq_rows, width});
  copy_rows({{dk, x.D}, x.keys, x.D}, {dk_rows, width});
  copy_rows({{dw, x.D}, 1, x.D}, {dw_row, width});
  copy_rows({{x.w, x.D}, 1, x.D}, {w, width});
  const auto ds = hwy::AllocateAligned<float>(static_cast<size_t>(2 * x.keys * kTile));
  float* hidden = ds.get() + x.keys * kTile;
  std::fill_n(ds.get(), 2 * x.keys * kTile, std::nanf(""));  // of lanes without a query nothing may be used
  copy_rows({{x.ds, x.queries}, x.keys, x.queries}, {ds.get(), kTile});
  if (x.hidden) copy_rows({{x.hidden, x.queries}, x.keys, x.queries}, {hidden, kTile});
  const AdditivePairs pairs{.q = q,
                            .queries = x.queries,
                            .k = {x.k, x.stride},
                            .keys = x.keys,
                            .columns = x.D,
                            .width = width,
                            .w = w,
                            .ds = ds.get(),
                            .hidden = x.hidden ? hidden : nullptr};
  additive_gradients(F(), pairs, {dq_rows, dk_rows, dw_row});
  copy_rows({{dq_rows, width}, x.queries, x.D}, {dq, x.D});
  copy_rows({{dk_rows, width}, x.keys, x.D}, {dk, x.D});
  copy_rows({{dw_row, width}, 1, x.D}, {dw, x.D});
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {
namespace {

HWY_EXPORT(compiled_for);
HWY_EXPORT(tile_queries);
HWY_EXPORT(tanh_array);
HWY_EXPORT(additive_scores);
HWY_EXPORT(additive_dots);
HWY_EXPORT(additive_backward);

using attention_testing::for_draws;
using attention_testing::for_targets;

constexpr double kUnit = 0x1p-24;  // half an ulp of 1
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> tanh_of(const std::vector<float>& x, int together_n = 2) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(tanh_array)(x.data(), y.data(), static_cast<int64_t>(x.size()), together_n);
  return y;
}

// The distance of floats around a number.
double ulp(double x) { return std::ldexp(1.0, std::max(std::ilogb(x) - 23, -149)); }

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(AdditiveBlocks, RunOnTheTargetThatWasChosen) {
  for_targets([] { EXPECT_EQ(HWY_DYNAMIC_DISPATCH(compiled_for)(), simd_target()); });
}

TEST(Tanh, IsWithinThreeUlpEverywhere) {
  // Four million floats, most of them from where it is neither x nor constant.
  std::vector<float> x;
  const auto sample = [&](float first, float last, double every) {
    const auto step = static_cast<uint32_t>(every / std::clamp(attention_testing::effort(), 0.01, 1.0));
    for (uint32_t u = bits(first); u < bits(last); u += step) x.push_back(std::bit_cast<float>(u));
  };
  sample(0x1p-149f, 0x1p-13f, 4001);
  sample(0x1p-13f, 11, 41);
  sample(11, kInfinity, 100003);
  for_targets([&] {
    const std::vector<float> y = tanh_of(x);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::tanh(double{x[i]}), error = std::abs(double{y[i]} - want) / ulp(want);
      if (!(error <= worst)) worst = error, at = i;
    }
    EXPECT_LT(worst, 3) << "at " << x[at];
    RecordProperty("ulp_" + simd_target(), std::to_string(worst) + " at " + std::to_string(x[at]));
  });
}

TEST(Tanh, IsOddToTheBitAndTheSameInAnyCompany) {
  Rng rng(seeded(1));
  std::vector<float> x, minus_x;
  for (int i = 0; i < 10007; ++i) {
    x.push_back(std::bit_cast<float>(rng.next_u32()));
    minus_x.push_back(std::bit_cast<float>(bits(x.back()) ^ 0x80000000u));
  }
  for_targets([&] {
    const std::vector<float> y = tanh_of(x), minus_y = tanh_of(minus_x), alone = tanh_of(x, 1), five = tanh_of(x, 5);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::isnan(y[i]), std::isnan(x[i])) << x[i];
      if (std::isnan(x[i])) continue;
      ASSERT_EQ(bits(y[i]) ^ 0x80000000u, bits(minus_y[i])) << x[i];
      ASSERT_EQ(bits(y[i]), bits(alone[i])) << x[i];
      ASSERT_EQ(bits(y[i]), bits(five[i])) << x[i];
    }
  });
}

TEST(Tanh, KeepsSpecialValues) {
  const float tiny = std::numeric_limits<float>::denorm_min(), least = std::numeric_limits<float>::min();
  for_targets([&] {
    for (const float sign : {1.0f, -1.0f}) {
      std::vector<float> same, ones, nans;
      for (const float x : {0.0f, tiny, 3 * tiny, least - tiny, least, 1e-30f, 1e-10f}) same.push_back(sign * x);
      for (const float x : {9.011f, 9.5f, 10.0f, 11.0f, 88.0f, 1e10f, FLT_MAX, kInfinity}) ones.push_back(sign * x);
      for (const uint32_t u : {0x7F800001u, 0x7FBFFFFFu, 0x7FC00000u, 0x7FFFFFFFu}) {
        nans.push_back(std::bit_cast<float>(u | (sign < 0 ? 0x80000000u : 0u)));
      }
      const std::vector<float> tanh_same = tanh_of(same);
      for (size_t i = 0; i < same.size(); ++i) EXPECT_EQ(bits(tanh_same[i]), bits(same[i])) << same[i];
      for (const float y : tanh_of(ones)) EXPECT_EQ(y, sign);
      for (const float y : tanh_of(nans)) EXPECT_TRUE(std::isnan(y));
    }
  });
}

// Rows of k have a gap of NaN after them, except the last: nothing behind it may be read.
struct Drawn {
  int64_t queries, keys, D, stride;
  std::vector<float> q, k, w, ds, hidden;

  Drawn(Rng& rng, int64_t tile) {
    const auto pick = [&](std::initializer_list<int64_t> values) { return values.begin()[rng.below(values.size())]; };
    queries = std::min(tile, pick({1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 32}));
    keys = pick({1, 2, 3, 4, 5, 8, 13, 24});
    D = pick({1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 65});
    stride = D + pick({0, 1, 5});
    const auto normal = [&](int64_t n, float size) {
      std::vector<float> numbers(static_cast<size_t>(n));
      for (float& x : numbers) x = size * rng.normal();
      return numbers;
    };
    const float spread = rng.below(4) == 0 ? 6.0f : 1.0f;
    q = normal(queries * D, spread);
    k = normal((keys - 1) * stride + D, spread);
    for (size_t i = 0; i < k.size(); ++i) {
      if (static_cast<int64_t>(i) % stride >= D) k[i] = std::nanf("");
    }
    w = normal(D, 1);
    ds = normal(keys * queries, 1);
    hidden.resize(ds.size());
  }

  AdditiveCase view(bool careful = false) const {
    return {queries, keys, D, stride, q.data(), k.data(), w.data(), ds.data(), careful ? hidden.data() : nullptr};
  }
  std::string describe() const {
    return "queries=" + std::to_string(queries) + " keys=" + std::to_string(keys) + " D=" + std::to_string(D) +
           " stride=" + std::to_string(stride);
  }
  double sum(int64_t query, int64_t key, int64_t c) const {
    return double{q[static_cast<size_t>(query * D + c)]} + double{k[static_cast<size_t>(key * stride + c)]};
  }
};

// A number that is right up to rounding: within `error`.
struct Expected {
  double value = 0, error = 0;
};

::testing::AssertionResult near(float got, const Expected& want) {
  if (std::abs(double{got} - want.value) <= want.error) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << ", expected " << want.value << " +- " << want.error;
}

// A computed tanh(q + k) is wrong by at most kTanh u |tanh|: 3 ulp are 6 u, and rounding q + k by a factor 1 + u
// changes the tanh by u |x| (1 - tanh^2) <= u |tanh|. One more for what is of second order.
constexpr double kTanh = 8;

// The D products are rounded, where there is no FMA, and so are the D sums, and with columns in lanes those over lanes.
Expected score(const Drawn& x, int64_t query, int64_t key) {
  double value = 0, size = 0;
  for (int64_t c = 0; c < x.D; ++c) {
    const double term = double{x.w[static_cast<size_t>(c)]} * std::tanh(x.sum(query, key, c));
    value += term;
    size += std::abs(term);
  }
  return {value, kUnit * (static_cast<double>(x.D) + kTanh + 5) * size};
}

TEST(AdditiveRows, EqualsALoopInDoubleAndHasTheSameBitsInAnyTile) {
  for_draws(150, [](Rng& rng) {
    const Rng seed = rng;
    for_targets([&] {
      Rng draws = seed;
      const Drawn x(draws, HWY_DYNAMIC_DISPATCH(tile_queries)());
      SCOPED_TRACE(x.describe());
      std::vector<float> scores(static_cast<size_t>(x.keys * x.queries));
      HWY_DYNAMIC_DISPATCH(additive_scores)(x.view(), 1, 1, scores.data());
      for (int64_t i = 0; i < x.keys * x.queries; ++i) {
        ASSERT_TRUE(near(scores[static_cast<size_t>(i)], score(x, i % x.queries, i / x.queries))) << "pair " << i;
      }
      for (const int rows : {1, 3, 4}) {
        for (const int vectors : {1, 2}) {
          std::vector<float> others = scores;
          HWY_DYNAMIC_DISPATCH(additive_scores)(x.view(), rows, vectors, others.data());
          ASSERT_EQ(others, scores) << rows << " rows, " << vectors << " vectors";
        }
      }
    });
  });
}

template <class T>
void expect_dots(Drawn x, DType dtype) {
  std::vector<T> k;
  for (float& number : x.k) {
    if constexpr (std::is_same_v<T, float>) {
      k.push_back(number);
    } else {
      k.push_back(T::from(number));
      number = static_cast<float>(k.back());
    }
  }
  std::vector<float> scores(static_cast<size_t>(x.keys));
  HWY_DYNAMIC_DISPATCH(additive_dots)(x.view(), k.data(), dtype, 1, scores.data());
  for (int64_t key = 0; key < x.keys; ++key) {
    ASSERT_TRUE(near(scores[static_cast<size_t>(key)], score(x, 0, key))) << "key " << key;
  }
  std::vector<float> others = scores;
  HWY_DYNAMIC_DISPATCH(additive_dots)(x.view(), k.data(), dtype, 4, others.data());
  EXPECT_EQ(others, scores);
}

TEST(AdditiveDot, EqualsALoopInDoubleForEveryStorage) {
  for_draws(150, [](Rng& rng) {
    const Drawn x(rng, 1);
    SCOPED_TRACE(x.describe());
    for_targets([&] {
      expect_dots<float>(x, DType::f32);
      expect_dots<BFloat16>(x, DType::bf16);
      expect_dots<Float16>(x, DType::f16);
    });
  });
}

// A sum of products factor * x that is added to `before`, where x is wrong by `wrong`.
class Sum {
 public:
  explicit Sum(float before) : value_(before), size_(std::abs(value_)) {}
  void add(double factor, double x, double wrong) {
    value_ += factor * x;
    size_ += std::abs(factor) * (std::abs(x) + wrong);
    error_ += std::abs(factor) * wrong;
    ++terms_;
  }
  // The factor may be a rounded product, each term is rounded where there is no FMA, and then with every sum.
  Expected expected() const { return {value_, error_ + kUnit * (terms_ + 3) * size_}; }

 private:
  double value_, size_, error_ = 0, terms_ = 0;
};

// They begin at small numbers other than zero.
struct Gradients {
  std::vector<float> dq, dk, dw;

  explicit Gradients(const Drawn& x) : dq(begin(x.queries * x.D)), dk(begin(x.keys * x.D)), dw(begin(x.D)) {}
  void add(const Drawn& x, bool careful) {
    HWY_DYNAMIC_DISPATCH(additive_backward)(x.view(careful), dq.data(), dk.data(), dw.data());
  }
  bool operator==(const Gradients&) const = default;

 private:
  static std::vector<float> begin(int64_t n) {
    std::vector<float> numbers(static_cast<size_t>(n));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.01f * static_cast<float>(i % 17) - 0.07f;
    return numbers;
  }
};

// Gradients of all pairs that are not masked, added to what is in dq, dk and dw.
void expect_gradients(const Drawn& x, bool careful) {
  Gradients got(x);
  std::vector<float>&dq = got.dq, &dk = got.dk, &dw = got.dw;
  const auto sums_of = [](const std::vector<float>& numbers) {
    return std::vector<Sum>(numbers.begin(), numbers.end());
  };
  std::vector<Sum> dq_sums = sums_of(dq), dk_sums = sums_of(dk), dw_sums = sums_of(dw);
  got.add(x, careful);
  for (int64_t key = 0; key < x.keys; ++key) {
    for (int64_t query = 0; query < x.queries; ++query) {
      const auto pair = static_cast<size_t>(key * x.queries + query);
      if (x.hidden[pair] != 0) continue;
      for (int64_t c = 0; c < x.D; ++c) {
        const double t = std::tanh(x.sum(query, key, c)), ds = x.ds[pair], w = x.w[static_cast<size_t>(c)];
        // 1 - t^2: the error of t twice, and t^2 and the difference are rounded.
        const double slope_error = kUnit * ((2 * kTanh + 2) * t * t + 1);
        dq_sums[static_cast<size_t>(query * x.D + c)].add(ds * w, 1 - t * t, slope_error);
        dk_sums[static_cast<size_t>(key * x.D + c)].add(ds * w, 1 - t * t, slope_error);
        dw_sums[static_cast<size_t>(c)].add(ds, t, kUnit * kTanh * std::abs(t));
      }
    }
  }
  for (size_t i = 0; i < dq.size(); ++i) ASSERT_TRUE(near(dq[i], dq_sums[i].expected())) << "dq " << i;
  for (size_t i = 0; i < dk.size(); ++i) ASSERT_TRUE(near(dk[i], dk_sums[i].expected())) << "dk " << i;
  for (size_t i = 0; i < dw.size(); ++i) ASSERT_TRUE(near(dw[i], dw_sums[i].expected())) << "dw " << i;
}

TEST(AdditiveGradients, EqualALoopInDouble) {
  for_draws(150, [](Rng& rng) {
    const Rng seed = rng;
    for_targets([&] {
      Rng draws = seed;
      const Drawn x(draws, HWY_DYNAMIC_DISPATCH(tile_queries)());
      SCOPED_TRACE(x.describe());
      expect_gradients(x, false);
    });
  });
}

// Hides some pairs at random, and every pair of one query and one key.
void hide(Drawn& x, Rng& rng, int64_t whole_query, int64_t whole_key) {
  for (int64_t key = 0; key < x.keys; ++key) {
    for (int64_t query = 0; query < x.queries; ++query) {
      if (query != whole_query && key != whole_key && rng.below(3) != 0) continue;
      const auto pair = static_cast<size_t>(key * x.queries + query);
      x.hidden[pair] = 1;
      x.ds[pair] = 0;
    }
  }
}

TEST(AdditiveGradients, LeaveHiddenPairsOut) {
  for_draws(150, [](Rng& rng) {
    const Rng seed = rng;
    for_targets([&] {
      Rng draws = seed;
      Drawn x(draws, HWY_DYNAMIC_DISPATCH(tile_queries)());
      SCOPED_TRACE(x.describe());
      const auto query = static_cast<int64_t>(draws.below(static_cast<uint64_t>(x.queries)));
      const auto key = static_cast<int64_t>(draws.below(static_cast<uint64_t>(x.keys)));
      hide(x, draws, query, key);
      // As long as all is finite, ds = 0 does the same, to the bit.
      Gradients left_out(x), times_zero(x);
      left_out.add(x, true);
      times_zero.add(x, false);
      EXPECT_TRUE(left_out == times_zero);
      for (int64_t c = 0; c < x.D; ++c) {
        x.q[static_cast<size_t>(query * x.D + c)] = std::nanf("");
        x.k[static_cast<size_t>(key * x.stride + c)] = c % 2 ? kInfinity : std::nanf("");
      }
      expect_gradients(x, true);
    });
  });
}

TEST(AdditiveBlocks, CarryANanThatIsSeen) {
  const float nan = std::nanf("");
  const std::vector<float> q{0.5f, nan, 0.25f}, k{1, 2, 3}, w{1, 1, 1}, ds{1};
  const AdditiveCase x{1, 1, 3, 3, q.data(), k.data(), w.data(), ds.data(), nullptr};
  for_targets([&] {
    float score_in_tile = 0, score_in_lanes = 0;
    HWY_DYNAMIC_DISPATCH(additive_scores)(x, 1, 1, &score_in_tile);
    HWY_DYNAMIC_DISPATCH(additive_dots)(x, k.data(), DType::f32, 1, &score_in_lanes);
    EXPECT_TRUE(std::isnan(score_in_tile));
    EXPECT_TRUE(std::isnan(score_in_lanes));
    std::vector<float> dq(3), dk(3), dw(3);
    HWY_DYNAMIC_DISPATCH(additive_backward)(x, dq.data(), dk.data(), dw.data());
    for (const auto& gradient : {dq, dk, dw}) {
      EXPECT_FALSE(std::isnan(gradient[0]));
      EXPECT_TRUE(std::isnan(gradient[1]));
      EXPECT_FALSE(std::isnan(gradient[2]));
    }
  });
}

}  // namespace
}  // namespace heed::kernels
#endif  // HWY_ONCE
