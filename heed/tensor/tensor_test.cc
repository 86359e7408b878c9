// SPDX-License-Identifier: Apache-2.0
#include "heed/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "heed/base/testing.h"

namespace heed {
namespace {

using testing::error_of;

Tensor counting(const Shape& shape) {
  const Tensor t = Tensor::uninitialised(shape);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(Shape, KnowsExtentsFromBothEnds) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.rank(), 3u);
  EXPECT_EQ(shape.size(), 30);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(to_string(shape), "[2, 3, 5]");
  EXPECT_EQ(shape.with(-1, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(shape.dims<3>(), (Dims<3>{2, 3, 5}));
  EXPECT_EQ(Shape(Dims<2>{4, 6}), (Shape{4, 6}));
}

TEST(Shape, OfNoDimensionsIsOneNumber) {
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ(to_string(Shape()), "[]");
  EXPECT_NE(Shape(), (Shape{1}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
}

TEST(Shape, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] { return Shape{1, 2, 3, 4, 5}; }), "tensor: a shape of 5 dimensions came, expected at most 4");
  EXPECT_EQ(error_of([] { return Shape{2, -1}; }), "tensor: shape [2, -1] came, expected no negative extent");
  EXPECT_EQ(error_of([] {
              return Shape{2, 3}.with(0, -4);
            }),
            "tensor: shape [-4, 3] came, expected no negative extent");
  EXPECT_EQ(error_of([] {
              return Shape{int64_t{1} << 40, int64_t{1} << 40};
            }),
            "tensor: shape [1099511627776, 1099511627776] came, expected at most 2^58 numbers");
  // Strides would not fit either.
  EXPECT_NE(error_of([] { return Shape{0, int64_t{1} << 40, int64_t{1} << 40}; }), "no error");
}

TEST(Tensor, IsMadeFilledOrFromNumbers) {
  EXPECT_EQ(Tensor::zeros({2, 2}).to_doubles(), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(Tensor::full({3}, 1.5, DType::f64).to_doubles(), (std::vector<double>{1.5, 1.5, 1.5}));
  EXPECT_EQ(Tensor::full({2}, 7, DType::i32).to_doubles(), (std::vector<double>{7, 7}));
  const std::vector<float> floats{1, 2, 3};
  const std::vector<double> doubles{0.1};
  const std::vector<int32_t> integers{-4, 5};
  EXPECT_EQ(Tensor::of({3}, floats).dtype(), DType::f32);
  EXPECT_EQ(Tensor::of({3}, floats).to_doubles(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(Tensor::of({}, doubles).item(), 0.1);
  EXPECT_EQ(Tensor::of({2, 1}, integers).to_doubles(), (std::vector<double>{-4, 5}));
  EXPECT_EQ(Tensor::full({1}, 3, DType::i32).item(), 3);
  EXPECT_EQ(Tensor::zeros_like(Tensor::full({2}, 1, DType::f64)).dtype(), DType::f64);
}

TEST(Tensor, BeginsAtACacheLine) {
  for (const int64_t size : {0, 1, 17, 1000}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Tensor::uninitialised({size}).raw()) % 64, 0u);
  }
}

TEST(Tensor, EmptyIsNotOneNumber) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_TRUE((none.view<const float, 2>().empty()));
  EXPECT_FALSE(none.clone());
  EXPECT_FALSE(none.converted(DType::f64));
  EXPECT_TRUE(none.to_doubles().empty());
  none.copy_from(Tensor());
  EXPECT_TRUE(Tensor::zeros({0, 3}));
  EXPECT_EQ(Tensor::zeros({0, 3}).clone().shape(), (Shape{0, 3}));
}

TEST(Tensor, CopiesOfTheHandleShareAndClonesDoNot) {
  const Tensor a = counting({2, 2});
  EXPECT_TRUE(a.sole());
  const Tensor b = a;
  EXPECT_FALSE(a.sole());
  const Tensor c = a.clone();
  EXPECT_TRUE(c.sole());
  b.data<float>()[3] = 9;
  EXPECT_EQ(a.to_doubles()[3], 9);
  EXPECT_EQ(c.to_doubles()[3], 3);
}

TEST(Tensor, ReshapingSharesTheNumbers) {
  const Tensor a = counting({2, 6}), b = a.reshaped({3, 4});
  EXPECT_EQ(b.shape(), (Shape{3, 4}));
  b.data<float>()[11] = -1;
  EXPECT_EQ(a.to_doubles()[11], -1);
  EXPECT_EQ(Tensor::full({1, 1}, 2).reshaped({}).item(), 2);
}

TEST(Tensor, SlicesOfSlicesShareTheNumbers) {
  const Tensor a = counting({4, 3}), b = a.slice(1, 3).slice(1, 1);
  EXPECT_EQ(b.shape(), (Shape{1, 3}));
  EXPECT_EQ(b.to_doubles(), (std::vector<double>{6, 7, 8}));
  b.fill(0);
  EXPECT_EQ(a.slice(1, 3).to_doubles(), (std::vector<double>{3, 4, 5, 0, 0, 0, 9, 10, 11}));
  EXPECT_EQ(b.clone().to_doubles(), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(a.slice(4, 0).size(), 0);
  EXPECT_EQ(Tensor::zeros({0, 3}).slice(0, 0).shape(), (Shape{0, 3}));
}

TEST(Tensor, OutlivesTheHandleItWasCutFrom) {
  Tensor part;
  {
    const Tensor whole = counting({100, 10});
    part = whole.slice(99, 1);
  }
  EXPECT_EQ(part.to_doubles().back(), 999);
}

TEST(Tensor, ViewsTakeLeadingDimensionsTogether) {
  const Tensor a = counting({2, 3, 4});
  EXPECT_EQ((a.view<const float, 2>().shape()), (Dims<2>{6, 4}));
  EXPECT_EQ((a.view<const float, 1>().shape()), (Dims<1>{24}));
  EXPECT_EQ((a.view<const float, 3>().shape()), (Dims<3>{2, 3, 4}));
  EXPECT_EQ((a.view<float, 4>().shape()), (Dims<4>{1, 2, 3, 4}));
  EXPECT_EQ((a.view<const float, 2>()(5, 3)), 23);
  EXPECT_EQ((a.slice(1, 1).view<const float, 2>()(0, 0)), 12);
  EXPECT_EQ((Tensor::full({}, 5).view<const float, 2>().shape()), (Dims<2>{1, 1}));
  EXPECT_EQ((Tensor::zeros({3, 0}).view<const float, 2>().shape()), (Dims<2>{3, 0}));
}

TEST(Tensor, ConvertsBetweenSingleAndDouble) {
  const std::vector<double> numbers{0.1, -2, 1e10};
  const Tensor wide = Tensor::of({3}, numbers), narrow = wide.converted(DType::f32);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(narrow.data<float>()[i], static_cast<float>(numbers[i]));
  EXPECT_EQ(narrow.converted(DType::f64).to_doubles(), narrow.to_doubles());
  const Tensor same = wide.converted(DType::f64);
  same.fill(0);
  EXPECT_EQ(wide.to_doubles(), numbers);
}

TEST(Tensor, HoldsNumbersOf16Bits) {
  const std::vector<BFloat16> brains{BFloat16::from(1.5f), BFloat16::from(-3.0f)};
  const std::vector<Float16> halves{Float16::from(0.25f)};
  EXPECT_EQ(Tensor::of({2}, brains).dtype(), DType::bf16);
  EXPECT_EQ(Tensor::of({2}, brains).to_doubles(), (std::vector<double>{1.5, -3}));
  EXPECT_EQ(Tensor::of({}, halves).dtype(), DType::f16);
  EXPECT_EQ(Tensor::of({}, halves).item(), 0.25);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    EXPECT_EQ(Tensor::full({2}, 1.0 / 3, dtype).to_doubles(),
              Tensor::full({2}, 1.0 / 3, DType::f64).converted(dtype).to_doubles());
    const Tensor a = counting({4, 3}).converted(dtype), b = a.slice(1, 2);
    EXPECT_EQ(a.bytes(), 24u);
    EXPECT_EQ(b.to_doubles(), (std::vector<double>{3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(a.reshaped({2, 6}).slice(1, 1).to_doubles(), (std::vector<double>{6, 7, 8, 9, 10, 11}));
    b.copy_from(Tensor::full({2, 3}, -1, dtype));
    EXPECT_EQ(a.clone().to_doubles(), (std::vector<double>{0, 1, 2, -1, -1, -1, -1, -1, -1, 9, 10, 11}));
    EXPECT_EQ((a.slice(3, 1).converted(DType::f32).view<const float, 2>()(0, 2)), 11);
    EXPECT_EQ(Tensor::zeros({0, 3}, dtype).converted(DType::f64).shape(), (Shape{0, 3}));
  }
  EXPECT_EQ((Tensor::of({2}, brains).view<const BFloat16, 1>()(1).bits), BFloat16::from(-3.0f).bits);
}

TEST(Tensor, SaysWhatIsWrong) {
  const Tensor a = counting({2, 3});
  EXPECT_EQ(error_of([&] { return a.reshaped({4}); }), "tensor: shape [2, 3] cannot become [4], expected 6 numbers");
  EXPECT_EQ(error_of([&] { return Tensor().reshaped({}); }), "tensor: an empty tensor came, expected one to see as []");
  EXPECT_EQ(error_of([&] { return a.slice(1, 2); }),
            "tensor: 2 entries from 1 on came for shape [2, 3], expected them within its first dimension");
  EXPECT_EQ(error_of([&] { return a.slice(-1, 1); }),
            "tensor: 1 entries from -1 on came for shape [2, 3], expected them within its first dimension");
  EXPECT_NE(error_of([&] { return a.slice(INT64_MAX, INT64_MAX); }), "no error");
  EXPECT_NE(error_of([&] { return Tensor::full({}, 1).slice(0, 1); }), "no error");
  EXPECT_EQ(error_of([&] { return a.item(); }), "tensor: shape [2, 3] came, expected a single number");
  EXPECT_EQ(error_of([&] { return Tensor().item(); }), "tensor: an empty tensor came, expected a single number");
  EXPECT_EQ(error_of([&] {
              a.copy_from(Tensor::zeros({2, 3}, DType::f64));
            }),
            "tensor: shape [2, 3] in f64 came, expected [2, 3] in f32");
  EXPECT_EQ(error_of([&] { Tensor::full({}, 1).copy_from(Tensor()); }),
            "tensor: an empty tensor came, expected shape [] in f32");
  EXPECT_EQ(error_of([] {
              return Tensor::of({2}, std::vector<float>{1, 2, 3});
            }),
            "tensor: 3 numbers came for shape [2], expected 2");
  EXPECT_EQ(error_of([] { return Tensor::zeros({2}, DType::i32).converted(DType::f32); }),
            "tensor: a tensor in i32 came, expected f32, f64, bf16 or f16");
  EXPECT_EQ(error_of([] { return Tensor::zeros({2}, DType::f16).converted(DType::i32); }),
            "tensor: a tensor in i32 came, expected f32, f64, bf16 or f16");
  EXPECT_EQ(error_of([] { with_float("norm", DType::bf16, [](auto) {}); }),
            "norm: a tensor in bf16 came, expected f32 or f64");
}

}  // namespace
}  // namespace heed
