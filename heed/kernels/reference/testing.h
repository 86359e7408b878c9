// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of the twins share: arrays that own their numbers, and calls that give everything back.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/view.h"
#include "heed/kernels/reference/attention.h"

namespace heed::kernels::reference {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);

template <size_t Rank>
struct Array {
  Dims<Rank> shape;
  std::vector<double> data;

  explicit Array(const Dims<Rank>& dims, double value = 0) : shape(dims), data(element_count(dims), value) {}
  Array(const Dims<Rank>& dims, std::vector<double> values) : shape(dims), data(std::move(values)) {
    EXPECT_EQ(std::ssize(data), element_count(dims));
  }
  View<double, Rank> view() { return {data.data(), shape}; }
  View<const double, Rank> view() const { return {data.data(), shape}; }
};
using Array4 = Array<4>;

// The example most are worked out from. q = (1, 2), k = (0, ln 2), so the scores are (0, ln 2) and (0, ln 4), their
// exponentials (1, 2) and (1, 4), the weights (1/3, 2/3) and (1/5, 4/5). With v = (30, 60): 10 + 40 = 50 and 6 + 48
// = 54.
inline const Array4 kQ({1, 1, 2, 1}, {1, 2}), kK({1, 1, 2, 1}, {0, kLn2}), kV({1, 1, 2, 1}, {30, 60});

struct Arrays {
  Array4 q, k, v;
  std::optional<Array4> bias{};
  std::optional<Array<1>> head_gate{};
  std::optional<Array<2>> w{};

  Inputs inputs() const {
    Inputs in{q.view(), k.view(), v.view()};
    if (bias) in.bias = bias->view();
    if (head_gate) in.head_gate = head_gate->view();
    if (w) in.w = w->view();
    return in;
  }
};

struct Result {
  Array4 out;
  Array<3> lse;
  Array4 raw, capped, masked, weights;
};

// Outputs start as NaN: whatever is not written shows.
inline Result run(const Arrays& a, const AttentionOptions& options = {}) {
  const int64_t B = a.q.shape[0], H = a.q.shape[1], T = a.q.shape[2], S = a.k.shape[2];
  const Array4 pairs({B, H, T, S}, kNaN);
  Result r{Array4({B, H, T, a.v.shape[3]}, kNaN), Array<3>({B, H, T}, kNaN), pairs, pairs, pairs, pairs};
  attention_forward(a.inputs(),
                    {.out = r.out.view(),
                     .lse = r.lse.view(),
                     .raw = r.raw.view(),
                     .capped = r.capped.view(),
                     .masked = r.masked.view(),
                     .weights = r.weights.view()},
                    options);
  return r;
}

inline Result run(const Array4& q, const Array4& k, const Array4& v, const AttentionOptions& options = {}) {
  return run(Arrays{q, k, v}, options);
}

// Of optional inputs that are not there, empty arrays.
struct Gradient {
  Array4 dq, dk, dv, d_bias;
  Array<1> d_head_gate;
  Array<2> dw;

  explicit Gradient(const Arrays& a)
      : dq(a.q.shape),
        dk(a.k.shape),
        dv(a.v.shape),
        d_bias(a.bias ? a.bias->shape : Dims<4>{}),
        d_head_gate(a.head_gate ? a.head_gate->shape : Dims<1>{}),
        dw(a.w ? a.w->shape : Dims<2>{}) {}

  // With no d_out yet.
  Gradients views() {
    return {.dq = dq.view(),
            .dk = dk.view(),
            .dv = dv.view(),
            .d_bias = d_bias.view(),
            .d_head_gate = d_head_gate.view(),
            .dw = dw.view()};
  }
};

inline Gradient run_backward(const Arrays& a, const Array4& d_out, const AttentionOptions& options = {}) {
  Gradient g(a);
  Gradients views = g.views();
  views.d_out = d_out.view();
  attention_backward(a.inputs(), views, options);
  return g;
}

inline AttentionOptions masked(const Mask& mask) { return {.mask = mask}; }

// Equal to a few roundings; infinities and zeros exactly, NaN wherever NaN is expected and nowhere else.
inline void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE("element " + std::to_string(i));
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << actual[i];
    } else if (std::isinf(expected[i]) || expected[i] == 0) {
      EXPECT_EQ(actual[i], expected[i]);
    } else {
      EXPECT_NEAR(actual[i], expected[i], 8 * std::numeric_limits<double>::epsilon() * std::abs(expected[i]));
    }
  }
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace heed::kernels::reference
