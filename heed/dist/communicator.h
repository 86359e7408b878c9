// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicator: several processes, the ranks, that work on one thing: messages between two of them, and collectives
// that all take part in. A single process is a communicator, too, of one rank.
//
//   dist::Transfer moved = communicator.start_exchange<float>(next, mine, previous, theirs);  // around a ring
//   ...                                                                  // work that needs neither buffer
//   moved.wait();
//
// Every rank calls the same collectives in the same order. One thread at a time calls a communicator.
// Not here: how ranks are started and found (open.h), ranks that are threads of one test (testing.h).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/base/export.h"

namespace heed::dist {

// Messages under way. Their buffers are borrowed until wait() has returned or done() was true.
class HEED_API Transfer {
 public:
  // What a communicator knows of one of them. A state that is destroyed before it is done gives the message up: that is
  // for errors, after which no rank goes on.
  class HEED_API State {
   public:
    virtual ~State();
    virtual void wait() = 0;
    virtual bool done() = 0;  // does not wait
  };

  Transfer() = default;  // of nothing: it is done
  explicit Transfer(std::unique_ptr<State> state) { states_.push_back(std::move(state)); }
  Transfer(Transfer&&) noexcept = default;
  Transfer& operator=(Transfer&&) noexcept = default;

  void add(Transfer other);  // one transfer of both
  // Throws Error where another rank has ended with an error.
  void wait();
  bool done();

 private:
  std::vector<std::unique_ptr<State>> states_;
};

// What may be sent: plain numbers and structs of them.
template <class T>
concept Sendable = std::is_trivially_copyable_v<T>;

class HEED_API Communicator {
 public:
  static constexpr int kMostTag = 16'383;  // what every MPI allows, with room for tags of our own

  Communicator() = default;
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // in [0, size())
  virtual int size() const = 0;
  int next() const { return (rank() + 1) % size(); }  // around the ring
  int previous() const { return (rank() + size() - 1) % size(); }

  // Messages from one rank to another with the same tag arrive in their order: the receive that was started first gets
  // the message that was. A rank may send to itself. A message of
  // another length than its receiver expects is an Error there.
  template <Sendable T>
  Transfer start_send(int to, std::span<const T> data, int tag = 0) {
    return checked_send(to, std::as_bytes(data), tag);
  }
  template <Sendable T>
  Transfer start_receive(int from, std::span<T> data, int tag = 0) {
    return checked_receive(from, std::as_writable_bytes(data), tag);
  }
  // Both at once.
  template <Sendable T>
  Transfer start_exchange(int to, std::span<const T> data, int from, std::span<std::type_identity_t<T>> theirs,
                          int tag = 0) {
    Transfer both = start_receive<T>(from, theirs, tag);
    both.add(start_send<T>(to, data, tag));
    return both;
  }

  // From `root` to all.
  template <Sendable T>
  void broadcast(int root, std::span<T> data) {
    broadcast_bytes(checked_rank("broadcast", root), std::as_writable_bytes(data));
  }
  // A text of any length: what `root` has, on all.
  std::string broadcast(int root, const std::string& text);
  // Everybody's numbers, in the order of the ranks: `all` is size() times as long as `mine`.
  template <Sendable T>
  void all_gather(std::span<const T> mine, std::span<std::type_identity_t<T>> all) {
    checked_all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  }
  std::vector<std::string> all_gather(const std::string& text);  // of any lengths
  // The sum over ranks, in place, added in the order of the ranks: for few numbers, since all ranks get all of them.
  void sum(std::span<double> numbers);
  // The same for many, in any order: only the ranks of one call are sure to get the same bits.
  virtual Transfer start_sum(std::span<float> numbers);
  virtual void barrier();  // returns when all have called it

  // Moves messages on that are under way; called now and then by work that hides them.
  virtual void progress() {}
  // All other ranks end as soon as can be, with `why` where they can tell. A process may end in it.
  virtual void abort(const std::string& why) noexcept = 0;

 protected:
  // Tags above kMostTag are those of collectives.
  virtual Transfer start_send_bytes(int to, std::span<const std::byte>, int tag) = 0;
  virtual Transfer start_receive_bytes(int from, std::span<std::byte>, int tag) = 0;
  // Made of messages, unless something better is known.
  virtual void broadcast_bytes(int root, std::span<std::byte>);
  virtual void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all);

 private:
  int checked_rank(const char* what, int rank) const;
  Transfer checked_send(int to, std::span<const std::byte>, int tag);
  Transfer checked_receive(int from, std::span<std::byte>, int tag);
  void checked_all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
};

// One process on its own.
HEED_API std::unique_ptr<Communicator> single_process();

}  // namespace heed::dist
