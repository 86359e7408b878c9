// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small case for the tests of what reads and runs cases: y = Scale(x, , z) with two attributes.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/io/npy.h"

namespace heed::conformance {

// Written under a folder that goes away, as it is or with a description that was changed first.
class SmallCase {
 public:
  explicit SmallCase(const std::string& name = "test_scale_small") : folder_(data_.file("onnx-cases/" + name)) {
    std::filesystem::create_directories(folder_);
    description = nlohmann::json::parse(R"({
      "case": "test_scale_small", "opset": {"ai.onnx": 23}, "initializers": [],
      "nodes": [{"op": "Scale", "domain": "", "inputs": ["x", "", "z"], "outputs": ["y"],
                 "attributes": {"times": 3, "by": 0.5, "mode": "plain"}}],
      "sets": [{"inputs": [{"name": "z", "dtype": "bool", "stored": "bool", "shape": [], "file": "z.npy"},
                           {"name": "x", "dtype": "float32", "stored": "float32", "shape": [2], "file": "x.npy"}],
                "outputs": [{"name": "y", "dtype": "bfloat16", "stored": "float32", "shape": [2], "file": "y.npy"}]}]
    })");
    const std::vector<float> x{1, 2}, y{0.5f, 1};
    const bool z = true;
    io::write_npy(file("x.npy"), io::NpyArray::of<float>({2}, x));
    io::write_npy(file("y.npy"), io::NpyArray::of<float>({2}, y));
    io::write_npy(file("z.npy"), io::NpyArray::of<bool>({}, std::span(&z, 1)));
    save();
  }

  nlohmann::json description;

  void save() const { std::ofstream(file("case.json")) << description; }
  std::string data() const { return data_.path(); }  // what HEED_DATA would be
  std::string folder() const { return folder_; }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  heed::testing::TemporaryFolder data_;
  std::string folder_;
};

}  // namespace heed::conformance
