// SPDX-License-Identifier: Apache-2.0
#pragma once
// What explain writes to a terminal: bars, lists of the strongest, and a small heat map.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace heed::cli {

// Columns on a terminal: what continues a character of UTF-8 takes none.
size_t columns(const std::string& text);
std::string padded(const std::string& text, size_t width);

// Which of the values are the `top` largest by size, whatever their sign, in that order.
std::vector<size_t> order_by_size(std::span<const double> values, size_t top);
// "tired 0.71  animal 0.12": the `top` largest by size, whatever their sign. The last value may be that of the end,
// which has no name.
std::string strongest(const std::vector<std::string>& names, std::span<const double> values, size_t top);

// A line for each: "  animal   0.96  ####". Weights are drawn on a scale from 0 to 1; with `relative`, all numbers on
// that of the largest, with their signs, negative ones as dashes.
std::string bars(const std::vector<std::string>& names, std::span<const double> values, bool relative);

// Rows of weights from 0 to 1 as shades, columns numbered, with a legend: never wider than the number of columns and
// the longest name.
std::string heat_map(const std::vector<std::string>& rows, const std::vector<std::string>& names,
                     const std::vector<std::vector<double>>& weights);

}  // namespace heed::cli
