// SPDX-License-Identifier: Apache-2.0
#pragma once
// What SIGINT, SIGTERM and SIGHUP do to a command that has work to save: at first they end it, as nothing has been
// written; once can_save() was called the first one asks the command to stop, and a second one ends it at once. The
// exit code is 128 and the signal's number, as shells have it. A signal that was ignored from the start, as by nohup,
// stays so.
//
// A reader that is gone and a limit on the size of files are errors of a write then, not signals that kill.
#include "heed/base/cancel.h"

namespace heed::cli {

// Thrown by a command that has stopped for a signal, and saved.
struct Interrupted {
  int signal;
};

// One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // as it was before
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  void can_save();
  // As if the signal had come. Throws Interrupted where nothing can be saved yet.
  void request(int signal);
  const Cancel* cancel() const;
  int signal() const;  // that came first; 0: none
};

}  // namespace heed::cli
