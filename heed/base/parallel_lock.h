// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exclusive: what tasks that run side by side do one at a time.
//
//   Exclusive one_at_a_time;
//   parallel.for_each(n, [&](int64_t i, int) { one_at_a_time([&] { results.push_back(i); }); });
#include <mutex>
#include <utility>

namespace heed {

class Exclusive {
 public:
  template <class Body>
  decltype(auto) operator()(Body&& body) {
    const std::lock_guard<std::mutex> held(mutex_);
    return std::forward<Body>(body)();
  }

 private:
  std::mutex mutex_;
};

}  // namespace heed
