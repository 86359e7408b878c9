// SPDX-License-Identifier: Apache-2.0
#pragma once
// 1, 2, 3 ...: another number at every call, on whatever thread. It tells things apart that look alike.
#include <cstdint>

#include "heed/base/export.h"

namespace heed {

HEED_API uint32_t unique_number() noexcept;

}  // namespace heed
