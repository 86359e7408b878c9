// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/dispatch.h"

#include <gtest/gtest.h>

#include <string>

#include "heed/base/testing.h"
#include "heed/ops/inputs.h"

namespace heed::ops {
namespace {

std::string f32(View<const float, 2> x, View<float, 1> y, Parallel&) {
  return "f32 " + std::to_string(x.shape(0)) + " " + std::to_string(y.shape(0));
}
std::string f64(View<const double, 2> x, View<double, 1> y) {
  return "f64 " + std::to_string(x.shape(0)) + " " + std::to_string(y.shape(0));
}
constexpr Kernel kKernel{f32, f64};

struct Pass {
  Parallel parallel{1};
  Workspace workspace;
  Context context{.parallel = parallel, .workspace = workspace};
};

TEST(Dispatch, TensorsChooseByTheirDType) {
  Pass pass;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::zeros({3, 2}, dtype), y = Tensor::zeros({2}, dtype);
    EXPECT_EQ(kKernel(pass.context, x, y), name_of(dtype) + std::string(" 3 2"));
    EXPECT_EQ(kKernel(pass.context, Var(x), y), name_of(dtype) + std::string(" 3 2"));
  }
}

TEST(Dispatch, TensorsThatAreNotThereSayNothing) {
  Pass pass;
  EXPECT_EQ(kKernel(pass.context, Tensor::zeros({3, 2}, DType::f64), Tensor()), "f64 3 0");
  EXPECT_EQ(kKernel(pass.context, Tensor(), Tensor::zeros({2}, DType::f64)), "f64 0 2");
}

TEST(Dispatch, IdsSayNothing) {
  Pass pass;
  constexpr Kernel kernel{[](View<const float, 1>, View<const int32_t, 1>) { return 32; },
                          [](View<const double, 1>, View<const int32_t, 1>) { return 64; }};
  EXPECT_EQ(kernel(pass.context, Tensor::zeros({2}, DType::f64), Tensor::zeros({1}, DType::i32)), 64);
  EXPECT_EQ(kernel(pass.context, Tensor::zeros({2}, DType::f32), Tensor::zeros({1}, DType::i32)), 32);
}

TEST(Dispatch, TypedViewsChooseAtCompileTime) {
  Pass pass;
  const Tensor y = Tensor::zeros({2}, DType::f64);
  EXPECT_EQ(kKernel(pass.context, Tensor::zeros({3, 2}, DType::f64).view<const double, 2>(), y), "f64 3 2");
}

TEST(Dispatch, AKernelIsGivenWhatItHasParametersFor) {
  Pass pass;
  constexpr Kernel scratch{[](double, Workspace& workspace, Parallel&) { return &workspace; },
                           [](const Tensor&) { return static_cast<Workspace*>(nullptr); }};
  EXPECT_EQ(scratch(pass.context, 1.0), &pass.workspace);
  constexpr Kernel reserved{[](double, Workspace& workspace, Parallel&) { return workspace.bytes(); },
                            [](const Tensor&) { return size_t{0}; },
                            [](double bytes) { return static_cast<size_t>(bytes); }};
  EXPECT_GE(reserved(pass.context, 1000.0), 1000u);
  constexpr Kernel whole{[](double, const Context& context) { return &context; },
                         [](const Tensor&) { return static_cast<const Context*>(nullptr); }};
  EXPECT_EQ(whole(pass.context, 1.0), &pass.context);
}

struct Arguments {
  Var x{}, w{}, b{};
};
constexpr InputList kInputs(std::to_array<NamedInput<Arguments>>({{"x", &Arguments::x}, {"w", &Arguments::w}}));
constexpr InputList kMore(std::to_array<NamedInput<Arguments>>({{"b", &Arguments::b}}), kInputs.end());
static_assert(kInputs[&Arguments::x] == 0 && kInputs[&Arguments::w] == 1 && kMore[&Arguments::b] == 2);

TEST(InputList, GivesInputsInItsOrder) {
  const Arguments a{.x = Tensor::zeros({1}), .w = Tensor::zeros({2}), .b = Tensor::zeros({3})};
  const auto all = joined(kInputs.of(a), kMore.of(a));
  ASSERT_EQ(all.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(all[static_cast<size_t>(i)].shape(0), i + 1);
}

TEST(InputList, NamesTheInputOfAnotherDType) {
  const Arguments a{.x = Tensor::zeros({1}), .w = Tensor::zeros({2}, DType::f64)};
  EXPECT_EQ(heed::testing::error_of([&] { kInputs.check_dtypes("op", a, DType::f32); }),
            "op: w is in f64, expected f32");
}

}  // namespace
}  // namespace heed::ops
