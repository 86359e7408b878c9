// SPDX-License-Identifier: Apache-2.0
#include "heed/base/error.h"

#include "heed/base/cancel.h"

namespace heed {

// Defined out of line so that the type's information lives in one library, and catching works across them.
Error::~Error() = default;
Cancelled::~Cancelled() = default;

}  // namespace heed
