// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces as a page: one HTML file that opens from the file system, shows them, and loads nothing (docs/page.md).
// Not here: how it looks. That is web/, whose built form, web/dist/page.html, the library carries.
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/trace/trace.h"

namespace heed::trace {

// Several traces can be compared on the page. Throws Error where there is none.
HEED_API std::string to_page(std::span<const Trace>);
HEED_API void save_page(const std::string& path, std::span<const Trace>);  // whole or not at all

}  // namespace heed::trace
