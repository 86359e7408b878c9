// SPDX-License-Identifier: Apache-2.0
// The allocator, by way of tensors.
#include "heed/base/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "heed/tensor/tensor.h"

namespace heed {
namespace {

// Each in a thread of its own, so that the cache begins empty.
void in_fresh_thread(const auto& body) { std::thread(body).join(); }

TEST(Allocator, AsksTheSystemOnlyInTheFirstRound) {
  in_fresh_thread([] {
    const auto round = [] {
      std::vector<Tensor> kept;
      for (int64_t n = 1; n < 40; ++n) {
        kept.push_back(Tensor::zeros({n, 13}));
        const Tensor passing = Tensor::zeros({n * 7}, DType::f64);
      }
    };
    round();
    const int64_t fresh = allocator_stats().fresh;
    EXPECT_GT(fresh, 40);
    for (int i = 0; i < 3; ++i) round();
    EXPECT_EQ(allocator_stats().fresh, fresh);
  });
}

TEST(Allocator, ReusesTheBlockThatWasFreedLast) {
  in_fresh_thread([] {
    void* first = cached_allocate(1000);
    cached_free(first, 1000);
    EXPECT_GE(allocator_stats().kept_bytes, 1000);
    void* second = cached_allocate(990);
    EXPECT_EQ(second, first);
    EXPECT_EQ(allocator_stats().kept_bytes, 0);
    EXPECT_EQ(allocator_stats().fresh, 1);
    cached_free(second, 990);
  });
}

// The size class that kept_bytes shows: four to each power of two, and at least 64 bytes.
TEST(Allocator, RoundsUpByLessThanAQuarter) {
  in_fresh_thread([] {
    size_t before = 0;
    for (size_t bytes = 0; bytes < 5000; ++bytes) {
      void* memory = cached_allocate(bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % kCachedAlignment, 0u);
      std::memset(memory, 0x5A, bytes);
      cached_free(memory, bytes);
      const auto rounded = static_cast<size_t>(allocator_stats().kept_bytes);
      release_cached_memory();
      ASSERT_GE(rounded, bytes);
      ASSERT_GE(rounded, before);
      ASSERT_LE(rounded, std::max<size_t>(64, bytes + bytes / 4)) << bytes;
      before = rounded;
    }
    for (const auto& [bytes, expected] :
         {std::pair<size_t, int64_t>{0, 64}, {64, 64}, {65, 80}, {128, 128}, {129, 160}}) {
      cached_free(cached_allocate(bytes), bytes);
      EXPECT_EQ(allocator_stats().kept_bytes, expected) << bytes;
      release_cached_memory();
    }
  });
}

// Different classes never share a block, whatever comes first.
TEST(Allocator, BlocksInUseDoNotOverlap) {
  in_fresh_thread([] {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::pair<unsigned char*, size_t>> blocks;
      for (size_t bytes = 1; bytes < 700; bytes += 3) {
        auto* memory = static_cast<unsigned char*>(cached_allocate(bytes));
        std::memset(memory, static_cast<int>(bytes % 251), bytes);
        blocks.emplace_back(memory, bytes);
      }
      for (const auto& [memory, bytes] : blocks) {
        for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory[i], bytes % 251);
        cached_free(memory, bytes);
      }
    }
  });
}

TEST(Allocator, ReleaseGivesEverythingBack) {
  in_fresh_thread([] {
    { const Tensor t = Tensor::zeros({1000}); }
    EXPECT_GE(allocator_stats().kept_bytes, 4000);
    release_cached_memory();
    EXPECT_EQ(allocator_stats().kept_bytes, 0);
    const int64_t fresh = allocator_stats().fresh;
    { const Tensor t = Tensor::zeros({1000}); }
    EXPECT_GT(allocator_stats().fresh, fresh);
  });
}

TEST(Allocator, MemoryFreedOnAnotherThreadIsKeptThere) {
  in_fresh_thread([] {
    std::optional<Tensor> tensor = Tensor::full({5000}, 3);
    in_fresh_thread([&] {
      EXPECT_EQ(allocator_stats().kept_bytes, 0);
      EXPECT_EQ(tensor->to_doubles()[4999], 3);
      tensor.reset();
      EXPECT_GE(allocator_stats().kept_bytes, 20000);
      const int64_t fresh = allocator_stats().fresh;
      { const Tensor again = Tensor::zeros({5000}); }
      EXPECT_EQ(allocator_stats().fresh, fresh);
    });
    EXPECT_EQ(allocator_stats().kept_bytes, 0);
  });
}

TEST(Allocator, ATensorOutlivesTheThreadThatMadeIt) {
  Tensor tensor;
  in_fresh_thread([&] { tensor = Tensor::full({3000}, 2); });
  EXPECT_EQ(tensor.to_doubles()[2999], 2);
}

// Destroyed in reverse order of construction: this one is built before the thread's cache, and goes after it.
struct Late {
  Tensor held;
  int64_t* kept_after;
  ~Late() {
    held = Tensor::full({100}, 1);  // allocates and frees without a cache
    const bool whole = held.to_doubles()[99] == 1;
    held = {};
    release_cached_memory();
    *kept_after = whole ? allocator_stats().kept_bytes : -1;
  }
};

TEST(Allocator, WorksAfterTheThreadsCacheIsGone) {
  int64_t kept_after = -2;
  in_fresh_thread([&] {
    thread_local Late late{{}, nullptr};
    late.kept_after = &kept_after;
    late.held = Tensor::zeros({100});  // the cache is made here
    { const Tensor kept = Tensor::zeros({100}); }
    EXPECT_GT(allocator_stats().kept_bytes, 0);
  });
  EXPECT_EQ(kept_after, 0);
}

TEST(Allocator, RejectsWhatCannotBe) {
  EXPECT_THROW(cached_allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(cached_allocate((size_t{1} << 62) + 1), std::bad_alloc);
  EXPECT_THROW(CachedAllocator<double>().allocate(SIZE_MAX / 4), std::bad_alloc);
  cached_free(nullptr, 10);
}

TEST(Allocator, ServesContainers) {
  in_fresh_thread([] {
    const auto grow = [] {
      CachedVector<int> list;
      for (int i = 0; i < 1000; ++i) list.push_back(i);
      EXPECT_EQ(list[999], 999);
    };
    grow();
    const int64_t fresh = allocator_stats().fresh;
    grow();
    EXPECT_EQ(allocator_stats().fresh, fresh);
  });
}

}  // namespace
}  // namespace heed
