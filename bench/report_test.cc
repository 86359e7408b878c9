// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heed/base/error.h"

namespace heed::bench {
namespace {

TEST(Report, JsonHasTheFieldsThatProgramsRead) {
  Report report{.cpu = "a CPU", .simd = "AVX2", .date = "today", .threads = 2, .peak_gflops = 100, .read_gbps = 20};
  report.rows.push_back(
      {.row = {Pass::decode, {.T = 1, .S = 4096}}, .threads = 2, .rates = {.ms = 0.5}, .percent_of_read = 80.0});
  report.rows.push_back({.row = {Pass::forward, {.mask = MaskKind::causal}}, .ratio_to_unfused = 1.5});
  report.rows.push_back(
      {.row = {Pass::forward, {.extra = Extra::additive}}, .time_per_score_ratio = 20.0, .percent_of_tanh = 65.0});
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["peak_gflops"], 100.0);
  EXPECT_EQ(json["read_gbps"], 20.0);
  for (const auto& row : json["rows"]) {
    for (const char* field : {"pass", "layout", "mask", "B", "H", "Hk", "T", "S", "D", "causal", "extra", "threads",
                              "ms", "gflops", "percent_of_peak", "percent_of_read", "ratio_to_unfused"}) {
      EXPECT_TRUE(row.contains(field)) << field;
    }
  }
  EXPECT_EQ(json["rows"][0]["pass"], "decode");
  EXPECT_EQ(json["rows"][0]["percent_of_read"], 80.0);
  EXPECT_EQ(json["rows"][0]["causal"], false);
  EXPECT_EQ(json["rows"][1]["causal"], true);
  EXPECT_TRUE(json["rows"][1]["percent_of_read"].is_null());
  EXPECT_EQ(json["rows"][1]["ratio_to_unfused"], 1.5);
  EXPECT_EQ(json["rows"][1]["extra"], "none");
  EXPECT_FALSE(json["rows"][1].contains("time_per_score_ratio"));
  EXPECT_FALSE(json["rows"][1].contains("percent_of_tanh"));
  EXPECT_TRUE(json["rows"][2]["ratio_to_unfused"].is_null());
  EXPECT_EQ(json["rows"][2]["extra"], "additive");
  EXPECT_EQ(json["rows"][2]["time_per_score_ratio"], 20.0);
  EXPECT_EQ(json["rows"][2]["percent_of_tanh"], 65.0);
}

TEST(Report, TableHasAColumnForEachFigure) {
  const std::string line = table_line({.row = {Pass::forward, {.extra = Extra::additive}},
                                       .rates = {.ms = 1,
                                                 .gflops = 2,
                                                 .percent_of_peak = 3,
                                                 .percent_of_peak_all = 4,
                                                 .percent_of_peak_best = 5,
                                                 .rounds = 40,
                                                 .quiet_rounds = 31},
                                       .percent_of_tanh = 65.0});
  std::istringstream words(line.substr(line.find("additive")));
  const std::vector<std::string> figures{std::istream_iterator<std::string>(words), {}};
  EXPECT_EQ(figures, (std::vector<std::string>{"additive", "1.0000", "2.0", "3.0", "4.0", "5.0", "31/40", "-", "-", "-",
                                               "65.0"}));
  EXPECT_EQ(line.size(), table_header().size());
}

TEST(JsonFile, AppearsWholeOrNotAtAll) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "heed_json_file";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder / "figures.json";
  { JsonFile abandoned(path); }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  {
    JsonFile file(path);
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit("{}\n");
  }
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "{}");
  std::filesystem::remove(path);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  EXPECT_THROW(JsonFile{path}, Error);
}

}  // namespace
}  // namespace heed::bench
