// SPDX-License-Identifier: Apache-2.0
#include "cli/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace heed::cli {
namespace {

constexpr int kBar = 40;  // characters of a weight of 1

struct Shade {
  double from;
  const char* mark;
};
constexpr std::array<Shade, 5> kShades = {{{0.75, "█"}, {0.5, "▓"}, {0.25, "▒"}, {0.05, "░"}, {-1, " "}}};

const char* shade_of(double weight) {
  return std::find_if(kShades.begin(), kShades.end(), [&](const Shade& s) { return weight >= s.from; })->mark;
}

}  // namespace

size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width) {
  const size_t taken = columns(text);
  return text + std::string(taken < width ? width - taken : 0, ' ');
}

std::vector<size_t> order_by_size(std::span<const double> values, size_t top) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto larger = [&](size_t a, size_t b) {
    const double x = std::abs(values[a]), y = std::abs(values[b]);
    return x > y || (x == y && a < b);
  };
  const size_t count = std::min(order.size(), top);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), larger);
  order.resize(count);
  return order;
}

std::string strongest(const std::vector<std::string>& names, std::span<const double> values, size_t top) {
  std::string text;
  for (const size_t i : order_by_size(values, top)) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : "  ", names[i], values[i]);
  }
  return text;
}

std::string bars(const std::vector<std::string>& names, std::span<const double> values, bool relative) {
  size_t width = 0;
  double largest = relative ? 0 : 1;
  for (size_t i = 0; i < values.size(); ++i) {
    width = std::max(width, columns(names[i]));
    if (relative) largest = std::max(largest, std::abs(values[i]));
  }
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    const double size = largest > 0 ? std::abs(values[i]) / largest : 0;
    const std::string bar(static_cast<size_t>(size * kBar + 0.5), values[i] < 0 ? '-' : '#');
    const std::string number = relative ? fmt::format("{:>+9.4f}", values[i]) : fmt::format("{:.2f}", values[i]);
    text += fmt::format("  {}  {}{}{}\n", padded(names[i], width), number, bar.empty() ? "" : "  ", bar);
  }
  return text;
}

std::string heat_map(const std::vector<std::string>& rows, const std::vector<std::string>& names,
                     const std::vector<std::vector<double>>& weights) {
  size_t width = 0, count = 0;
  for (const std::string& row : rows) width = std::max(width, columns(row));
  for (const std::vector<double>& row : weights) count = std::max(count, row.size());
  std::string text = fmt::format("  {}  ", padded("", width)), legend = "  columns:";
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}", (i + 1) % 10);
    legend += fmt::format(" {} {}", i + 1, names[i]);
  }
  text += "\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("  {} |", padded(rows[i], width));
    for (const double weight : weights[i]) text += shade_of(weight);
    text += "|\n";
  }
  legend += "\n  weights:";
  for (auto shade = kShades.rbegin(); shade != kShades.rend(); ++shade) {
    legend += fmt::format(" '{}' from {:.2f}", shade->mark, std::max(0.0, shade->from));
  }
  return text + legend + "\n";
}

}  // namespace heed::cli
