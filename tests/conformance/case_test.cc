// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/conformance/testing.h"

namespace heed::conformance {
namespace {

using heed::testing::error_of;

// What reading says once the description was changed so; without the path in front.
std::string reading_error(const std::function<void(nlohmann::json&)>& change) {
  SmallCase small;
  change(small.description);
  small.save();
  const std::string error = error_of([&] { Case::read(small.folder()); });
  const size_t path = error.find(small.folder());
  return path == std::string::npos ? error : error.substr(path + small.folder().size() + 1);
}

const Signature kScale = {.op = "Scale",
                          .first_opset = 22,
                          .last_opset = 23,
                          .inputs = {"x", "a", "z"},
                          .outputs = {"y"},
                          .attributes = {"by", "mode", "times"}};

TEST(Case, IsReadWithTensorsInTheOperatorsOrder) {
  const SmallCase small;
  const Case c = Case::read(small.folder());
  EXPECT_EQ(c.name, "test_scale_small");
  EXPECT_EQ(c.op, "Scale");
  EXPECT_EQ(c.opset, 23);
  ASSERT_TRUE(c.input(0) && c.input(2) && c.output(0));
  EXPECT_EQ(c.input(0)->array.as_doubles(), (std::vector<double>{1, 2}));
  EXPECT_TRUE(c.input(2)->array.as<bool>()[0]);
  EXPECT_EQ(c.input(1), nullptr);
  EXPECT_EQ(c.input(3), nullptr);
  EXPECT_EQ(c.output(0)->dtype, "bfloat16");
  EXPECT_NO_THROW(c.require(kScale));
}

TEST(Case, GivesAttributesOfTheTypeThatIsAskedFor) {
  const SmallCase small;
  const Case c = Case::read(small.folder());
  EXPECT_EQ(c.integer("times"), 3);
  EXPECT_EQ(c.number("by"), 0.5);
  EXPECT_EQ(c.text("mode"), "plain");
  EXPECT_EQ(c.integer("absent"), std::nullopt);
  EXPECT_EQ(error_of([&] { c.integer("by"); }), "test_scale_small: attribute 'by' is not an integer");
  EXPECT_EQ(error_of([&] { c.text("times"); }), "test_scale_small: attribute 'times' is not a text");
}

TEST(Case, RejectsWhatDoesNotFitTogether) {
  using Json = nlohmann::json;
  EXPECT_EQ(reading_error([](Json& d) {
              d["sets"][0]["inputs"][1]["shape"] = {1, 2};
            }),
            "x.npy: has shape [2], expected [1, 2] as case.json says");
  EXPECT_EQ(reading_error([](Json& d) { d["sets"][0]["inputs"][0]["stored"] = "int64"; }),
            "z.npy: bool is stored as int64, expected bool");
  EXPECT_EQ(reading_error([](Json& d) {
              d["sets"][0]["inputs"][1].update({{"stored", "int64"}, {"dtype", "int64"}});
            }),
            "x.npy: holds F32, expected int64 as case.json says");
  EXPECT_NE(reading_error([](Json& d) { d["sets"][0]["inputs"][1]["file"] = "w.npy"; }).find("w.npy"),
            std::string::npos);
  EXPECT_EQ(reading_error([](Json& d) { d["nodes"][0]["inputs"][0] = "X"; }),
            "case.json: the node names the tensor 'X', which has no file");
  EXPECT_EQ(reading_error([](Json& d) { d["nodes"][0]["inputs"][0] = ""; }),
            "case.json: the node does not name the tensor 'x'");
  EXPECT_EQ(reading_error([](Json& d) { d["nodes"].push_back(d["nodes"][0]); }),
            "case.json: has 2 nodes, expected one");
  EXPECT_EQ(reading_error([](Json& d) { d["sets"].clear(); }), "case.json: has 0 sets, expected one");
  EXPECT_EQ(reading_error([](Json& d) { d["initializers"] = {1}; }), "case.json: has initializers, expected none");
  EXPECT_EQ(reading_error([](Json& d) {
              d["nodes"][0]["attributes"]["times"] = {1, 2};
            }),
            "case.json: attribute 'times' is [1,2], expected a number or a text");
  EXPECT_NE(reading_error([](Json& d) { d.erase("opset"); }).find("key 'opset' not found"), std::string::npos);
}

TEST(Case, RejectsAFolderWithoutADescription) {
  const SmallCase small;
  std::ofstream(small.file("case.json")) << "{";
  EXPECT_NE(error_of([&] { Case::read(small.folder()); }).find("parse error"), std::string::npos);
  std::filesystem::remove(small.file("case.json"));
  EXPECT_NE(error_of([&] { Case::read(small.folder()); }).find("cannot be opened"), std::string::npos);
}

TEST(Case, RejectsWhatAnOperatorDoesNotKnow) {
  const SmallCase small;
  const Case c = Case::read(small.folder());
  const auto error = [&](const std::function<void(Signature&)>& change) {
    Signature known = kScale;
    change(known);
    return error_of([&] { c.require(known); });
  };
  EXPECT_EQ(error([](Signature& s) { s.op = "Shift"; }), "test_scale_small: the operator is Scale, expected Shift");
  EXPECT_EQ(error([](Signature& s) { s.last_opset = 22; }), "test_scale_small: the opset is 23, expected 22 to 22");
  EXPECT_EQ(error([](Signature& s) { s.inputs = {"x"}; }), "test_scale_small: has 3 inputs, expected at most 1");
  EXPECT_EQ(error([](Signature& s) { s.outputs = {}; }), "test_scale_small: has 1 outputs, expected at most 0");
  EXPECT_EQ(error([](Signature& s) { s.attributes.pop_back(); }),
            "test_scale_small: attribute 'times' is not known here");
}

}  // namespace
}  // namespace heed::conformance
