// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one exception heed throws: an argument that cannot be worked with. Its text names the argument, what came and
// what was expected, and is written for the user. Kernels never throw: plans and ops check before anything runs.
#include <stdexcept>
#include <string>

#include "heed/base/export.h"

namespace heed {

class HEED_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what) : std::runtime_error(what) {}
  ~Error() override;
};

}  // namespace heed
