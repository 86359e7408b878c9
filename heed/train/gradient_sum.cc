// SPDX-License-Identifier: Apache-2.0
#include "heed/train/gradient_sum.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "heed/base/error.h"
#include "heed/kernels/elementwise.h"

namespace heed::train {
namespace {

// Each bucket has two tags of its own: ranks may send them in different orders.
constexpr int64_t kMostBuckets = dist::Communicator::kMostTag / 2;

size_t length(const kernels::ElementRange& range) { return static_cast<size_t>(range.end - range.begin); }

std::span<float> part(const Tensor& numbers, const kernels::ElementRange& range) {
  return numbers.span<float>().subspan(static_cast<size_t>(range.begin), length(range));
}

}  // namespace

GradientSum::GradientSum(const ParameterStore& parameters, const GradientSumOptions& options,
                         dist::Communicator& communicator, Parallel& parallel)
    : parameters_(parameters),
      gradients_(parameters.gradients()),
      options_(options),
      communicator_(communicator),
      parallel_(parallel),
      mine_(share_of_rank(options.micro_batches, communicator.rank(), communicator.size())) {
  if (options.micro_batches < communicator.size()) {
    throw Error("train: accumulate is " + std::to_string(options.micro_batches) + " with " +
                std::to_string(communicator.size()) + " ranks, expected a batch for each of them, or more");
  }
  own_roots_ = roots_of(options.micro_batches, mine_);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const size_t count =
        roots_of(options.micro_batches, share_of_rank(options.micro_batches, rank, communicator.size())).size();
    for (size_t place = 0; place < count; ++place) roots_.push_back({rank, place});
  }
  make_buckets(parameters, std::max<int64_t>(options.bucket, gradients_.size() / kMostBuckets + 1));
}

void GradientSum::make_buckets(const ParameterStore& parameters, int64_t size) {
  for (int64_t begin = 0; begin < gradients_.size(); begin += size) {
    const auto tag = static_cast<int>(2 * buckets_.size());
    buckets_.push_back({.range = {begin, std::min(begin + size, gradients_.size())}, .tag = tag});
  }
  for (const ParameterStore::Entry& entry : parameters.entries()) {
    std::vector<size_t>& mine = buckets_of_entry_.emplace_back();
    if (entry.value.size() == 0) continue;
    for (int64_t n = entry.offset / size; n <= (entry.offset + entry.value.size() - 1) / size; ++n) {
      mine.push_back(static_cast<size_t>(n));
      ++buckets_[static_cast<size_t>(n)].entries;
    }
  }
  clear();
}

void GradientSum::add(std::span<const float> from, std::span<float> to) {
  const auto row = [](auto numbers) {
    using T = typename decltype(numbers)::element_type;
    return View<T, 2>(numbers.data(), {1, std::ssize(numbers)});
  };
  kernels::add_forward(row(std::span<const float>(to)), row(from), row(to), parallel_);
}

Tensor GradientSum::spare() {
  if (spare_.empty()) return Tensor::like(gradients_);
  Tensor tensor = std::move(spare_.back());
  spare_.pop_back();
  return tensor;
}

void GradientSum::computed(int64_t m) {
  if (m + 1 == mine_.end) return prepare_last();
  if (options_.order == SumOrder::any) return;  // the next one's are added to them
  // As a carry goes through a binary number: where the right half of a node is there, the node is.
  SumNode node{m, m + 1};
  while (!partials_.empty()) {
    const SumNode parent = parent_of(node, {0, options_.micro_batches});
    if (parent.begin != partials_.back().node.begin || parent.end > mine_.end || parent.middle() != node.begin) break;
    add(partials_.back().sum.span<const float>(), gradients_.span<float>());
    spare_.push_back(std::move(partials_.back().sum));
    partials_.pop_back();
    node = parent;
  }
  const Tensor sum = spare();
  sum.copy_from(gradients_);
  gradients_.fill(0);
  partials_.push_back({node, sum});
}

// What the last micro-batch's gradients are added to is known before they are there: they may come in any order.
void GradientSum::prepare_last() {
  if (std::exchange(last_prepared_, true)) return;
  while (options_.order == SumOrder::tree && partials_.size() >= own_roots_.size()) {
    to_merge_.push_back(std::move(partials_.back().sum));
    partials_.pop_back();
  }
}

void GradientSum::merge(const kernels::ElementRange& range) {
  for (const Tensor& sum : to_merge_) add(part(sum, range), part(gradients_, range));
}

void GradientSum::whole(const Tensor& gradient) {
  const auto& entries = parameters_.entries();
  const auto offset = gradient.span<float>().data() - gradients_.span<float>().data();
  const auto found = std::ranges::lower_bound(entries, offset, {}, &ParameterStore::Entry::offset);
  if (found != entries.end() && found->offset == offset) entry_is_whole(static_cast<size_t>(found - entries.begin()));
}

void GradientSum::entry_is_whole(size_t entry) {
  prepare_last();
  for (const size_t n : buckets_of_entry_[entry]) {
    if (buckets_[n].left > 0) --buckets_[n].left;
  }
  while (to_start_ > 0 && buckets_[to_start_ - 1].left == 0) start(buckets_[--to_start_]);
}

void GradientSum::start(Bucket& bucket) {
  merge(bucket.range);
  if (communicator_.size() == 1) {
    bucket.state = Bucket::State::done;
  } else if (options_.order == SumOrder::any) {
    bucket.transfer = communicator_.start_sum(part(gradients_, bucket.range));
    bucket.state = Bucket::State::spreading;
  } else {
    start_adding(bucket);
  }
}

// The part of a bucket that a rank adds up.
kernels::ElementRange GradientSum::part_of(const Bucket& bucket, int rank) const {
  const int64_t all = bucket.range.end - bucket.range.begin, ranks = communicator_.size();
  return {bucket.range.begin + all * rank / ranks, bucket.range.begin + all * (rank + 1) / ranks};
}

// The last root is in the gradients themselves.
std::span<float> GradientSum::own_root(size_t place, const kernels::ElementRange& range) {
  return part(place + 1 == own_roots_.size() ? gradients_ : partials_[place].sum, range);
}

void GradientSum::start_adding(Bucket& bucket) {
  const int me = communicator_.rank();
  const size_t mine = length(part_of(bucket, me));
  bucket.state = Bucket::State::adding;
  bucket.received.resize(roots_.size());
  for (size_t i = 0; i < roots_.size(); ++i) {
    if (roots_[i].rank == me) continue;
    bucket.received[i].resize(mine);
    bucket.transfer.add(communicator_.start_receive<float>(roots_[i].rank, bucket.received[i], bucket.tag));
  }
  for (int other = 0; other < communicator_.size(); ++other) {
    if (other == me) continue;
    for (size_t place = 0; place < own_roots_.size(); ++place) {
      const std::span<const float> numbers = own_root(place, part_of(bucket, other));
      bucket.transfer.add(communicator_.start_send<float>(other, numbers, bucket.tag));
    }
  }
}

// Adds up this rank's part of a node, into the memory of its leftmost root. `root` counts them from left to right.
std::span<float> GradientSum::sum_of(const SumNode& node, Bucket& bucket, size_t& root) {
  const Root& first = roots_[root];
  const SumNode share = share_of_rank(options_.micro_batches, first.rank, communicator_.size());
  if (share.begin <= node.begin && node.end <= share.end) {
    const size_t i = root++;
    if (first.rank != communicator_.rank()) return bucket.received[i];
    return own_root(first.place, part_of(bucket, first.rank));
  }
  const std::span<float> left = sum_of(node.left(), bucket, root);
  const std::span<float> right = sum_of(node.right(), bucket, root);
  add(right, left);
  return left;
}

void GradientSum::add_parts(Bucket& bucket) {
  size_t root = 0;
  const std::span<float> sum = sum_of({0, options_.micro_batches}, bucket, root);
  const std::span<float> mine = part(gradients_, part_of(bucket, communicator_.rank()));
  if (!sum.empty() && sum.data() != mine.data()) std::memcpy(mine.data(), sum.data(), sum.size_bytes());
}

void GradientSum::start_spreading(Bucket& bucket) {
  bucket.state = Bucket::State::spreading;
  const int me = communicator_.rank();
  for (int other = 0; other < communicator_.size(); ++other) {
    if (other == me) continue;
    const std::span<float> theirs = part(gradients_, part_of(bucket, other));
    bucket.transfer.add(communicator_.start_receive<float>(other, theirs, bucket.tag + 1));
  }
  for (int other = 0; other < communicator_.size(); ++other) {
    const std::span<const float> mine = part(gradients_, part_of(bucket, me));
    if (other != me) bucket.transfer.add(communicator_.start_send<float>(other, mine, bucket.tag + 1));
  }
}

// Whether it is done.
bool GradientSum::advance(Bucket& bucket, bool wait) {
  while (bucket.state == Bucket::State::adding || bucket.state == Bucket::State::spreading) {
    if (wait) bucket.transfer.wait();
    if (!bucket.transfer.done()) return false;
    if (bucket.state == Bucket::State::spreading) {
      bucket.state = Bucket::State::done;
    } else {
      add_parts(bucket);
      start_spreading(bucket);
    }
  }
  return bucket.state == Bucket::State::done;
}

void GradientSum::progress() {
  if (to_start_ == buckets_.size()) return;
  communicator_.progress();
  for (size_t n = to_start_; n < buckets_.size(); ++n) advance(buckets_[n], false);
}

void GradientSum::finish() {
  const auto begin = std::chrono::steady_clock::now();
  while (to_start_ > 0) start(buckets_[--to_start_]);
  // Not one after the other: another rank may wait for a later bucket before it sends of this one.
  for (Bucket& bucket : buckets_) {
    if (bucket.state != Bucket::State::adding) continue;
    bucket.transfer.wait();
    add_parts(bucket);
    start_spreading(bucket);
  }
  for (Bucket& bucket : buckets_) advance(bucket, true);
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  clear();
}

void GradientSum::clear() {
  for (Bucket& bucket : buckets_) {
    bucket.state = Bucket::State::local, bucket.left = bucket.entries, bucket.transfer = {};
  }
  for (Partial& partial : partials_) spare_.push_back(std::move(partial.sum));
  for (Tensor& sum : to_merge_) spare_.push_back(std::move(sum));
  partials_.clear(), to_merge_.clear();
  last_prepared_ = false;
  to_start_ = buckets_.size();
}

}  // namespace heed::train
