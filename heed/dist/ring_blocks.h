// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes round the ring of ranks, a block of rows at a time: keys, which every rank reads, and sums for the same
// keys, to which every rank adds. Transfers run while a rank computes with the block that it has. Internal to
// ring_attention.cc.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "heed/base/workspace.h"
#include "heed/dist/communicator.h"
#include "heed/dist/placement.h"

namespace heed::dist {

// Messages to the next rank, and what they have cost.
class RingLink {
 public:
  RingLink(Communicator& communicator, const Placement& placement) : communicator_(communicator), at_(placement) {}

  int rank() const { return communicator_.rank(); }
  int ranks() const { return communicator_.size(); }
  int before(int rank) const { return (rank + ranks() - 1) % ranks(); }
  int64_t rows(int rank) const { return at_.rows(rank); }
  int64_t most_rows() const;  // that a rank holds

  // To the next rank, and at once from the previous one.
  Transfer start(std::span<const float> mine, std::span<float> theirs, int tag) {
    bytes_sent_ += static_cast<int64_t>(mine.size_bytes());
    return communicator_.start_exchange<float>(communicator_.next(), mine, communicator_.previous(), theirs, tag);
  }
  void wait(Transfer& transfer);
  void progress() { communicator_.progress(); }

  int64_t bytes_sent() const { return bytes_sent_; }
  double seconds_waited() const { return seconds_waited_; }

 private:
  Communicator& communicator_;
  const Placement& at_;
  int64_t bytes_sent_ = 0;
  double seconds_waited_ = 0;
};

inline int64_t RingLink::most_rows() const {
  int64_t most = 0;
  for (int rank = 0; rank < ranks(); ++rank) most = std::max(most, rows(rank));
  return most;
}

inline void RingLink::wait(Transfer& transfer) {
  const auto begin = std::chrono::steady_clock::now();
  transfer.wait();
  seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Floats whose memory is kept for the next pass.
class Floats {
 public:
  explicit Floats(int64_t count)
      : bytes_(sizeof(float) * static_cast<size_t>(count)), memory_(Workspace::cached(bytes_)) {}

  float* data() const { return reinterpret_cast<float*>(memory_.data()); }
  std::span<float> first(int64_t count) const { return {data(), static_cast<size_t>(count)}; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  Workspace memory_;
};

// Keys, `width` floats a row over all heads. A rank begins with its own; at every step its block goes to the next rank.
class RingKeys {
 public:
  RingKeys(RingLink& link, int64_t width)
      : link_(link),
        width_(width),
        here_(link.most_rows() * width),
        coming_(link.ranks() > 1 ? link.most_rows() * width : 0) {}

  float* own() { return here_.data(); }  // to be filled before they go round

  // body(owner, block) for the block of every rank, its own first.
  template <class Body>
  void go_round(Body&& body) {
    int owner = link_.rank();
    for (int step = 0; step < link_.ranks(); ++step) {
      const bool last = step + 1 == link_.ranks();
      const int next_owner = link_.before(owner);
      Transfer next;
      if (!last) next = link_.start(here_.first(floats(owner)), coming_.first(floats(next_owner)), kTag);
      body(owner, here_.data());
      if (last) return;
      link_.wait(next);
      std::swap(here_, coming_);
      owner = next_owner;
    }
  }

  size_t bytes() const { return here_.bytes() + coming_.bytes(); }

 private:
  static constexpr int kTag = 1;

  RingLink& link_;
  int64_t width_;
  Floats here_, coming_;

  int64_t floats(int owner) const { return link_.rows(owner) * width_; }
};

// Sums for the rows of a block, `width` floats a row. They follow the keys one step behind: a rank adds what it has
// computed for a block to what came from the previous rank, and sends it on. After the last step they are with their
// owner. The sum of a row begins at its owner and takes the ranks in the order of the ring.
class RingSums {
 public:
  RingSums(RingLink& link, int64_t width)
      : link_(link),
        width_(width),
        mine_(link.most_rows() * width),
        going_(link.most_rows() * width),
        coming_(link.ranks() > 1 ? link.most_rows() * width : 0) {}

  // Zeros, for what this rank adds to the block of `owner`, until pass_on().
  float* begin(int owner) {
    std::fill_n(mine_.data(), floats(owner), 0.0f);
    return mine_.data();
  }
  void pass_on(int owner) {
    if (owner != link_.rank()) {  // its own block has come from nobody
      link_.wait(moving_);
      for (int64_t i = 0; i < floats(owner); ++i) mine_.data()[i] += coming_.data()[i];
    }
    std::swap(mine_, going_);
    if (link_.ranks() == 1) return;
    moving_ = link_.start(going_.first(floats(owner)), coming_.first(floats(link_.before(owner))), kTag);
  }
  // After the last pass_on(): the sums of this rank's rows.
  float* come_home() {
    link_.wait(moving_);
    return link_.ranks() == 1 ? going_.data() : coming_.data();
  }

  size_t bytes() const { return mine_.bytes() + going_.bytes() + coming_.bytes(); }

 private:
  static constexpr int kTag = 2;

  RingLink& link_;
  int64_t width_;
  Floats mine_, going_, coming_;
  Transfer moving_;

  int64_t floats(int owner) const { return link_.rows(owner) * width_; }
};

}  // namespace heed::dist
