#include "heed/nn/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "heed/base/rng.h"
#include "heed/base/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of;

// [B,n,width] of which row t of batch b is filled with 100 b + t, from `first` on.
Tensor rows(int64_t B, int64_t n, int64_t width, int64_t first) {
  Tensor x = Tensor::uninitialised({B, n, width});
  for (int64_t row = 0; row < B * n; ++row) {
    const int64_t b = row / n, t = row % n;
    std::fill_n(x.data<float>() + row * width, width, static_cast<float>(100 * b + first + t));
  }
  return x;
}

void expect_rows(const Tensor& cached, int64_t b, int64_t length, float batch) {
  const int64_t room = cached.shape(1), width = cached.shape(2);
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      EXPECT_EQ(cached.data<float>()[(b * room + t) * width + i], batch + static_cast<float>(t));
    }
  }
}

TEST(KvCache, KeepsWhatWasAppendedAsItGrows) {
  KvCache cache;
  int64_t length = 0;
  for (const int64_t n : {1, 0, 3, 30, 1, 64, 1}) {
    cache.append(rows(2, n, 3, length), rows(2, n, 5, length));
    length += n;
    EXPECT_EQ(cache.length, length);
    ASSERT_GE(cache.k.shape(1), length);
    for (int64_t b = 0; b < 2; ++b) {
      expect_rows(cache.k, b, length, 100 * static_cast<float>(b));
      expect_rows(cache.v, b, length, 100 * static_cast<float>(b));
    }
  }
}

TEST(KvCache, GrowsByDoubling) {
  KvCache cache;
  int growths = 0;
  for (int64_t t = 0; t < 1000; ++t) {
    const std::byte* before = cache.k.raw();
    cache.append(rows(1, 1, 2, t), rows(1, 1, 2, t));
    growths += cache.k.raw() != before;
  }
  EXPECT_EQ(growths, 6);  // 32, 64, ... 1024
}

TEST(KvCache, SaysWhatDoesNotFit) {
  KvCache cache;
  cache.append(rows(2, 1, 3, 0), rows(2, 1, 4, 0));
  EXPECT_EQ(error_of([&] { cache.append(rows(1, 1, 3, 0), rows(1, 1, 4, 0)); }),
            "cache: keys of shape [1, 1, 3] in f32 came, expected [2, 1, 3] in f32");
  EXPECT_EQ(error_of([&] { cache.append(rows(2, 2, 3, 0), rows(2, 1, 4, 0)); }),
            "cache: values of shape [2, 1, 4] in f32 came, expected [2, 2, 4] in f32");
  EXPECT_EQ(error_of([&] { cache.append(rows(2, 1, 3, 0).converted(DType::f64), rows(2, 1, 4, 0)); }),
            "cache: keys of shape [2, 1, 3] in f64 came, expected [2, 1, 3] in f32");
  EXPECT_EQ(cache.length, 1);
}

TEST(KvCache, StoresIn16BitsWhatComesInF32) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    KvCache cache{.dtype = dtype};
    KvCache plain;
    Rng rng(1);
    for (const int64_t n : {1, 30, 5, 40}) {
      Tensor k = Tensor::uninitialised({2, n, 3}), v = Tensor::uninitialised({2, n, 5});
      for (const Tensor& x : {k, v}) std::generate_n(x.data<float>(), x.size(), [&] { return rng.normal(); });
      cache.append(k, v);
      plain.append(k, v);
    }
    EXPECT_EQ(cache.length, 76);
    EXPECT_EQ(cache.k.dtype(), dtype);
    EXPECT_EQ(cache.v.dtype(), dtype);
    EXPECT_EQ(cache.k.shape(), plain.k.shape());
    for (const auto& [got, want] : {std::pair{cache.k, plain.k}, {cache.v, plain.v}}) {
      const std::vector<double> rounded = got.to_doubles(), exact = want.converted(dtype).to_doubles();
      const int64_t room = got.shape(1), width = got.shape(2);
      for (int64_t i = 0; i < got.size(); ++i) {
        if (i / width % room >= 76) continue;  // not there yet
        EXPECT_EQ(rounded[static_cast<size_t>(i)], exact[static_cast<size_t>(i)]) << i;
      }
    }
    // Rows in f64 are rounded once, too, and the dtype that was chosen is kept.
    cache.append(Tensor::full({2, 1, 3}, 1 + 0x1p-8 + 0x1p-50, DType::f64), Tensor::zeros({2, 1, 5}, DType::f64));
    const double stored = cache.k.to_doubles()[76 * 3];
    EXPECT_EQ(stored, dtype == DType::bf16 ? 1 + 0x1p-7 : 1 + 0x1p-8);
    EXPECT_EQ(error_of([&] {
                cache.append(Tensor::zeros({2, 1, 3}, DType::i32), Tensor::zeros({2, 1, 5}));
              }),
              "cache: keys of shape [2, 1, 3] in i32 came, expected [2, 1, 3] in f32 or f64");
  }
}

TEST(KvCache, OfWholeSourcesSharesWhereItNeedNotConvert) {
  const Tensor k = rows(2, 4, 3, 0), v = rows(2, 4, 5, 0);
  EXPECT_EQ(KvCache::of(k, v).k.raw(), k.raw());
  EXPECT_EQ(KvCache::of(k, v, DType::f32).v.raw(), v.raw());
  const KvCache stored = KvCache::of(k, v, DType::f16);
  EXPECT_EQ(stored.length, 4);
  EXPECT_EQ(stored.k.dtype(), DType::f16);
  EXPECT_EQ(stored.v.to_doubles(), v.to_doubles());
}

TEST(State, ReordersAndCountsCachesIn16Bits) {
  State state;
  state.self.resize(1, {.dtype = DType::bf16});
  state.self[0].append(rows(3, 4, 2, 0), rows(3, 4, 5, 0));
  state.cross.push_back(KvCache::of(rows(3, 6, 2, 0), rows(3, 6, 2, 0), DType::f16));
  EXPECT_EQ(state.bytes(), 2u * 3 * (32 * (2 + 5) + 6 * (2 + 2)));
  const int64_t parents[] = {2, 0};
  state.reorder(parents);
  EXPECT_EQ(state.self[0].k.dtype(), DType::bf16);
  EXPECT_EQ(state.cross[0].k.shape(), (Shape{2, 6, 2}));
  EXPECT_EQ(state.cross[0].k.to_doubles()[0], 200);
  EXPECT_EQ(state.self[0].k.to_doubles()[0], 200);
  EXPECT_EQ(state.self[0].k.to_doubles()[32 * 2], 0);
  state.self[0].append(rows(2, 1, 2, 4), rows(2, 1, 5, 4));
  EXPECT_EQ(state.self[0].k.to_doubles()[4 * 2], 4);
  EXPECT_EQ(state.self[0].k.dtype(), DType::bf16);
}

TEST(KvCache, HoldsNoRows) {
  KvCache cache;
  for (int64_t t = 0; t < 40; ++t) cache.append(rows(0, 1, 3, t), rows(0, 1, 3, t));
  EXPECT_EQ(cache.length, 40);
}

TEST(State, ReordersEverythingItCarries) {
  State state;
  state.self.resize(2);
  for (KvCache& cache : state.self) cache.append(rows(3, 4, 2, 0), rows(3, 4, 5, 0));
  state.cross.push_back({rows(3, 6, 2, 0), rows(3, 6, 2, 0), 6});
  state.source_lengths = {4, 5, 6};
  state.hidden = {rows(3, 1, 7, 0)};
  state.length = 4;

  const int64_t parents[] = {2, 0, 0, 2};
  state.reorder(parents);
  for (int64_t i = 0; i < 4; ++i) {
    const float batch = 100 * static_cast<float>(parents[i]);
    for (const KvCache& cache : state.self) {
      expect_rows(cache.k, i, 4, batch);
      expect_rows(cache.v, i, 4, batch);
    }
    expect_rows(state.cross[0].k, i, 6, batch);
    expect_rows(state.hidden[0], i, 1, batch);
  }
  EXPECT_EQ(state.source_lengths, (std::vector<int64_t>{6, 4, 4, 6}));
  EXPECT_EQ(state.length, 4);
  EXPECT_EQ(error_of([&] { state.reorder(std::array<int64_t, 1>{4}); }), "state: a parent is 4, expected 0 to 3");
}

TEST(State, CountsItsBytes) {
  State state;
  EXPECT_EQ(state.bytes(), 0u);
  state.self.resize(2);
  EXPECT_EQ(state.bytes(), 0u);
  state.cross.push_back({rows(3, 6, 2, 0), rows(3, 6, 4, 0), 6});
  state.hidden = {rows(3, 1, 7, 0)};
  EXPECT_EQ(state.bytes(), 4u * (3 * 6 * (2 + 4) + 3 * 7));
}

}  // namespace
}  // namespace heed::nn
