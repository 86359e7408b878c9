// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "heed/base/rng.h"

namespace heed::fuzz {
namespace {

constexpr size_t kLongest = 4096;

constexpr std::string_view kTokens[] = {
    "{",     "}",       "[",     "]",        "(",        ")",           "\"",
    "'",     ":",       ",",     "null",     "true",     "False",       "\\u0000",
    "\\",    "\n",      " ",     "\xff",     "\"a\":",   "\"\"",        "{}",
    "[]",    "()",      "shape", "dtype",    "F32",      "BOOL",        "data_offsets",
    "'<f4'", "\"F16\"", "[0,0]", "[[[[[[[[", "{\"a\":{", "__metadata__"};
constexpr std::string_view kTextTokens[] = {"\t", "\r\n", "\xEF\xBB\xBF", "\xE2\x96\x81", "<unk>", "yes\n", "pieces "};
constexpr std::string_view kNumbers[] = {"0",          "1",         "-1",         "8",
                                         "64",         "255",       "4294967296", "9223372036854775807",
                                         "1e999",      "0.5",       "-0.0",       "9223372036854775808",
                                         "2147483648", "100000001", "1e300",      "18446744073709551616"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, Rng& rng)
      : seeds_(seeds), rng_(rng), text_(pick<std::string>(seeds)) {}

  std::string run() {
    for (uint64_t left = 1 + rng_.below(6); left > 0; --left) change();
    if (text_.size() > kLongest) text_.resize(kLongest);
    return text_;
  }

 private:
  template <class T>
  const T& pick(std::span<const T> list) {
    return list[rng_.below(list.size())];
  }
  size_t place() { return rng_.below(text_.size() + 1); }
  size_t count(size_t from) { return std::min<size_t>(1 + rng_.below(rng_.below(2) ? 4 : 64), text_.size() - from); }

  void change() {
    const size_t at = place();
    switch (rng_.below(8)) {
      case 0:
        if (at < text_.size()) text_[at] = static_cast<char>(text_[at] ^ 1 << rng_.below(8));
        break;
      case 1:
        if (at < text_.size()) text_[at] = static_cast<char>(rng_.below(256));
        break;
      case 2:
        text_.erase(at, count(at));
        break;
      case 3:
        text_.insert(place(), text_.substr(at, count(at)));
        break;
      case 4:
        text_.insert(at, rng_.below(4) ? pick<std::string_view>(kTokens) : pick<std::string_view>(kTextTokens));
        break;
      case 5:
        splice(at);
        break;
      default:
        replace_number(at);
    }
  }
  // A piece of any seed, over what is there or in between.
  void splice(size_t at) {
    const std::string& other = pick<std::string>(seeds_);
    const size_t from = rng_.below(other.size() + 1);
    const std::string piece = other.substr(from, 1 + rng_.below(64));
    text_.replace(at, rng_.below(2) ? std::min(piece.size(), text_.size() - at) : 0, piece);
  }
  // The next digits from here on become another number, at the edge of a type or near the old one.
  void replace_number(size_t at) {
    const auto begin = std::find_if(text_.begin() + static_cast<std::ptrdiff_t>(at), text_.end(), is_digit);
    const auto end = std::find_if_not(begin, text_.end(), is_digit);
    if (begin == end) return;
    const bool near = end - begin < 10 && rng_.below(2);
    const std::string number =
        near ? std::to_string(std::stoll(std::string(begin, end)) + static_cast<int64_t>(rng_.below(9)) - 4)
             : std::string(pick<std::string_view>(kNumbers));
    text_.replace(begin, end, number);
  }

  const std::vector<std::string>& seeds_;
  Rng& rng_;
  std::string text_;
};

}  // namespace

std::string mutated(const std::vector<std::string>& seeds, uint64_t seed, uint64_t run) {
  Rng rng(seed, run);
  return Mutator(seeds, rng).run();
}

}  // namespace heed::fuzz
