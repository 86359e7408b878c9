// SPDX-License-Identifier: Apache-2.0
#pragma once
// What communicators share whose ranks live in one process.
#include <cstddef>
#include <span>

namespace heed::dist {

// Copies a message into its receiver's buffer. Throws Error where the lengths differ.
void take_message(std::span<const std::byte> message, std::span<std::byte> data, int from);

}  // namespace heed::dist
