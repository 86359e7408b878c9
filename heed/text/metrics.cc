// SPDX-License-Identifier: Apache-2.0
#include "heed/text/metrics.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "heed/base/error.h"
#include "heed/text/metric_counts.h"
#include "heed/text/utf8.h"

namespace heed::text {
namespace {

std::string squeezed(const std::string& text) {
  check_utf8(text, "text");
  return squeeze_spaces(text);
}

// The number that text begins with, which it loses; -1 if it does not.
int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-') return -1;
  text.remove_prefix(end - text.data());
  return number;
}

AlignmentLink parse_link(std::string_view text, size_t count) {
  std::string_view rest = text;
  AlignmentLink link{.source = take_number(rest)};
  const char mark = rest.empty() ? '\0' : rest.front();
  if (!rest.empty()) rest.remove_prefix(1);
  link.target = take_number(rest);
  link.sure = mark == '-';
  if (link.source < 0 || link.target < 0 || (mark != '-' && mark != 'p') || !rest.empty()) {
    throw Error("alignment: link " + std::to_string(count) + " is no pair of numbers such as 0-2 or 0p2");
  }
  return link;
}

// Links by their words, each once; sure if any that says so is.
std::map<std::pair<int64_t, int64_t>, bool> unique(const Alignment& alignment) {
  std::map<std::pair<int64_t, int64_t>, bool> links;
  for (const AlignmentLink& link : alignment) links[{link.source, link.target}] |= link.sure;
  return links;
}

}  // namespace

double exact_match(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  check_counts("exact match", hypotheses.size(), references.size());
  int64_t same = 0;
  for (size_t i = 0; i < references.size(); ++i) same += squeezed(hypotheses[i]) == squeezed(references[i]);
  return static_cast<double>(same) / static_cast<double>(references.size());
}

Alignment parse_alignment(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  Alignment alignment;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.empty()) return alignment;
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    alignment.push_back(parse_link(text.substr(0, end), alignment.size() + 1));
    text.remove_prefix(end);
  }
}

std::string to_string(const Alignment& alignment) {
  std::string text;
  for (const AlignmentLink& link : alignment) {
    if (!text.empty()) text += ' ';
    text += std::to_string(link.source);
    text += link.sure ? '-' : 'p';
    text += std::to_string(link.target);
  }
  return text;
}

double alignment_error_rate(std::span<const Alignment> found, std::span<const Alignment> references) {
  check_counts("alignment error rate", found.size(), references.size());
  int64_t links = 0, sure = 0, right = 0;  // |A|, |S|, |A and S| + |A and P|
  for (size_t i = 0; i < references.size(); ++i) {
    const auto reference = unique(references[i]);
    for (const auto& [words, is_sure] : reference) sure += is_sure;
    for (const auto& [words, unused] : unique(found[i])) {
      ++links;
      const auto match = reference.find(words);
      if (match != reference.end()) right += 1 + match->second;
    }
  }
  return links + sure == 0 ? 0 : 1 - static_cast<double>(right) / static_cast<double>(links + sure);
}

}  // namespace heed::text
