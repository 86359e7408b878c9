// SPDX-License-Identifier: Apache-2.0
#include "heed/base/workspace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "heed/base/allocator.h"
#include "heed/base/pages.h"

namespace heed {
namespace {

bool is_aligned(const Workspace& workspace) {
  return reinterpret_cast<uintptr_t>(workspace.data()) % Workspace::kAlignment == 0;
}

TEST(Workspace, StartsWithNothing) {
  const Workspace workspace;
  EXPECT_EQ(workspace.bytes(), 0u);
  EXPECT_EQ(workspace.data(), nullptr);
}

TEST(Workspace, IsAlignedAtEverySizeAndAllWritable) {
  for (size_t bytes : {1, 63, 64, 65, 1000, 4096, 100'001}) {
    const Workspace workspace(bytes);
    EXPECT_EQ(workspace.bytes(), bytes);
    EXPECT_TRUE(is_aligned(workspace)) << bytes;
    std::memset(workspace.data(), 0x5a, bytes);
    EXPECT_EQ(workspace.data()[bytes - 1], std::byte{0x5a});
  }
}

TEST(Workspace, LargeOnesBeginAtALargePage) {
  for (const size_t bytes : {kLargePage, kLargePage + 1, 3 * kLargePage - 64, 5 * kLargePage}) {
    const Workspace own(bytes), cached = Workspace::cached(bytes);
    for (const Workspace* workspace : {&own, &cached}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace->data()) % kLargePage, 0u) << bytes;
      std::memset(workspace->data(), 0x5a, bytes);
      EXPECT_EQ(workspace->data()[bytes - 1], std::byte{0x5a});
    }
  }
  release_cached_memory();  // of every class of sizes: sanitizers compare what is freed with what was allocated
  EXPECT_EQ(allocator_stats().kept_bytes, 0);
}

TEST(Workspace, Grows) {
  Workspace workspace(100);
  for (size_t bytes = 128; bytes <= 1 << 20; bytes *= 2) {
    workspace.reserve(bytes);
    EXPECT_EQ(workspace.bytes(), bytes);
    EXPECT_TRUE(is_aligned(workspace));
    std::memset(workspace.data(), 1, bytes);
  }
}

TEST(Workspace, NeverShrinksAndReusesItsMemory) {
  Workspace workspace(1000);
  std::byte* const data = workspace.data();
  std::memset(data, 0x33, 1000);
  for (size_t bytes : {1000, 10, 0, 999}) {
    workspace.reserve(bytes);
    EXPECT_EQ(workspace.bytes(), 1000u);
    EXPECT_EQ(workspace.data(), data);
  }
  EXPECT_EQ(data[999], std::byte{0x33});
}

TEST(Workspace, ACachedOneLeavesItsMemoryToTheNext) {
  const std::byte* memory = nullptr;
  {
    const Workspace workspace = Workspace::cached(1000);
    EXPECT_EQ(workspace.bytes(), 1000u);
    EXPECT_TRUE(is_aligned(workspace));
    std::memset(workspace.data(), 1, 1000);
    memory = workspace.data();
  }
  EXPECT_EQ(Workspace::cached(1000).data(), memory);
  EXPECT_EQ(Workspace::cached(0).data(), nullptr);
}

TEST(Workspace, ACachedOneGrowsAndMovesAsAnyOther) {
  Workspace workspace = Workspace::cached(1000);
  const std::byte* memory = workspace.data();
  Workspace taken = std::move(workspace);
  EXPECT_EQ(taken.data(), memory);
  taken.reserve(5000);
  EXPECT_EQ(taken.bytes(), 5000u);
  std::memset(taken.data(), 1, 5000);
  workspace.reserve(10);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(workspace.bytes(), 10u);
  taken = Workspace::cached(1000);
  EXPECT_EQ(taken.data(), memory);
}

TEST(Workspace, IsEmptyButUsableAfterAMove) {
  Workspace workspace(1000);
  const Workspace taken = std::move(workspace);
  EXPECT_EQ(taken.bytes(), 1000u);
  workspace.reserve(10);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_EQ(workspace.bytes(), 10u);
  EXPECT_NE(workspace.data(), nullptr);
}

TEST(Workspace, IsEmptyButUsableAfterAFailedGrowth) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' allocators abort where operator new throws";
#endif
  volatile size_t hopeless = std::numeric_limits<size_t>::max() / 4;  // volatile, or the compiler warns of it
  Workspace workspace(1000);
  EXPECT_THROW(workspace.reserve(hopeless), std::bad_alloc);
  EXPECT_EQ(workspace.bytes(), 0u);
  EXPECT_EQ(workspace.data(), nullptr);
  workspace.reserve(100);
  EXPECT_EQ(workspace.bytes(), 100u);
  EXPECT_TRUE(is_aligned(workspace));
}

}  // namespace
}  // namespace heed
