// SPDX-License-Identifier: Apache-2.0
#include "heed/train/data_id.h"

#include <cstdio>

#include "heed/base/count.h"

namespace heed::train {

void DataId::add(const text::Pair& pair) {
  add(pair.source, '\t');
  add(pair.target, '\n');
  ++pairs_;
}

void DataId::add(std::string_view text, char end) {
  const auto one = [this](char byte) { hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3u; };
  for (const char byte : text) one(byte);
  one(end);
  bytes_ += std::ssize(text) + 1;
}

std::string DataId::to_string() const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
  return counted(pairs_, "pair") + ", " + counted(bytes_, "byte") + ", hash " + hash;
}

DataId id_of(const text::PairSource& pairs) {
  DataId id;
  pairs.for_each([&](const text::Pair& pair) { id.add(pair); });
  return id;
}

DataId id_of(const text::Corpus& corpus) {
  DataId id;
  for (const text::Pair& pair : corpus.pairs) id.add(pair);
  return id;
}

}  // namespace heed::train
