// SPDX-License-Identifier: Apache-2.0
#pragma once
// 'Did you mean': the known name that a mistyped one is nearest to.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heed/base/export.h"

namespace heed::io {

// Nothing if none is near: more than a third of the letters would have to change.
HEED_API std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known);

}  // namespace heed::io
