// SPDX-License-Identifier: Apache-2.0
#include "heed/io/safetensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/base/file.h"
#include "heed/base/testing.h"

namespace heed::io {
namespace {

using heed::testing::bytes_of;
using heed::testing::error_of;
using heed::testing::TemporaryFolder;
using heed::testing::text_of;

std::string length_of(uint64_t header) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header >> 8 * i & 0xFF);
  return bytes;
}
std::string file_of(const std::string& header, const std::string& buffer) {
  return length_of(header.size()) + header + buffer;
}

std::string parse_error(const std::string& file) {
  return error_of([&] { parse_safetensors(bytes_of(file), "x"); });
}
std::string header_error(const std::string& header, const std::string& buffer = "") {
  return parse_error(file_of(header, buffer));
}
// The entry of a tensor.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}
std::string entry_error(const std::string& dtype, const std::string& shape, const std::string& offsets,
                        const std::string& buffer = "") {
  return header_error("{\"a\":" + entry(dtype, shape, offsets) + "}", buffer);
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string file =
      file_of("{\"__metadata__\":{\"format\":\"pt\"},\"b\":" + entry("F32", "[1,2]", "[4,12]") +
                  ",\"a\":" + entry("BF16", "[2]", "[0,4]") + ",\"one\":" + entry("I64", "[]", "[12,20]") +
                  ",\"none\":" + entry("F64", "[3,0]", "[12,12]") + "}   ",
              "aabbccccddddeeeeeeee");
  const SafetensorsContent content = parse_safetensors(bytes_of(file), "x");
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(content.tensors.size(), 4u);
  const TensorEntry *a = content.find("a"), *b = content.find("b"), *one = content.find("one"),
                    *none = content.find("none");
  ASSERT_TRUE(a && b && one && none);
  EXPECT_EQ(content.find("c"), nullptr);
  EXPECT_EQ(a->type, ElementType::bf16);
  EXPECT_EQ(a->shape, Shape{2});
  EXPECT_EQ(text_of(a->bytes), "aabb");
  EXPECT_EQ(b->type, ElementType::f32);
  EXPECT_EQ(b->shape, (Shape{1, 2}));
  EXPECT_EQ(text_of(b->bytes), "ccccdddd");
  EXPECT_EQ(one->shape, Shape{});
  EXPECT_EQ(text_of(one->bytes), "eeeeeeee");
  EXPECT_EQ(none->shape, (Shape{3, 0}));
  EXPECT_TRUE(none->bytes.empty());
}

TEST(Safetensors, KnowsEveryTypeByName) {
  const std::vector<std::pair<std::string, size_t>> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"C64", 8}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  for (const auto& [name, size] : sizes) {
    const std::string offsets = "[0," + std::to_string(3 * size) + "]";
    EXPECT_EQ(entry_error(name, "[3]", offsets, std::string(3 * size, 'x')), "no error") << name;
    EXPECT_EQ(name_of(*element_type_named(name)), name);
  }
  EXPECT_EQ(entry_error("F31", "[]", "[0,4]", "aaaa"), "x: tensor 'a': dtype is 'F31', which is not known");
}

TEST(Safetensors, AFileWithoutTensorsIsValid) {
  EXPECT_EQ(header_error("{}"), "no error");
  EXPECT_EQ(header_error("{\"__metadata__\":{}}"), "no error");
  EXPECT_EQ(header_error("{}", "a"), "x: tensors end at byte 0 of the buffer, expected 1, where the file ends");
}

TEST(Safetensors, RejectsAFileThatIsCutShort) {
  EXPECT_EQ(parse_error("1234567"), "x: has 7 bytes, expected at least 8");
  EXPECT_EQ(parse_error(length_of(100'000'001)), "x: header has 100000001 bytes, expected at most 100000000");
  EXPECT_EQ(parse_error(length_of(UINT64_MAX)), "x: header has 18446744073709551615 bytes, expected at most 100000000");
  EXPECT_EQ(parse_error(length_of(3) + "{}"), "x: header has 3 bytes, but only 2 follow its length");
  const std::string whole = file_of("{\"a\":" + entry("F32", "[2]", "[0,8]") + "}", "aaaabbbb");
  EXPECT_EQ(parse_error(whole), "no error");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(parse_error(whole.substr(0, size)), "no error") << size;
}

TEST(Safetensors, RejectsAHeaderThatIsNoJsonObject) {
  EXPECT_EQ(header_error(""), "x: header begins with '', expected '{'");
  EXPECT_EQ(header_error(" {}"), "x: header begins with ' ', expected '{'");
  EXPECT_EQ(header_error("[]"), "x: header begins with '[', expected '{'");
  EXPECT_EQ(header_error("{\"a\""), "x: not valid JSON at line 1, column 5");
  EXPECT_EQ(header_error("{} {}"), "x: not valid JSON at line 1, column 4");
  EXPECT_EQ(header_error("{\"\xff\":1}"), "x: not valid JSON at line 1, column 3");
}

TEST(Safetensors, RejectsKeysThatComeTwice) {
  const std::string one = "\"a\":" + entry("F32", "[]", "[0,4]");
  EXPECT_EQ(header_error("{" + one + "," + one + "}", "aaaa"), "x: key 'a' comes twice");
  EXPECT_EQ(header_error(R"({"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})", "aaaa"),
            "x: key 'dtype' comes twice");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":"1","k":"2"}})"), "x: key 'k' comes twice");
}

TEST(Safetensors, RejectsAnEntryThatIsNotWholeOrHasMore) {
  EXPECT_EQ(header_error(R"({"a":{}})"), "x: tensor 'a': lacks one of the keys dtype, shape and data_offsets");
  EXPECT_EQ(header_error(R"({"a":{"dtype":"F32","shape":[]}})"),
            "x: tensor 'a': lacks one of the keys dtype, shape and data_offsets");
  EXPECT_EQ(header_error(R"({"a":{"strides":[]}})"),
            "x: tensor 'a': has the key 'strides', expected only dtype, shape and data_offsets");
}

TEST(Safetensors, RejectsValuesOfAnotherKind) {
  EXPECT_EQ(header_error(R"({"a":1})"), "x: tensor 'a': is 1, expected an object");
  EXPECT_EQ(header_error(R"({"a":[]})"), "x: tensor 'a': is an array, expected an object");
  EXPECT_EQ(header_error(R"({"a":{"dtype":4}})"), "x: tensor 'a': 'dtype' is 4, expected a string");
  EXPECT_EQ(header_error(R"({"a":{"dtype":["F32"]}})"), "x: tensor 'a': 'dtype' is an array, expected a string");
  const std::string integers = ", expected an array of integers from 0 to 2^63 - 1";
  EXPECT_EQ(header_error(R"({"a":{"shape":4}})"), "x: tensor 'a': 'shape' is 4" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":"4"}})"), "x: tensor 'a': 'shape' is '4'" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":{}}})"), "x: tensor 'a': 'shape' is an object" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":[[1]]}})"), "x: tensor 'a': 'shape' holds an array" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":[{}]}})"), "x: tensor 'a': 'shape' holds an object" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":[-1]}})"), "x: tensor 'a': 'shape' holds -1" + integers);
  EXPECT_EQ(header_error(R"({"a":{"shape":[1.5]}})"), "x: tensor 'a': 'shape' holds 1.5" + integers);
  EXPECT_EQ(header_error(R"({"a":{"data_offsets":[0,9223372036854775808]}})"),
            "x: tensor 'a': 'data_offsets' holds 9223372036854775808" + integers);
  EXPECT_EQ(header_error(R"({"__metadata__":"pt"})"), "x: __metadata__: is 'pt', expected an object");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":1}})"), "x: __metadata__: 'k' is 1, expected a string");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":{}}})"), "x: __metadata__: 'k' is an object, expected a string");
  EXPECT_EQ(header_error(R"({"__metadata__":{"k":[]}})"), "x: __metadata__: 'k' is an array, expected a string");
}

TEST(Safetensors, RejectsOffsetsThatAreNotBeginAndEnd) {
  const std::string expected = ", expected [begin, end] with begin <= end";
  EXPECT_EQ(entry_error("F32", "[]", "[0]"), "x: tensor 'a': data_offsets are [0]" + expected);
  EXPECT_EQ(entry_error("F32", "[]", "[0,4,8]"), "x: tensor 'a': data_offsets are [0, 4, 8]" + expected);
  EXPECT_EQ(entry_error("F32", "[]", "[4,0]"), "x: tensor 'a': data_offsets are [4, 0]" + expected);
}

TEST(Safetensors, RejectsGapsAndOverlaps) {
  const auto two = [](const std::string& a, const std::string& b) {
    return header_error("{\"a\":" + entry("U8", "[4]", a) + ",\"b\":" + entry("U8", "[4]", b) + "}", "aaaabbbb");
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), "no error");
  EXPECT_EQ(two("[4,8]", "[0,4]"), "no error");
  EXPECT_EQ(two("[1,5]", "[5,8]"),
            "x: tensor 'a': begins at byte 1 of the buffer, expected 0, where the one before it ends");
  EXPECT_EQ(two("[0,4]", "[5,9]"),
            "x: tensor 'b': begins at byte 5 of the buffer, expected 4, where the one before it ends");
  EXPECT_EQ(two("[0,4]", "[3,7]"),
            "x: tensor 'b': begins at byte 3 of the buffer, expected 4, where the one before it ends");
  EXPECT_EQ(two("[0,4]", "[0,4]"),
            "x: tensor 'b': begins at byte 0 of the buffer, expected 4, where the one before it ends");
  EXPECT_EQ(two("[0,4]", "[4,7]"), "x: tensors end at byte 7 of the buffer, expected 8, where the file ends");
  EXPECT_EQ(two("[0,4]", "[4,9]"), "x: tensors end at byte 9 of the buffer, expected 8, where the file ends");
}

TEST(Safetensors, RejectsASizeThatDoesNotFitTheShape) {
  EXPECT_EQ(entry_error("F32", "[2,2]", "[0,12]", std::string(12, 'x')),
            "x: tensor 'a': has 12 bytes, expected 16: shape is [2, 2], dtype is F32");
  // 2^32 * 2^32 wraps to 0 in 64 bits.
  EXPECT_EQ(
      entry_error("U8", "[4294967296,4294967296]", "[0,0]"),
      "x: tensor 'a': has 0 bytes, expected more than any file has: shape is [4294967296, 4294967296], dtype is U8");
  EXPECT_EQ(
      entry_error("F64", "[1152921504606846976]", "[0,0]"),
      "x: tensor 'a': has 0 bytes, expected more than any file has: shape is [1152921504606846976], dtype is F64");
  std::string ones = "1";
  for (size_t i = 1; i < kMaxRank; ++i) ones += ",1";
  EXPECT_EQ(entry_error("U8", "[" + ones + "]", "[0,1]", "x"), "no error");
  EXPECT_EQ(entry_error("U8", "[" + ones + ",1]", "[0,1]", "x"), "x: tensor 'a': shape has more than 64 numbers");
}

TEST(Safetensors, ShowsLittleOfALongName) {
  const std::string error = header_error("{\"" + std::string(10'000, 'n') + "\":1}");
  EXPECT_EQ(error, "x: tensor '" + std::string(80, 'n') + "...': is 1, expected an object");
}

// The bytes that the usual writer gives for the same tensors.
TEST(Safetensors, WritesTheUsualOrderAndPadding) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  write_safetensors(path,
                    {{"b", ElementType::f16, {2}, bytes_of("bbbb")},
                     {"z", ElementType::f32, {1, 1}, bytes_of("zzzz")},
                     {"a \"q\"", ElementType::f16, {1}, bytes_of("aa")},
                     {"e", ElementType::f64, {0}, {}},
                     {"c", ElementType::bf16, {}, bytes_of("cc")}},
                    {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"e":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},)"
      R"("z":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"c":{"dtype":"BF16","shape":[],"data_offsets":[4,6]},)"
      R"("a \"q\"":{"dtype":"F16","shape":[1],"data_offsets":[6,8]},"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(text_of(read_file(path, 1 << 20)), file_of(header + padding, "zzzzccaabbbb"));
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  const std::vector<float> values = {1.5f, -0.0f, 1e-45f};
  const std::vector<BFloat16> halves = {BFloat16::from(2.5f)};
  write_safetensors(path, {{"weight", ElementType::f32, {3, 1}, std::as_bytes(std::span(values))},
                           {"h", kElementType<BFloat16>, {1}, std::as_bytes(std::span(halves))},
                           {"gr\xc3\xbc\n", ElementType::f32, {0, 5}, {}}});
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.at("weight").shape, (Shape{3, 1}));
  EXPECT_EQ(convert<float>(ElementType::f32, file.at("weight").bytes), values);
  EXPECT_EQ(convert<double>(ElementType::bf16, file.at("h").bytes), std::vector<double>{2.5});
  EXPECT_EQ(file.at("gr\xc3\xbc\n").shape, (Shape{0, 5}));
  EXPECT_EQ(error_of([&] { file.at("v"); }), path + ": has no tensor 'v' among its 3");
  EXPECT_EQ(error_of([&] { file.at("weights"); }),
            path + ": has no tensor 'weights' among its 3, did you mean 'weight'?");
  EXPECT_EQ(error_of([&] { SafetensorsFile none("no/such"); }), "no/such: cannot open: No such file or directory");
}

TEST(Safetensors, RejectsToWriteWhatItCouldNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.safetensors");
  const auto error = [&](const std::vector<TensorEntry>& tensors) {
    return error_of([&] { write_safetensors(path, tensors); });
  };
  EXPECT_EQ(error({{"a", ElementType::f32, {2}, bytes_of("aaaa")}}),
            path + ": tensor 'a': has 4 bytes, expected 8: shape is [2], dtype is F32");
  EXPECT_EQ(error({{"a", ElementType::f32, {}, bytes_of("aaaa")}, {"a", ElementType::f16, {}, bytes_of("aa")}}),
            path + ": tensor 'a': comes twice");
  EXPECT_EQ(error({{"__metadata__", ElementType::f16, {}, bytes_of("aa")}}),
            path + ": a tensor is called __metadata__, which is reserved");
  EXPECT_EQ(error({{"a", ElementType::u8, Shape(65, 1), bytes_of("a")}}),
            path + ": tensor 'a': has rank 65, expected at most 64");
  EXPECT_EQ(error({{"\xff", ElementType::u8, {}, bytes_of("a")}}), "text is not UTF-8: '\\xff'");
  EXPECT_EQ(folder.count(), 0u);
}

}  // namespace
}  // namespace heed::io
