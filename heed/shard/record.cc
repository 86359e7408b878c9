// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/record.h"

#include <limits>

#include "heed/shard/cut.h"
#include "heed/shard/fields.h"

namespace heed::shard {

std::string to_json(const Record& record) {
  Json json{{"run", record.run},         {"shard", record.shard},
            {"part", record.part},       {"lines", record.lines},
            {"bytes", record.bytes},     {"sha256", record.sha256},
            {"skipped", record.skipped}, {"first_error", record.first_error}};
  return dumped(json, -1);
}

Record record_from_json(std::string_view text, const std::string& name) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const Json json = parsed(text, name);
  const Fields fields(json, name);
  Record record;
  record.run = fields.text("run");
  record.shard = fields.number("shard", 1, kMostShards);
  record.part = fields.number("part", 0, kAny);
  record.lines = fields.number("lines", 0, kAny);
  record.bytes = fields.number("bytes", 0, kAny);
  record.sha256 = fields.text("sha256");
  record.skipped = fields.number("skipped", 0, record.lines);
  record.first_error = fields.text("first_error");
  return record;
}

}  // namespace heed::shard
