// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a benchmark says: a line a row while it runs, and a JSON file in the end.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/grid.h"
#include "bench/measure.h"

namespace heed::bench {

// What a row says. Ratios are medians over the rounds that count.
struct Figures {
  Row row;
  int threads = 1;
  Rates rates = {};
  std::optional<double> percent_of_read = {};       // decode: of the rate at which the same bytes are merely read
  std::optional<double> ratio_to_unfused = {};      // the unfused time over ours: above 1, we are the faster
  std::optional<double> time_per_score_ratio = {};  // ours for a visible score over that of the plain row
  std::optional<double> percent_of_tanh = {};  // additive: of the rate at which tanh alone runs over an array in L1
  double read_gbps = 0;                        // next to this row
};

struct Report {
  std::string cpu, simd, date;
  int threads = 1;
  double peak_gflops = 0, read_gbps = 0;  // medians over the rows
  std::vector<Figures> rows = {};
};

// The columns, and the fields, that every benchmark has of its subject.
std::string rates_header();
std::string rates_columns(const Rates&);
void add_rates(nlohmann::ordered_json&, const Rates&);
double rounded(double);  // to what a figure is worth
nlohmann::ordered_json optional(const std::optional<double>&);

std::string table_header();
std::string table_line(const Figures&);
std::string to_json(const Report&);

// A file that appears whole or not at all: written under another name and renamed.
class JsonFile {
 public:
  // Throws Error at once where the file could not be written later.
  explicit JsonFile(std::string path);
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  void commit(const std::string& text);

 private:
  std::string path_, temporary_;
};

}  // namespace heed::bench
