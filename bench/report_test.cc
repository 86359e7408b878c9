#include "bench/report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"

namespace heed::bench {
namespace {

TEST(Report, JsonHasTheFieldsThatProgramsRead) {
  Report report{.cpu = "a CPU", .simd = "AVX2", .date = "today", .threads = 2, .peak_gflops = 100, .read_gbps = 20};
  report.rows.push_back({.row = {Pass::decode, {.T = 1, .S = 4096}}, .threads = 2, .ms = 0.5, .percent_of_read = 80.0});
  report.rows.push_back({.row = {Pass::forward, {.mask = MaskKind::causal}}, .ratio_to_unfused = 1.5});
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["peak_gflops"], 100.0);
  EXPECT_EQ(json["read_gbps"], 20.0);
  for (const auto& row : json["rows"]) {
    for (const char* field : {"pass", "layout", "mask", "B", "H", "Hk", "T", "S", "D", "causal", "threads", "ms",
                              "gflops", "percent_of_peak", "percent_of_read", "ratio_to_unfused"}) {
      EXPECT_TRUE(row.contains(field)) << field;
    }
  }
  EXPECT_EQ(json["rows"][0]["pass"], "decode");
  EXPECT_EQ(json["rows"][0]["percent_of_read"], 80.0);
  EXPECT_EQ(json["rows"][0]["causal"], false);
  EXPECT_EQ(json["rows"][1]["causal"], true);
  EXPECT_TRUE(json["rows"][1]["percent_of_read"].is_null());
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
