// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/communicator.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heed/base/error.h"
#include "heed/dist/testing.h"

namespace heed::dist {
namespace {

using testing::run_ranks;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void pass_around(Communicator& communicator) {
  std::vector<float> mine(1000, static_cast<float>(communicator.rank())), theirs(1000);
  for (int step = 1; step <= communicator.size(); ++step) {
    Transfer moved = communicator.start_exchange<float>(communicator.next(), mine, communicator.previous(), theirs);
    moved.wait();
    EXPECT_TRUE(moved.done());
    std::swap(mine, theirs);
    const int expected = (communicator.rank() - step + communicator.size()) % communicator.size();
    EXPECT_EQ(mine, std::vector<float>(1000, static_cast<float>(expected)));
  }
}

TEST(Communicator, PassesBuffersAroundTheRing) {
  pass_around(*single_process());
  for (int ranks = 1; ranks <= 5; ++ranks) run_ranks(ranks, pass_around);
}

TEST(Communicator, KeepsTheOrderOfMessagesOfATag) {
  run_ranks(2, [](Communicator& communicator) {
    const int other = 1 - communicator.rank();
    for (int i = 0; i < 10; ++i) communicator.start_send<int>(other, std::array{i, -i}, i % 2).wait();
    for (const int tag : {1, 0}) {
      for (int i = tag; i < 10; i += 2) {
        std::array<int, 2> came{};
        communicator.start_receive<int>(other, came, tag).wait();
        EXPECT_EQ(came, (std::array{i, -i}));
      }
    }
  });
}

// Whichever of them is looked at first.
TEST(Communicator, ReceivesGetMessagesInTheOrderTheyWereStarted) {
  const auto late = [](Communicator& communicator) {
    std::array<int, 1> first{}, second{};
    Transfer one = communicator.start_receive<int>(communicator.previous(), first);
    Transfer two = communicator.start_receive<int>(communicator.previous(), second);
    communicator.start_send<int>(communicator.next(), std::array{1}).wait();
    communicator.start_send<int>(communicator.next(), std::array{2}).wait();
    two.wait(), one.wait();
    EXPECT_EQ(first[0], 1);
    EXPECT_EQ(second[0], 2);
  };
  late(*single_process());
  run_ranks(3, late);
}

void use_collectives(Communicator& communicator) {
  const int last = communicator.size() - 1;
  std::array<int64_t, 3> numbers{communicator.rank(), 7, 8};
  communicator.broadcast<int64_t>(last, numbers);
  EXPECT_EQ(numbers, (std::array<int64_t, 3>{last, 7, 8}));
  EXPECT_EQ(communicator.broadcast(last, communicator.rank() == last ? "from the last" : ""), "from the last");

  std::vector<int> all(static_cast<size_t>(2 * communicator.size()));
  communicator.all_gather<int>(std::array{communicator.rank(), 9}, all);
  std::vector<std::string> texts;
  for (int rank = 0; rank <= last; ++rank) {
    EXPECT_EQ(all[static_cast<size_t>(2 * rank)], rank);
    EXPECT_EQ(all[static_cast<size_t>(2 * rank + 1)], 9);
    texts.push_back(std::string(static_cast<size_t>(rank), 'x'));
  }
  EXPECT_EQ(communicator.all_gather(texts[static_cast<size_t>(communicator.rank())]), texts);
  communicator.barrier();
}

TEST(Communicator, HasCollectives) {
  use_collectives(*single_process());
  for (int ranks = 1; ranks <= 5; ++ranks) run_ranks(ranks, use_collectives);
}

// 1e17 + 1 - 1e17 is 0 in this order, and 1 in another.
TEST(Communicator, AddsDoublesInTheOrderOfTheRanks) {
  run_ranks(3, [](Communicator& communicator) {
    const std::array<double, 3> parts{1e17, 1, -1e17};
    std::array<double, 2> numbers{parts[static_cast<size_t>(communicator.rank())], 1};
    communicator.sum(numbers);
    EXPECT_EQ(numbers, (std::array<double, 2>{0, 3}));
  });
}

TEST(Communicator, AddsManyFloats) {
  run_ranks(4, [](Communicator& communicator) {
    std::vector<float> numbers(100'000);
    std::iota(numbers.begin(), numbers.end(), static_cast<float>(communicator.rank()));
    communicator.start_sum(numbers).wait();
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<float>(4 * i + 6)) << i;
  });
}

TEST(Communicator, ARankThatThrowsEndsTheOthers) {
  const std::string message = message_of([] {
    run_ranks(4, [](Communicator& communicator) {
      if (communicator.rank() == 2) throw Error("no more");
      communicator.barrier();
    });
  });
  EXPECT_EQ(message, "rank 2: no more");
}

TEST(Communicator, SaysWhatDoesNotFit) {
  const auto alone = single_process();
  std::array<float, 2> two{};
  std::array<float, 3> three{};
  EXPECT_EQ(message_of([&] { alone->start_send<float>(1, two); }), "communicator: send with rank 1, expected 0 to 0");
  EXPECT_EQ(message_of([&] { alone->start_receive<float>(-1, two); }),
            "communicator: receive with rank -1, expected 0 to 0");
  EXPECT_EQ(message_of([&] { alone->all_gather<float>(two, three); }),
            "communicator: all_gather into 12 bytes, expected 8: 8 of each rank");
  EXPECT_EQ(message_of([&] { alone->start_exchange<float>(0, two, 0, three).wait(); }),
            "communicator: a message of 8 bytes came from rank 0, expected 12");
  EXPECT_EQ(message_of([&] { alone->start_receive<float>(0, two, 5).wait(); }),
            "communicator: a process waits for a message of its own that it has not sent");
}

}  // namespace
}  // namespace heed::dist
