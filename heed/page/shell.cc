// SPDX-License-Identifier: Apache-2.0
#include "heed/page/shell.h"

#include "heed/base/error.h"

namespace heed::page {
namespace {

constexpr std::string_view kPlace = "@HEED_DATA@";  // once in each shell

}  // namespace

std::string filled(std::string_view shell, std::string_view json) {
  const size_t place = shell.find(kPlace);
  if (place == shell.npos) throw Error("page: the shell has no place for data, expected " + std::string(kPlace));
  std::string page(shell.substr(0, place));
  for (size_t begin = 0; begin < json.size();) {
    const size_t end = json.find('<', begin);
    page += json.substr(begin, end - begin);
    if (end == json.npos) break;
    page += "\\u003c";
    begin = end + 1;
  }
  page += shell.substr(place + kPlace.size());
  return page;
}

}  // namespace heed::page
