// SPDX-License-Identifier: Apache-2.0
#include "heed/io/tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "heed/base/testing.h"

namespace heed::io {
namespace {

using heed::testing::error_of;

// An entry that borrows from `numbers`.
template <class T>
TensorEntry entry(const Shape& shape, const std::vector<T>& numbers) {
  return {.name = "w", .type = kElementType<T>, .shape = shape, .bytes = std::as_bytes(std::span(numbers))};
}

TEST(IoTensor, KeepsTheTypeAndTheBits) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const std::vector<double> numbers{1.5, -2, 0.25, 3, 1e4, -0.0};
    const Tensor tensor = Tensor::of({2, 3}, numbers).converted(dtype);
    const TensorEntry written = entry_of("a.weight", tensor);
    EXPECT_EQ(written.name, "a.weight");
    EXPECT_EQ(dtype_of(written.type), dtype);
    EXPECT_EQ(written.shape, (Shape{2, 3}));
    EXPECT_EQ(written.bytes.data(), tensor.raw());  // borrowed
    const Tensor read = to_tensor(written);
    EXPECT_EQ(read.dtype(), dtype);
    EXPECT_EQ(read.shape(), (heed::Shape{2, 3}));
    EXPECT_NE(read.raw(), tensor.raw());
    EXPECT_EQ(std::memcmp(read.raw(), tensor.raw(), tensor.bytes()), 0);
    if (dtype == DType::bf16) continue;  // npy has none
    EXPECT_EQ(std::memcmp(to_tensor(npy_of(tensor)).raw(), tensor.raw(), tensor.bytes()), 0);
  }
  EXPECT_EQ(to_tensor(entry<int32_t>({2}, {7, -7})).to_doubles(), (std::vector<double>{7, -7}));
  EXPECT_EQ(to_tensor(entry<float>({}, {0.5f})).item(), 0.5);
  EXPECT_EQ(to_tensor(entry<float>({3, 0}, {})).shape(), (heed::Shape{3, 0}));
}

TEST(IoTensor, ConvertsToTheTypeThatIsWanted) {
  const std::vector<double> numbers{1 + 0x1p-8 + 0x1p-50, 1 + 0x1p-8, 0.1};
  const TensorEntry exact = entry<double>({3}, numbers);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const Tensor tensor = to_tensor(exact, dtype);
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.to_doubles(), Tensor::of({3}, numbers).converted(dtype).to_doubles());
    EXPECT_EQ(to_tensor(entry<BFloat16>({1}, {BFloat16::from(2.5f)}), dtype).item(), 2.5);
    EXPECT_EQ(to_tensor(entry<Float16>({1}, {Float16::from(2.5f)}), dtype).item(), 2.5);
    EXPECT_EQ(to_tensor(entry<int64_t>({2}, {-3, 100}), dtype).to_doubles(), (std::vector<double>{-3, 100}));
    EXPECT_EQ(to_tensor(NpyArray::of<uint8_t>({1}, std::vector<uint8_t>{200}), dtype).item(), 200);
  }
  EXPECT_EQ(to_tensor(entry<int64_t>({2}, {-3, 100}), DType::i32).dtype(), DType::i32);
  EXPECT_EQ(to_tensor(entry<int64_t>({2}, {-2147483648, 2147483647}), DType::i32).to_doubles(),
            (std::vector<double>{-2147483648.0, 2147483647.0}));
}

// In a file, numbers of 16 bits may begin at any byte.
TEST(IoTensor, NeedsNoAlignment) {
  const std::vector<float> numbers{1, 2, 3};
  std::vector<std::byte> shifted(1 + sizeof(float) * 3);
  std::memcpy(shifted.data() + 1, numbers.data(), sizeof(float) * 3);
  const TensorEntry odd{.name = "w", .type = ElementType::f32, .shape = {3}, .bytes = std::span(shifted).subspan(1)};
  EXPECT_EQ(to_tensor(odd).to_doubles(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(to_tensor(odd, DType::bf16).to_doubles(), (std::vector<double>{1, 2, 3}));
}

TEST(IoTensor, GoesThroughAFile) {
  const std::string path = ::testing::TempDir() + "io_tensor_test.safetensors";
  const Tensor a = Tensor::full({2, 2}, 1.0 / 3, DType::bf16), b = Tensor::full({3}, 7, DType::i32);
  write_safetensors(path, {entry_of("a", a), entry_of("b", b)});
  const SafetensorsFile file(path);
  EXPECT_EQ(to_tensor(file.at("a")).to_doubles(), a.to_doubles());
  EXPECT_EQ(to_tensor(file.at("a")).dtype(), DType::bf16);
  EXPECT_EQ(to_tensor(file.at("b")).to_doubles(), b.to_doubles());
  std::filesystem::remove(path);
}

TEST(IoTensor, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              to_tensor(entry<float>({1, 1, 1, 1, 1}, {1}));
            }),
            "tensor 'w': has shape [1, 1, 1, 1, 1], expected at most 4 dimensions");
  EXPECT_EQ(error_of([] {
              to_tensor(entry<float>({2, 2}, {1}));
            }),
            "tensor 'w': has 4 bytes, expected 16: shape is [2, 2], elements are F32");
  EXPECT_EQ(error_of([] { to_tensor(entry<int64_t>({1}, {1})); }),
            "tensor 'w': elements are I64, expected F32, F64, BF16, F16 or I32");
  EXPECT_EQ(error_of([] { to_tensor(entry<float>({1}, {1}), DType::i32); }),
            "tensor 'w': elements are F32, expected integers for i32");
  EXPECT_EQ(error_of([] { to_tensor(entry<int64_t>({1}, {int64_t{1} << 31}), DType::i32); }),
            "tensor 'w': has the number 2147483648, expected one that fits in i32");
  const std::vector<uint8_t> byte{1};
  const TensorEntry eight{
      .name = "w", .type = ElementType::f8_e4m3, .shape = {1}, .bytes = std::as_bytes(std::span(byte))};
  EXPECT_EQ(error_of([&] { to_tensor(eight, DType::f32); }),
            "tensor 'w': elements are F8_E4M3, expected integers, booleans, or real numbers of 16 bits or more");
  EXPECT_EQ(error_of([] { to_tensor(NpyArray{.type = ElementType::u8, .shape = {1}, .bytes = {std::byte{1}}}); }),
            "npy: elements are U8, expected F32, F64, BF16, F16 or I32");
  EXPECT_EQ(error_of([] { entry_of("w", Tensor()); }), "tensor 'w': is empty, expected numbers to write");
  EXPECT_EQ(error_of([] { npy_of(Tensor()); }), "npy: the tensor is empty, expected numbers to write");
}

}  // namespace
}  // namespace heed::io
