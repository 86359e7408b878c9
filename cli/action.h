// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a command line asks for: parsing sets it, and it is run once the whole line has been understood. And what is
// thrown where the line itself is wrong.
#include <functional>
#include <stdexcept>

namespace heed::cli {

using Action = std::function<void()>;

// A command line that cannot be meant: the whole message, 'heed: ' included, as it may begin with the command. Anything
// else that fails is an Error; they differ in the exit code.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace heed::cli
