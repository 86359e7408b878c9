// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/communicator.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "heed/base/error.h"
#include "heed/dist/messages.h"

namespace heed::dist {
namespace {

constexpr int kBroadcastTag = Communicator::kMostTag + 1, kGatherTag = kBroadcastTag + 1;

// What a process sends to itself waits here.
class Single final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void abort(const std::string& /*why*/) noexcept override {}  // there is nobody else

 protected:
  Transfer start_send_bytes(int /*to*/, std::span<const std::byte> data, int tag) override {
    Line& line = lines_[tag];
    line.waiting[line.sent++] = {data.begin(), data.end()};
    return {};
  }
  Transfer start_receive_bytes(int /*from*/, std::span<std::byte> data, int tag) override {
    return Transfer(std::make_unique<Receive>(lines_[tag], data));
  }

 private:
  struct Line {
    uint64_t sent = 0, wanted = 0;
    std::map<uint64_t, std::vector<std::byte>> waiting;  // by number
  };
  // Gets the message whose turn it was when it began.
  class Receive final : public Transfer::State {
   public:
    Receive(Line& line, std::span<std::byte> data) : line_(line), ticket_(line.wanted++), data_(data) {}
    void wait() override {
      if (!done()) throw Error("communicator: a process waits for a message of its own that it has not sent");
    }
    bool done() override {
      const auto found = line_.waiting.find(ticket_);
      if (done_ || found == line_.waiting.end()) return done_;
      take_message(found->second, data_, 0);
      line_.waiting.erase(found);
      return done_ = true;
    }

   private:
    Line& line_;
    const uint64_t ticket_;
    std::span<std::byte> data_;
    bool done_ = false;
  };
  std::map<int, Line> lines_;  // by tag
};

}  // namespace

void take_message(std::span<const std::byte> message, std::span<std::byte> data, int from) {
  if (message.size() != data.size()) {
    throw Error("communicator: a message of " + std::to_string(message.size()) + " bytes came from rank " +
                std::to_string(from) + ", expected " + std::to_string(data.size()));
  }
  if (!message.empty()) std::memcpy(data.data(), message.data(), message.size());
}

Transfer::State::~State() = default;

void Transfer::add(Transfer other) {
  std::move(other.states_.begin(), other.states_.end(), std::back_inserter(states_));
}

void Transfer::wait() {
  for (const auto& state : states_) state->wait();
  states_.clear();
}

bool Transfer::done() {
  std::erase_if(states_, [](const auto& state) { return state->done(); });
  return states_.empty();
}

Communicator::~Communicator() = default;

int Communicator::checked_rank(const char* what, int rank) const {
  if (rank >= 0 && rank < size()) return rank;
  throw Error(std::string("communicator: ") + what + " with rank " + std::to_string(rank) + ", expected 0 to " +
              std::to_string(size() - 1));
}

Transfer Communicator::checked_send(int to, std::span<const std::byte> data, int tag) {
  checked_rank("send", to);
  if (tag < 0 || tag > kMostTag) throw Error("communicator: send with tag " + std::to_string(tag));
  return start_send_bytes(to, data, tag);
}

Transfer Communicator::checked_receive(int from, std::span<std::byte> data, int tag) {
  checked_rank("receive", from);
  if (tag < 0 || tag > kMostTag) throw Error("communicator: receive with tag " + std::to_string(tag));
  return start_receive_bytes(from, data, tag);
}

void Communicator::checked_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const size_t expected = mine.size() * static_cast<size_t>(size());
  if (all.size() != expected) {
    throw Error("communicator: all_gather into " + std::to_string(all.size()) + " bytes, expected " +
                std::to_string(expected) + ": " + std::to_string(mine.size()) + " of each rank");
  }
  all_gather_bytes(mine, all);
}

void Communicator::broadcast_bytes(int root, std::span<std::byte> data) {
  if (rank() != root) return start_receive_bytes(root, data, kBroadcastTag).wait();
  Transfer sent;
  for (int to = 0; to < size(); ++to) {
    if (to != root) sent.add(start_send_bytes(to, data, kBroadcastTag));
  }
  sent.wait();
}

void Communicator::all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  Transfer moved;
  for (int other = 0; other < size(); ++other) {
    const std::span<std::byte> theirs = all.subspan(mine.size() * static_cast<size_t>(other), mine.size());
    if (other == rank()) {
      std::copy(mine.begin(), mine.end(), theirs.begin());
    } else {
      moved.add(start_receive_bytes(other, theirs, kGatherTag));
      moved.add(start_send_bytes(other, mine, kGatherTag));
    }
  }
  moved.wait();
}

std::string Communicator::broadcast(int root, const std::string& text) {
  uint64_t length = text.size();
  broadcast(root, std::span(&length, 1));
  std::string received = rank() == root ? text : std::string(length, '\0');
  broadcast(root, std::span<char>(received));
  return received;
}

std::vector<std::string> Communicator::all_gather(const std::string& text) {
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(size()));
  for (int root = 0; root < size(); ++root) all.push_back(broadcast(root, text));
  return all;
}

void Communicator::sum(std::span<double> numbers) {
  std::vector<double> all(numbers.size() * static_cast<size_t>(size()));
  all_gather(std::span<const double>(numbers), std::span(all));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = all[i];
    for (size_t at = i + numbers.size(); at < all.size(); at += numbers.size()) numbers[i] += all[at];
  }
}

Transfer Communicator::start_sum(std::span<float> numbers) {
  std::vector<float> all(numbers.size() * static_cast<size_t>(size()));
  all_gather(std::span<const float>(numbers), std::span(all));
  std::copy_n(all.begin(), numbers.size(), numbers.begin());
  for (size_t i = numbers.size(); i < all.size(); ++i) numbers[i % numbers.size()] += all[i];
  return {};
}

void Communicator::barrier() {
  std::vector<char> all(static_cast<size_t>(size()));
  const char here = 0;
  all_gather(std::span(&here, 1), std::span(all));
}

std::unique_ptr<Communicator> single_process() { return std::make_unique<Single>(); }

}  // namespace heed::dist
