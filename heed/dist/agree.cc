// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/agree.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed::dist {
namespace {

// Names and values by turns, each with an end that no text has within.
std::string packed(const std::vector<Fact>& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + '\0' + fact.value + '\0';
  return text;
}

std::vector<Fact> unpacked(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<Fact> facts;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) facts.push_back({parts[i], parts[i + 1]});
  return facts;
}

std::string value_of(const std::vector<Fact>& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? "not there" : "'" + found->value + "'";
}

void compare(const std::vector<Fact>& first, const std::vector<Fact>& other, size_t rank) {
  for (const auto* names : {&first, &other}) {  // a heed of another version may know other ones
    for (const Fact& fact : *names) {
      const std::string a = value_of(first, fact.name), b = value_of(other, fact.name);
      if (a == b) continue;
      throw Error("ranks differ: " + fact.name + " is " + a + " on rank 0 and " + b + " on rank " +
                  std::to_string(rank));
    }
  }
}

}  // namespace

void agree(Communicator& communicator, const std::vector<Fact>& facts) {
  const std::string version = packed({{"the version of heed", HEED_VERSION}});
  const std::vector<std::string> all = communicator.all_gather(version + packed(facts));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) compare(unpacked(all[0]), unpacked(all[rank]), rank);
  }
}

}  // namespace heed::dist
