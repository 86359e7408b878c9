// SPDX-License-Identifier: Apache-2.0
#include "heed/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "heed/text/metric_counts.h"
#include "heed/text/utf8.h"

namespace heed::text {
namespace {

constexpr size_t kOrders = 4;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
// What always stands apart: ASCII punctuation but for ' . , -
bool stands_apart(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

// Wherever two bytes in a row fit, `spaced` writes them; a byte belongs to one pair at most. Bytes will do: all that is
// looked for is ASCII.
template <class Fits, class Spaced>
std::string rewrite_pairs(const std::string& text, Fits fits, Spaced spaced) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && fits(text[i], text[i + 1])) {
      result += spaced(text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string spaced_13a(std::string text) {
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string apart = " ";
  for (const char c : text) apart += stands_apart(c) ? std::string{' ', c, ' '} : std::string{c};
  apart += ' ';
  apart = rewrite_pairs(
      apart, [](char a, char b) { return !is_digit(a) && is_stop(b); },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
  apart = rewrite_pairs(
      apart, [](char a, char b) { return is_stop(a) && !is_digit(b); },
      [](char a, char b) {
        return std::string{' ', a, ' ', b};
      });
  return rewrite_pairs(
      apart, [](char a, char b) { return is_digit(a) && b == '-'; },
      [](char a, char b) {
        return std::string{a, ' ', b, ' '};
      });
}

// Without the space at its end.
std::string_view right_trimmed(std::string_view text) {
  size_t end = 0;
  for (size_t position = 0; position < text.size();) {
    if (!is_space(next_character(text, position))) end = position;
  }
  return text.substr(0, end);
}

// Words as numbers, the same in both sentences of a pair.
class Numbering {
 public:
  std::u32string operator()(const std::vector<std::string>& words) {
    std::u32string numbers;
    for (const std::string& word : words) {
      numbers += numbers_.emplace(word, static_cast<char32_t>(numbers_.size())).first->second;
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, char32_t> numbers_;
};

struct Counts {
  std::array<int64_t, kOrders> shared{}, all{};
};

// 100 shared / all; the k-th order without any shared counts as 1 / 2^k of one.
std::array<double, kOrders> precisions_of(const Counts& counts) {
  std::array<double, kOrders> result{};
  double smoothing = 1;
  for (size_t n = 0; n < kOrders && counts.all[n] > 0; ++n) {
    const auto all = static_cast<double>(counts.all[n]);
    if (counts.shared[n] == 0) smoothing *= 2;
    result[n] = counts.shared[n] == 0 ? 100 / (smoothing * all) : 100 * static_cast<double>(counts.shared[n]) / all;
  }
  return result;
}

void finish(Bleu& bleu, const Counts& counts) {
  const auto hypothesis = static_cast<double>(bleu.hypothesis_length),
             reference = static_cast<double>(bleu.reference_length);
  if (hypothesis < reference) bleu.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  if (counts.shared[0] == 0) return;  // then no longer run is shared either
  bleu.precisions = precisions_of(counts);
  if (bleu.precisions.back() == 0) return;
  double logs = 0;
  for (const double precision : bleu.precisions) logs += std::log(precision);
  bleu.score = bleu.brevity_penalty * std::exp(logs / kOrders);
}

}  // namespace

std::vector<std::string> words_13a(std::string_view text) {
  check_utf8(text, "text");
  const std::string spaced = squeeze_spaces(spaced_13a(std::string(right_trimmed(text))));
  std::vector<std::string> words;
  for (size_t begin = 0; begin < spaced.size();) {
    const size_t end = std::min(spaced.find(' ', begin), spaced.size());
    words.push_back(spaced.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Bleu bleu(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  check_counts("bleu", hypotheses.size(), references.size());
  Bleu result;
  Counts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    Numbering number;
    const std::u32string hypothesis = number(words_13a(hypotheses[i])), reference = number(words_13a(references[i]));
    result.hypothesis_length += static_cast<int64_t>(hypothesis.size());
    result.reference_length += static_cast<int64_t>(reference.size());
    for (size_t n = 0; n < kOrders; ++n) {
      counts.shared[n] += shared_ngrams(hypothesis, reference, n + 1);
      counts.all[n] += ngram_count(hypothesis, n + 1);
    }
  }
  finish(result, counts);
  return result;
}

}  // namespace heed::text
