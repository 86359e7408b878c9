// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "heed/base/rng.h"
#include "heed/base/testing.h"

namespace heed::nn {
namespace {

using heed::testing::error_of, heed::testing::seeded;

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
    EXPECT_EQ(cache.length(), length);
    ASSERT_EQ(cache.keys().shape(1), length);
    for (int64_t b = 0; b < 2; ++b) {
      expect_rows(cache.keys(), b, length, 100 * static_cast<float>(b));
      expect_rows(cache.values(), b, length, 100 * static_cast<float>(b));
    }
  }
}

TEST(KvCache, GrowsByDoubling) {
  KvCache cache;
  std::set<size_t> sizes;
  for (int64_t t = 0; t < 1000; ++t) {
    cache.append(rows(1, 1, 2, t), rows(1, 1, 2, t));
    sizes.insert(cache.bytes());
  }
  EXPECT_EQ(sizes.size(), 6u);  // 32, 64, ... 1024 tokens
}

// Each hypothesis writes what no other sees, over many steps of branching, leaving and going on.
TEST(KvCache, HypothesesShareTheirBeginningsAndNothingElse) {
  Rng rng(seeded(3));
  KvCache cache;
  std::vector<std::vector<float>> want(2);  // the tokens of each row
  float next = 0;
  for (int step = 0; step < 150; ++step) {
    const int64_t n = step == 0 ? 40 : 1;
    Tensor k = Tensor::uninitialised({std::ssize(want), n, 2}), v = Tensor::uninitialised({std::ssize(want), n, 3});
    for (size_t row = 0; row < want.size(); ++row) {
      for (int64_t t = 0; t < n; ++t, ++next) {
        want[row].push_back(next);
        const int64_t at = static_cast<int64_t>(row) * n + t;
        for (int64_t i = 0; i < 2; ++i) k.data<float>()[at * 2 + i] = next;
        for (int64_t i = 0; i < 3; ++i) v.data<float>()[at * 3 + i] = -next;
      }
    }
    cache.append(k, v);
    std::vector<int64_t> parents;
    for (uint64_t i = 0, count = 1 + rng.below(5); i < count; ++i) {
      parents.push_back(static_cast<int64_t>(rng.below(want.size())));
    }
    cache.reorder(parents);
    std::vector<std::vector<float>> chosen;
    for (const int64_t parent : parents) chosen.push_back(want[static_cast<size_t>(parent)]);
    want = chosen;
    ASSERT_EQ(cache.rows(), std::ssize(want));
    const Tensor keys = cache.keys(), values = cache.values();
    for (size_t row = 0; row < want.size(); ++row) {
      for (size_t t = 0; t < want[row].size(); ++t) {
        const size_t at = row * want[row].size() + t;
        ASSERT_EQ(keys.data<float>()[at * 2 + 1], want[row][t]) << "step " << step << ", row " << row;
        ASSERT_EQ(values.data<float>()[at * 3 + 2], -want[row][t]);
      }
    }
  }
  // Five hypotheses of 190 tokens share most of what they have: without that they would fill 30 pages.
  EXPECT_LE(cache.bytes(), 4u * 32 * 5 * 32);
}

TEST(KvCache, GoingOnFromItselfCopiesNothing) {
  KvCache cache;
  cache.append(rows(3, 4, 2, 0), rows(3, 4, 2, 0));
  const size_t before = cache.bytes();
  for (int64_t t = 4; t < 30; ++t) {
    cache.reorder(std::array<int64_t, 3>{0, 1, 2});
    cache.append(rows(3, 1, 2, t), rows(3, 1, 2, t));
  }
  EXPECT_EQ(cache.bytes(), before);
  // A source that many look at is there once.
  KvCache source = KvCache::of(rows(2, 6, 3, 0), rows(2, 6, 3, 0));
  const size_t once = source.bytes();
  source.reorder(std::array<int64_t, 8>{0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_EQ(source.bytes(), once);
  for (int64_t row = 0; row < 8; ++row) expect_rows(source.keys(), row, 6, row < 4 ? 0.0f : 100.0f);
}

TEST(KvCache, CopiesDoNotWriteToEachOther) {
  KvCache one;
  one.append(rows(1, 2, 3, 0), rows(1, 2, 3, 0));
  KvCache other = one;
  other.append(rows(1, 1, 3, 50), rows(1, 1, 3, 50));
  one.append(rows(1, 1, 3, 2), rows(1, 1, 3, 2));
  expect_rows(one.keys(), 0, 3, 0);
  EXPECT_EQ(other.keys().data<float>()[2 * 3], 50);
}

// Rows of other lengths, and pages of other sizes.
TEST(KvCache, JoinsRows) {
  for (const auto& [first, second] : {std::pair<int64_t, int64_t>{5, 70}, {70, 5}, {32, 33}}) {
    for (const bool whole : {false, true}) {
      const auto made = [&](int64_t tokens) {
        if (whole) return KvCache::of(rows(2, tokens, 3, 0), rows(2, tokens, 4, 0));
        KvCache cache;
        cache.append(rows(2, tokens, 3, 0), rows(2, tokens, 4, 0));
        return cache;
      };
      KvCache cache = made(first);
      cache.join(made(second));
      EXPECT_EQ(cache.rows(), 4);
      EXPECT_EQ(cache.length(), 70 > first && 70 > second ? 33 : 70);
      for (int64_t row = 0; row < 4; ++row) {
        const int64_t length = row < 2 ? first : second;
        EXPECT_EQ(cache.lengths()[static_cast<size_t>(row)], length);
        expect_rows(cache.keys(), row, length, row % 2 == 0 ? 0.0f : 100.0f);
        expect_rows(cache.values(), row, length, row % 2 == 0 ? 0.0f : 100.0f);
      }
    }
  }
  KvCache narrow = KvCache::of(rows(1, 2, 3, 0), rows(1, 2, 3, 0));
  EXPECT_EQ(error_of([&] { narrow.join(KvCache::of(rows(1, 2, 4, 0), rows(1, 2, 3, 0))); }),
            "cache: keys of width 4 in f32 came to be joined, expected 3 in f32");
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
  EXPECT_EQ(cache.length(), 1);
}

TEST(KvCache, StoresIn16BitsWhatComesInF32) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    KvCache cache(dtype), plain;
    Rng rng(seeded(1));
    for (const int64_t n : {1, 30, 5, 40}) {
      Tensor k = Tensor::uninitialised({2, n, 3}), v = Tensor::uninitialised({2, n, 5});
      for (const Tensor& x : {k, v}) std::generate_n(x.data<float>(), x.size(), [&] { return rng.normal(); });
      cache.append(k, v);
      plain.append(k, v);
    }
    EXPECT_EQ(cache.length(), 76);
    EXPECT_EQ(cache.dtype(), dtype);
    EXPECT_EQ(cache.values().dtype(), dtype);
    EXPECT_EQ(cache.keys().to_doubles(), plain.keys().converted(dtype).to_doubles());
    EXPECT_EQ(cache.values().to_doubles(), plain.values().converted(dtype).to_doubles());
    // Rows in f64 are rounded once, too, and the dtype that was chosen is kept.
    cache.append(Tensor::full({2, 1, 3}, 1 + 0x1p-8 + 0x1p-50, DType::f64), Tensor::zeros({2, 1, 5}, DType::f64));
    const double stored = cache.keys().to_doubles()[76 * 3];
    EXPECT_EQ(stored, dtype == DType::bf16 ? 1 + 0x1p-7 : 1 + 0x1p-8);
    EXPECT_EQ(error_of([&] {
                cache.append(Tensor::zeros({2, 1, 3}, DType::i32), Tensor::zeros({2, 1, 5}));
              }),
              "cache: keys of shape [2, 1, 3] in i32 came, expected [2, 1, 3] in f32 or f64");
  }
}

TEST(KvCache, OfWholeSourcesSharesWhereItNeedNotConvert) {
  const Tensor k = rows(2, 4, 3, 0), v = rows(2, 4, 5, 0);
  EXPECT_EQ(KvCache::of(k, v).keys().raw(), k.raw());
  EXPECT_EQ(KvCache::of(k, v, DType::f32).values().raw(), v.raw());
  const KvCache stored = KvCache::of(k, v, DType::f16);
  EXPECT_EQ(stored.length(), 4);
  EXPECT_EQ(stored.dtype(), DType::f16);
  EXPECT_EQ(stored.values().to_doubles(), v.to_doubles());
}

TEST(State, ReordersAndCountsCachesIn16Bits) {
  State state;
  state.self.assign(1, KvCache(DType::bf16));
  state.self[0].append(rows(3, 4, 2, 0), rows(3, 4, 5, 0));
  state.cross.push_back(KvCache::of(rows(3, 6, 2, 0), rows(3, 6, 2, 0), DType::f16));
  EXPECT_EQ(state.bytes(), 2u * 3 * (32 * (2 + 5) + 6 * (2 + 2)));
  const int64_t parents[] = {2, 0};
  state.reorder(parents);
  EXPECT_EQ(state.self[0].dtype(), DType::bf16);
  EXPECT_EQ(state.cross[0].keys().shape(), (Shape{2, 6, 2}));
  EXPECT_EQ(state.cross[0].keys().to_doubles()[0], 200);
  EXPECT_EQ(state.self[0].keys().to_doubles()[0], 200);
  EXPECT_EQ(state.self[0].keys().to_doubles()[4 * 2], 0);
  state.self[0].append(rows(2, 1, 2, 4), rows(2, 1, 5, 4));
  EXPECT_EQ(state.self[0].keys().to_doubles()[4 * 2], 4);
  EXPECT_EQ(state.self[0].dtype(), DType::bf16);
}

TEST(KvCache, HoldsNoRows) {
  KvCache cache;
  for (int64_t t = 0; t < 40; ++t) cache.append(rows(0, 1, 3, t), rows(0, 1, 3, t));
  EXPECT_EQ(cache.rows(), 0);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(State, ReordersEverythingItCarries) {
  State state;
  state.self.resize(2);
  for (KvCache& cache : state.self) cache.append(rows(3, 4, 2, 0), rows(3, 4, 5, 0));
  state.cross.push_back(KvCache::of(rows(3, 6, 2, 0), rows(3, 6, 2, 0)));
  state.source_lengths = {4, 5, 6};
  state.hidden = {rows(3, 1, 7, 0)};
  state.advance(3, 4);

  const int64_t parents[] = {2, 0, 0, 2};
  state.reorder(parents);
  for (int64_t i = 0; i < 4; ++i) {
    const float batch = 100 * static_cast<float>(parents[i]);
    for (const KvCache& cache : state.self) {
      expect_rows(cache.keys(), i, 4, batch);
      expect_rows(cache.values(), i, 4, batch);
    }
    expect_rows(state.cross[0].keys(), i, 6, batch);
    expect_rows(state.hidden[0], i, 1, batch);
  }
  EXPECT_EQ(state.source_lengths, (std::vector<int64_t>{6, 4, 4, 6}));
  EXPECT_EQ(state.length(), 4);
  EXPECT_EQ(error_of([&] { state.reorder(std::array<int64_t, 1>{4}); }), "state: a parent is 4, expected 0 to 3");
}

TEST(State, JoinsEverythingItCarries) {
  const auto made = [](int64_t batch, int64_t tokens) {
    State state;
    state.self.resize(1);
    state.self[0].append(rows(batch, tokens, 2, 0), rows(batch, tokens, 5, 0));
    state.cross.push_back(KvCache::of(rows(batch, 6, 2, 0), rows(batch, 6, 2, 0)));
    state.source_lengths.assign(static_cast<size_t>(batch), 6);
    state.hidden = {rows(batch, 1, 7, 0)};
    state.advance(batch, tokens);
    return state;
  };
  State state = made(2, 9);
  EXPECT_TRUE(state.has_equal_lengths());
  state.join(made(3, 1));
  EXPECT_FALSE(state.has_equal_lengths());
  EXPECT_EQ(state.lengths, (std::vector<int64_t>{9, 9, 1, 1, 1}));
  EXPECT_EQ(state.source_lengths.size(), 5u);
  expect_rows(state.hidden[0], 4, 1, 200);
  expect_rows(state.self[0].keys(), 1, 9, 100);
  expect_rows(state.cross[0].keys(), 4, 6, 200);
  EXPECT_EQ(error_of([&] { state.join(State()); }),
            "state: a state with 0 + 0 caches and 0 tensors came to be joined, expected 1 + 1 and 1");
}

TEST(State, CountsItsBytes) {
  State state;
  EXPECT_EQ(state.bytes(), 0u);
  state.self.resize(2);
  EXPECT_EQ(state.bytes(), 0u);
  state.cross.push_back(KvCache::of(rows(3, 6, 2, 0), rows(3, 6, 4, 0)));
  state.hidden = {rows(3, 1, 7, 0)};
  EXPECT_EQ(state.bytes(), 4u * (3 * 6 * (2 + 4) + 3 * 7));
}

}  // namespace
}  // namespace heed::nn
