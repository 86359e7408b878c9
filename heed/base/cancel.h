// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cancel: how one thread, or a signal handler, ends a long call of another. The call looks at it between steps and
// throws Cancelled; what was finished by then has been delivered.
//
//   Cancel cancel;
//   translator.translate(lines, {.call = {.cancel = &cancel}}, print);   // elsewhere: cancel.request();
#include <atomic>

#include "heed/base/error.h"
#include "heed/base/export.h"

namespace heed {

class Cancel {
 public:
  // Safe in a signal handler.
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

class HEED_API Cancelled : public Error {
 public:
  Cancelled() : Error("cancelled") {}
  ~Cancelled() override;
};

// Throws Cancelled where that was requested; null: never.
inline void check_cancel(const Cancel* cancel) {
  if (cancel && cancel->requested()) throw Cancelled();
}

}  // namespace heed
