// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/testing.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "heed/base/error.h"
#include "heed/dist/messages.h"

namespace heed::dist::testing {
namespace {

// What all ranks share: messages that were sent, and not received yet.
class Mail {
 public:
  using Key = std::tuple<int, int, int>;  // from, to, tag

  void post(const Key& key, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[key];
    line.waiting[line.sent++] = {data.begin(), data.end()};
    came_.notify_all();
  }
  // The number of the message that a receiver gets: they are given out as receives begin, whichever is looked at first.
  uint64_t ticket(const Key& key) {
    const std::lock_guard lock(mutex_);
    return lines_[key].wanted++;
  }
  // Whether it came; waits for it where that is wanted.
  bool take(const Key& key, uint64_t ticket, std::span<std::byte> data, bool wait) {
    std::unique_lock lock(mutex_);
    auto& messages = lines_[key].waiting;
    if (wait) came_.wait(lock, [&] { return messages.contains(ticket) || !why_.empty(); });
    if (const auto found = messages.find(ticket); found != messages.end()) {
      take_message(found->second, data, std::get<0>(key));
      messages.erase(found);
      return true;
    }
    if (!why_.empty()) throw Error(why_);
    return false;
  }
  void abort(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
    came_.notify_all();
  }
  std::string why() const { return why_; }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  struct Line {
    uint64_t sent = 0, wanted = 0;
    std::map<uint64_t, std::vector<std::byte>> waiting;  // by number
  };
  std::map<Key, Line> lines_;
  std::string why_;  // the ranks end
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Mail& mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void abort(const std::string& why) noexcept override { mail_.abort("rank " + std::to_string(rank_) + ": " + why); }

 protected:
  Transfer start_send_bytes(int to, std::span<const std::byte> data, int tag) override {
    mail_.post({rank_, to, tag}, data);
    return {};
  }
  Transfer start_receive_bytes(int from, std::span<std::byte> data, int tag) override {
    return Transfer(std::make_unique<Receive>(mail_, Mail::Key{from, rank_, tag}, data));
  }

 private:
  class Receive final : public Transfer::State {
   public:
    Receive(Mail& mail, const Mail::Key& key, std::span<std::byte> data)
        : mail_(mail), key_(key), ticket_(mail.ticket(key)), data_(data) {}
    void wait() override {
      if (!done_) done_ = mail_.take(key_, ticket_, data_, true);
    }
    bool done() override { return done_ = done_ || mail_.take(key_, ticket_, data_, false); }

   private:
    Mail& mail_;
    const Mail::Key key_;
    const uint64_t ticket_;
    std::span<std::byte> data_;
    bool done_ = false;
  };
  Mail& mail_;
  const int rank_, size_;
};

}  // namespace

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  Mail mail;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank communicator(mail, rank, ranks);
      try {
        body(communicator);
      } catch (const std::exception& error) {
        communicator.abort(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!mail.why().empty()) throw Error(mail.why());
}

}  // namespace heed::dist::testing
