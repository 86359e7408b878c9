// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text from a file, as an error message shows it: in quotes, on one line, and short.
#include <string>
#include <string_view>

#include "heed/base/export.h"

namespace heed::io {

// 'name', with everything but printable ASCII as \xNN, cut with dots after 80 bytes.
HEED_API std::string quote(std::string_view text);

}  // namespace heed::io
