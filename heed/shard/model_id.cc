// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/model_id.h"

#include <filesystem>

#include "heed/base/file.h"
#include "heed/folder/model_folder.h"
#include "heed/shard/sha256.h"

namespace heed::shard {

std::string model_id(const std::string& folder) {
  const folder::Layout layout(folder);
  Sha256 sum;
  const auto add = [&](const char* name, const std::string& path) {
    const MappedFile file(path);
    sum.add(name);
    sum.add(" " + std::to_string(file.bytes().size()) + "\n");
    sum.add(file.bytes());
  };
  add("config", layout.config());
  add("parameters", layout.parameters());
  for (const auto& [name, path] :
       {std::pair("tokenizer", layout.tokenizer()), std::pair("target_tokenizer", layout.target_tokenizer()),
        std::pair("tags", layout.tags()), std::pair("shortlist", layout.shortlist())}) {
    if (std::filesystem::exists(path)) add(name, path);
  }
  return sum.hex();
}

}  // namespace heed::shard
