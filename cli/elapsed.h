// SPDX-License-Identifier: Apache-2.0
#pragma once
// "learning the tokenizer: 12 s" on standard error while a call runs that cannot be asked how far it has come: every
// second in one line of a terminal; elsewhere in lines of their own, after two seconds and then every ten.
#include <string>

namespace heed::cli {

// One at a time. By SIGALRM, so that no thread is needed beside a call that is not ours.
class Elapsed {
 public:
  Elapsed(std::string what, bool terminal);
  ~Elapsed();  // a terminal's line is empty again
  Elapsed(const Elapsed&) = delete;
  Elapsed& operator=(const Elapsed&) = delete;

 private:
  const std::string what_;
  const bool terminal_;
};

}  // namespace heed::cli
