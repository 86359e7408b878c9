// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trace as JSON text, and back. The same trace gives the same text. A reader takes nothing on trust: sizes, shapes,
// references, base64 and check sums are verified, and an error says what came and what was expected. Another
// major version throws, and fields that it does not know are ignored. docs/trace.schema.json is the same as a JSON
// schema.
#include <string>
#include <string_view>

#include "heed/base/export.h"
#include "heed/trace/trace.h"

namespace heed::trace {

inline constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 31;

HEED_API std::string to_json(const Trace&);
// `name` is what messages call the text.
HEED_API Trace from_json(std::string_view text, const std::string& name);

HEED_API void save(const std::string& path, const Trace&);  // whole or not at all
HEED_API Trace load(const std::string& path);

}  // namespace heed::trace
