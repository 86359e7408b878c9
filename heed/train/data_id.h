// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which sentences a run learns from, whatever file they stand in: their number, their bytes and a hash, in their order.
// A checkpoint keeps it, so that a run does not go on with other ones unnoticed.
#include <cstdint>
#include <string>

#include "heed/base/export.h"
#include "heed/text/corpus.h"

namespace heed::train {

class HEED_API DataId {
 public:
  void add(const text::Pair&);
  int64_t pairs() const { return pairs_; }
  std::string to_string() const;  // "2,000 pairs, 163,840 bytes, hash 09f3b1c2d4e5f607"
  bool operator==(const DataId&) const = default;

 private:
  void add(std::string_view text, char end);
  int64_t pairs_ = 0, bytes_ = 0;
  uint64_t hash_ = 0xCBF29CE484222325u;  // FNV-1a of source, tab, target and newline of each
};

HEED_API DataId id_of(const text::PairSource&);
HEED_API DataId id_of(const text::Corpus&);

}  // namespace heed::train
