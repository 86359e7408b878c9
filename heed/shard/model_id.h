// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which model a folder holds: a sum over those of its files that its output depends on, wherever the folder lies.
#include <string>

#include "heed/base/export.h"

namespace heed::shard {

// Reads all of them. Throws Error where there is no model.
HEED_API std::string model_id(const std::string& folder);

}  // namespace heed::shard
