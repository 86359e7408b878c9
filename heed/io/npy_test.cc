// SPDX-License-Identifier: Apache-2.0
#include "heed/io/npy.h"

#include <gtest/gtest.h>

#include <limits>
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

// A file with this header and these bytes after it, as NumPy lays it out for a version.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  const size_t prefix = version == 1 ? 10 : 12;
  const std::string padded = header + std::string((64 - (prefix + header.size() + 1) % 64) % 64, ' ') + '\n';
  file += {version, '\0'};
  for (size_t i = 0; i < prefix - 8; ++i) file += static_cast<char>(padded.size() >> 8 * i & 0xFF);
  return file + padded + data;
}

NpyArray parse(const std::string& file) { return parse_npy(bytes_of(file), "x.npy"); }
std::string parse_error(const std::string& file) {
  return error_of([&] { parse(file); });
}
std::string header_error(const std::string& header) { return parse_error(npy(header, "")); }

const std::string kTwoByThree = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";

TEST(Npy, ReadsEveryVersion) {
  for (const char version : {'\1', '\2', '\3'}) {
    const NpyArray array = parse(npy(kTwoByThree, "abcdef", version));
    EXPECT_EQ(array.type, ElementType::u8);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    EXPECT_EQ(text_of(array.bytes), "abcdef");
  }
}

TEST(Npy, ReadsAnyOrderAndQuotesAndSpaces) {
  for (const std::string header : {"{'shape':(6,),'descr':'|u1','fortran_order':False}",
                                   "{\"descr\": \"|u1\", \"shape\": ( 6 , ) , \"fortran_order\": False , }"}) {
    EXPECT_EQ(parse(npy(header, "abcdef")).shape, Shape{6}) << header;
  }
}

TEST(Npy, AnEmptyShapeIsOneNumberAndAZeroExtentNone) {
  EXPECT_EQ(parse(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "a")).bytes.size(), 1u);
  const NpyArray none = parse(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 7), }", ""));
  EXPECT_EQ(none.shape, (Shape{3, 0, 7}));
  EXPECT_TRUE(none.as<double>().empty());
}

template <class T>
void expect_round_trip(const std::vector<T>& values, const std::string& descr) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  const NpyArray array = NpyArray::of<T>({1, static_cast<int64_t>(values.size())}, values);
  write_npy(path, array);
  const std::string file = text_of(read_file(path, 1 << 20));
  EXPECT_NE(file.find("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1, "), std::string::npos) << file;
  EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0u);
  const NpyArray again = read_npy(path);
  EXPECT_EQ(again.type, kElementType<T>);
  EXPECT_EQ(again.shape, array.shape);
  EXPECT_EQ(again.bytes, array.bytes);
  EXPECT_EQ(again.as<T>().size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(again.as_doubles()[i], static_cast<double>(values[i])) << descr;
    EXPECT_EQ(again.as_floats()[i], static_cast<float>(values[i])) << descr;
  }
}

TEST(Npy, WhatIsWrittenIsRead) {
  expect_round_trip<int8_t>({-128, -1, 127}, "|i1");
  expect_round_trip<uint8_t>({0, 255}, "|u1");
  expect_round_trip<int16_t>({-32768, 32767}, "<i2");
  expect_round_trip<uint16_t>({0, 65535}, "<u2");
  expect_round_trip<int32_t>({std::numeric_limits<int32_t>::min(), 7}, "<i4");
  expect_round_trip<uint32_t>({std::numeric_limits<uint32_t>::max()}, "<u4");
  expect_round_trip<int64_t>({std::numeric_limits<int64_t>::min(), (int64_t{1} << 53) + 1}, "<i8");
  expect_round_trip<uint64_t>({std::numeric_limits<uint64_t>::max()}, "<u8");
  expect_round_trip<float>({0.1f, -0.0f, 1e-45f, std::numeric_limits<float>::infinity()}, "<f4");
  expect_round_trip<double>({0.1, 1e300, 5e-324}, "<f8");
}

TEST(Npy, ReadsHalvesAndBooleans) {
  const std::vector<Float16> halves = {Float16::from(0.5f), Float16::from(-65504.0f), Float16{1}};
  const NpyArray array = NpyArray::of<Float16>({3}, halves);
  EXPECT_EQ(array.as_doubles(), (std::vector<double>{0.5, -65504, 0x1p-24}));
  EXPECT_EQ(array.as_floats(), (std::vector<float>{0.5f, -65504, 0x1p-24f}));

  const NpyArray flags = parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", {"\0\1\1", 3}));
  EXPECT_EQ(flags.as_doubles(), (std::vector<double>{0, 1, 1}));
  EXPECT_TRUE(flags.as<bool>()[1]);
  EXPECT_EQ(parse_error(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\2")),
            "x.npy: a boolean is neither 0 nor 1");
}

TEST(Npy, WritesTheShapesOfPython) {
  const TemporaryFolder folder;
  for (const auto& [shape, text] : std::vector<std::pair<Shape, std::string>>{
           {{}, "'shape': (), }"}, {{1}, "'shape': (1,), }"}, {{1, 1}, "'shape': (1, 1), }"}}) {
    const std::vector<float> one = {1};
    write_npy(folder.file("a.npy"), NpyArray::of<float>(shape, one));
    EXPECT_NE(text_of(read_file(folder.file("a.npy"), 1000)).find(text), std::string::npos) << text;
    EXPECT_EQ(read_npy(folder.file("a.npy")).shape, shape);
  }
}

TEST(Npy, GivesElementsOnlyAsTheirOwnType) {
  const NpyArray array = NpyArray::of<int64_t>({1}, std::vector<int64_t>{3});
  EXPECT_EQ(array.as<int64_t>()[0], 3);
  EXPECT_EQ(error_of([&] { array.as<float>(); }), "npy: elements are I64, expected F32");
}

TEST(Npy, RejectsAFileThatIsCutShort) {
  const std::string whole = npy(kTwoByThree, "abcdef");
  EXPECT_EQ(parse_error(""), "x.npy: 0 bytes are left for the magic string, expected 6");
  EXPECT_EQ(parse_error(whole.substr(0, 7)), "x.npy: 1 bytes are left for the version, expected 2");
  EXPECT_EQ(parse_error(whole.substr(0, 9)), "x.npy: 1 bytes are left for the header's length, expected 2");
  EXPECT_EQ(parse_error(whole.substr(0, 60)), "x.npy: 50 bytes are left for the header, expected 118");
  EXPECT_EQ(parse_error(whole.substr(0, whole.size() - 1)),
            "x.npy: 5 bytes follow the header, expected 6: shape is [2, 3], descr is '|u1'");
  EXPECT_EQ(parse_error(whole + "g"), "x.npy: 7 bytes follow the header, expected 6: shape is [2, 3], descr is '|u1'");
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(parse_error(whole.substr(0, size)), "no error") << size;
}

TEST(Npy, RejectsAnotherFormatOrVersion) {
  EXPECT_EQ(parse_error("PK\3\4 an archive"), "x.npy: begins with 'PK\\x03\\x04 a', expected '\\x93NUMPY'");
  EXPECT_EQ(parse_error(npy(kTwoByThree, "abcdef", 4)), "x.npy: version is 4.0, expected 1.0, 2.0 or 3.0");
}

TEST(Npy, RejectsWhatItCannotRead) {
  const std::string types = "|b1 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8";
  for (const std::string descr : {">f4", "|O", "<c8", "<U5", "f4", ""}) {
    EXPECT_EQ(header_error("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }"),
              "x.npy: descr is '" + descr + "', expected one of " + types);
  }
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }"),
            "x.npy: fortran_order is True, expected False: save it in C order (numpy.ascontiguousarray)");
  EXPECT_EQ(header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
            "x.npy: header: '[' at byte 10, expected a string");
}

TEST(Npy, RejectsAHeaderThatLies) {
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
            "x.npy: 0 bytes follow the header, expected 4000000000000: shape is [1000000000000], descr is '<f4'");
  // 2^32 * 2^32 wraps to 0 in 64 bits, and so does that with a zero in between.
  EXPECT_EQ(
      header_error("{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
      "x.npy: 0 bytes follow the header, expected more than any file has: shape is [4294967296, 4294967296], descr "
      "is '|u1'");
  EXPECT_EQ(header_error("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }"),
            "x.npy: 0 bytes follow the header, expected more than any file has: shape is [0, 4294967296, 4294967296], "
            "descr is '|u1'");
}

TEST(Npy, RejectsAHeaderThatNumPyWouldNotWrite) {
  const auto error = [](const std::string& header) { return header_error(header).substr(15); };
  EXPECT_EQ(error(""), "the end at byte 54, expected '{'");
  EXPECT_EQ(error("[1]"), "'[' at byte 0, expected '{'");
  EXPECT_EQ(error("{descr: 1}"), "'d' at byte 1, expected a string");
  EXPECT_EQ(error("{'descr"), "'d' at byte 2, expected a string that ends");
  EXPECT_EQ(error("{'descr' '<f4'}"), "''' at byte 9, expected ':'");
  EXPECT_EQ(error("{'descr': '<f4' 'shape': (1,)}"), "''' at byte 16, expected ',' or '}'");
  EXPECT_EQ(error("{'descr': '<f4', 'descr': '<f4'}"), "key 'descr' comes twice");
  EXPECT_EQ(error("{'type': '<f4'}"), "key 'type', expected 'descr', 'fortran_order' or 'shape'");
  EXPECT_EQ(error("{'descr': '<f4', 'shape': (1,)}"), "lacks one of the keys 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(error("{'fortran_order': false}"), "'f' at byte 18, expected True or False");
  EXPECT_EQ(error("{'shape': 3}"), "'3' at byte 10, expected '('");
  EXPECT_EQ(error("{'shape': (3)}"), "shape is a number in brackets, expected a tuple such as (3,)");
  EXPECT_EQ(error("{'shape': (3 4)}"), "'4' at byte 13, expected ',' or ')'");
  EXPECT_EQ(error("{'shape': (-3,)}"), "'-' at byte 11, expected an extent from 0 to 2^63 - 1");
  EXPECT_EQ(error("{'shape': (9223372036854775808,)}"), "'9' at byte 11, expected an extent from 0 to 2^63 - 1");
  EXPECT_EQ(error("{'shape': (3,"), "the end at byte 54, expected an extent from 0 to 2^63 - 1");
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_EQ(error("{'shape': (" + ones + ")}"), "shape has more than 64 extents");
  EXPECT_EQ(error(kTwoByThree + "x"), "'x' at byte 59, expected nothing after '}'");
}

TEST(Npy, RejectsToWriteWhatItCouldNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  const std::vector<float> values = {1, 2, 3};
  EXPECT_EQ(error_of([&] {
              write_npy(path, NpyArray::of<float>({2, 2}, values));
            }),
            path + ": array has 12 bytes, expected 16: shape is [2, 2]");
  EXPECT_EQ(error_of([&] {
              write_npy(path, NpyArray{ElementType::bf16, {1}, std::vector<std::byte>(2)});
            }),
            path + ": npy has no elements of type BF16");
  EXPECT_EQ(error_of([&] { write_npy(path, NpyArray::of<float>(Shape(40'000, 1), std::span(values).first(1))); }),
            path + ": shape has rank 40000, expected at most 64");
  EXPECT_EQ(folder.count(), 0u);
}

TEST(Npy, AMissingFileIsNamed) {
  EXPECT_EQ(error_of([] { read_npy("no/such.npy"); }), "no/such.npy: cannot open: No such file or directory");
}

}  // namespace
}  // namespace heed::io
