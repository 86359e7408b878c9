// SPDX-License-Identifier: Apache-2.0
#pragma once
// Watching a backward pass: when the gradient of a parameter is whole, while those of earlier layers are still
// computed. What sends gradients to other processes begins with it.
//
//   const WatchBackward watching(tape, watcher);
//   tape.backward(loss, context);   // tells the watcher
#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed {

class HEED_API BackwardWatcher {
 public:
  virtual ~BackwardWatcher();
  // Nothing is added any more to this gradient, which a leaf was given. Each comes once, however many leaves share it;
  // those of parameters that no op has used do not come. A parameter that is also used within checkpoint() may come too
  // early: the tape does not know of that use.
  virtual void whole(const Tensor& gradient) = 0;
  virtual void op_done() {}  // after the backward of each op
};

// While it lives, passes of this tape that this thread begins are watched. One at a time.
class HEED_API WatchBackward {
 public:
  WatchBackward(const Tape&, BackwardWatcher&);
  ~WatchBackward();
  WatchBackward(const WatchBackward&) = delete;
  WatchBackward& operator=(const WatchBackward&) = delete;
};

}  // namespace heed
