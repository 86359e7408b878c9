// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"

namespace heed::bench {

using Json = nlohmann::ordered_json;

double rounded(double x) { return std::stod(fmt::format("{:.5g}", x)); }
Json optional(const std::optional<double>& x) { return x ? Json(rounded(*x)) : Json(nullptr); }

std::string rates_header() {
  return fmt::format("{:>10} {:>9} {:>7} {:>7} {:>7} {:>9}", "ms", "GFLOP/s", "% peak", "% all", "% best", "quiet");
}

std::string rates_columns(const Rates& r) {
  return fmt::format("{:>10.4f} {:>9.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>9}", r.ms, r.gflops, r.percent_of_peak,
                     r.percent_of_peak_all, r.percent_of_peak_best, fmt::format("{}/{}", r.quiet_rounds, r.rounds));
}

void add_rates(Json& row, const Rates& r) {
  row["ms"] = rounded(r.ms);
  row["gflops"] = rounded(r.gflops);
  row["percent_of_peak"] = rounded(r.percent_of_peak);
  row["percent_of_peak_all"] = rounded(r.percent_of_peak_all);
  row["percent_of_peak_best"] = rounded(r.percent_of_peak_best);
  row["rounds"] = r.rounds;
  row["quiet_rounds"] = r.quiet_rounds;
  row["peak_gflops"] = rounded(r.peak_gflops);
}

namespace {

Json to_json(const Figures& f) {
  const Case& c = f.row.problem;
  Json row = {
      {"pass", to_string(f.row.pass)},
      {"layout", to_string(c.layout)},
      {"mask", to_string(c.mask)},
      {"B", c.B},
      {"H", c.H},
      {"Hk", c.Hk},
      {"T", c.T},
      {"S", c.S},
      {"D", c.D},
      {"causal", c.mask == MaskKind::causal},
      {"keys", name_of(c.keys)},
      {"extra", to_string(c.extra)},
      {"threads", f.threads},
      {"percent_of_read", optional(f.percent_of_read)},
      {"ratio_to_unfused", optional(f.ratio_to_unfused)},
      {"read_gbps", rounded(f.read_gbps)},
  };
  add_rates(row, f.rates);
  if (f.time_per_score_ratio) row["time_per_score_ratio"] = rounded(*f.time_per_score_ratio);
  if (f.percent_of_tanh) row["percent_of_tanh"] = rounded(*f.percent_of_tanh);
  return row;
}

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error("--json: cannot write '" + path + "': " + reason);
}

}  // namespace

std::string table_header() {
  return fmt::format("{:<44} {} {:>7} {:>10} {:>9} {:>7}", "row", rates_header(), "% read", "x unfused", "per score",
                     "% tanh");
}

std::string table_line(const Figures& f) {
  const auto figure = [](const std::optional<double>& x, int digits) {
    return x ? fmt::format("{:.{}f}", *x, digits) : std::string("-");
  };
  return fmt::format("{:<44} {} {:>7} {:>10} {:>9} {:>7}", name(f.row), rates_columns(f.rates),
                     figure(f.percent_of_read, 1), figure(f.ratio_to_unfused, 2), figure(f.time_per_score_ratio, 3),
                     figure(f.percent_of_tanh, 1));
}

std::string to_json(const Report& report) {
  Json rows = Json::array();
  for (const Figures& f : report.rows) rows.push_back(to_json(f));
  const Json all = {{"cpu", report.cpu},
                    {"simd", report.simd},
                    {"date", report.date},
                    {"threads", report.threads},
                    {"peak_gflops", rounded(report.peak_gflops)},
                    {"read_gbps", rounded(report.read_gbps)},
                    {"rows", rows}};
  return all.dump(2) + "\n";
}

JsonFile::JsonFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".part") {
  if (std::filesystem::is_directory(path_)) fail(path_, "it is a directory");
  if (!std::ofstream(temporary_)) fail(path_, std::strerror(errno));
}

JsonFile::~JsonFile() {
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);  // already renamed where all went well
}

void JsonFile::commit(const std::string& text) {
  std::ofstream file(temporary_);
  if (!(file << text << std::flush)) fail(path_, std::strerror(errno));
  file.close();
  std::error_code failure;
  std::filesystem::rename(temporary_, path_, failure);
  if (failure) fail(path_, failure.message());
}

}  // namespace heed::bench
