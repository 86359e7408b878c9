// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/activation.h"

#include <cassert>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/activation.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/exp-inl.h"
#include "heed/kernels/rows-inl.h"
#include "heed/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Each has value(x), which becomes act(x), and slope(x), which becomes act'(x).
struct None {
  template <int N>
  static HWY_INLINE void value(F, V (&)[N]) {}
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    for (V& v : x) v = hn::Set(d, 1.0f);
  }
};

struct Relu {
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    for (V& v : x) v = hn::IfThenElse(hn::Le(v, hn::Zero(d)), hn::Zero(d), v);
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    const V one = hn::Set(d, 1.0f);
    for (V& v : x) v = hn::IfThenElse(hn::Gt(v, hn::Zero(d)), one, hn::IfThenElseZero(hn::Not(hn::Eq(v, v)), v));
  }
};

// x Phi(x), and Phi(x) + x Phi'(x)
struct Gelu {
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    V below[N], density[N];
    normal(d, x, below, density);
    for (int i = 0; i < N; ++i) x[i] = hn::Mul(x[i], below[i]);
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    V below[N], density[N];
    normal(d, x, below, density);
    for (int i = 0; i < N; ++i) x[i] = hn::MulAdd(x[i], density[i], below[i]);
  }
};

// x s(u), and s(u) (1 + x s(-u) u'), where s is the sigmoid.
template <int N>
HWY_INLINE void gated_slope(F d, const V (&u)[N], const V (&du)[N], V (&x)[N]) {
  V of_u[N], of_minus_u[N];
  sigmoids(d, u, of_u, of_minus_u);
  for (int i = 0; i < N; ++i) {
    x[i] = hn::Mul(of_u[i], hn::MulAdd(hn::Mul(x[i], of_minus_u[i]), du[i], hn::Set(d, 1.0f)));
  }
}

// u = 2 sqrt(2/pi) (x + 0.044715 x^3), by (1 + tanh(z)) / 2 = s(2z). x is held where the gate is 0 or 1 in f32, so that
// no power of it overflows.
struct GeluTanh {
  static constexpr float kRoot = 0x1.988454p0f, kCubic = 0.044715f;

  template <int N>
  static HWY_INLINE void argument(F d, const V (&x)[N], V (&u)[N], V (&du)[N]) {
    for (int i = 0; i < N; ++i) {
      const V held = hn::CopySignToAbs(min_keep_nan(d, hn::Set(d, 16.0f), hn::Abs(x[i])), x[i]);
      const V cubic = hn::Mul(hn::Mul(held, held), hn::Set(d, kCubic));
      u[i] = hn::Mul(hn::MulAdd(cubic, held, held), hn::Set(d, kRoot));
      du[i] = hn::MulAdd(cubic, hn::Set(d, 3 * kRoot), hn::Set(d, kRoot));
    }
  }
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    V u[N], du[N], of_u[N], of_minus_u[N];
    argument(d, x, u, du);
    sigmoids(d, u, of_u, of_minus_u);
    for (int i = 0; i < N; ++i) x[i] = hn::Mul(x[i], of_u[i]);
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    V u[N], du[N];
    argument(d, x, u, du);
    gated_slope(d, u, du, x);
  }
};

struct Silu {
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    V of_x[N], of_minus_x[N];
    sigmoids(d, x, of_x, of_minus_x);
    for (int i = 0; i < N; ++i) x[i] = hn::Mul(x[i], of_x[i]);
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    V u[N], du[N];
    for (int i = 0; i < N; ++i) u[i] = x[i], du[i] = hn::Set(d, 1.0f);
    gated_slope(d, u, du, x);
  }
};

struct Sigmoid {
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    V of_x[N], of_minus_x[N];
    sigmoids(d, x, of_x, of_minus_x);
    for (int i = 0; i < N; ++i) x[i] = of_x[i];
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    V of_x[N], of_minus_x[N];
    sigmoids(d, x, of_x, of_minus_x);
    for (int i = 0; i < N; ++i) x[i] = hn::Mul(of_x[i], of_minus_x[i]);
  }
};

// 1 - tanh(x)^2 = 4 s(2x) s(-2x), without the cancellation.
struct Tanh {
  template <int N>
  static HWY_INLINE void value(F d, V (&x)[N]) {
    tanh(d, x);
  }
  template <int N>
  static HWY_INLINE void slope(F d, V (&x)[N]) {
    for (V& v : x) v = hn::Add(v, v);
    Sigmoid::slope(d, x);
    for (V& v : x) v = hn::Mul(v, hn::Set(d, 4.0f));
  }
};

template <class Act>
void value_span(const float* x, float* y, int64_t n) {
  const F d;
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    Act::value(d, v);
    store_vectors(d, v, y + at, left);
  });
}

// dx = dy act'(x), and what was there, if `add`.
template <class Act>
void slope_span(const float* x, const float* dy, float* dx, int64_t n, bool add) {
  const F d;
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], g[N];
    load_vectors(d, x + at, left, v);
    load_vectors(d, dy + at, left, g);
    Act::slope(d, v);
    for (int i = 0; i < N; ++i) v[i] = hn::Mul(g[i], v[i]);
    if (add) {
      load_vectors(d, dx + at, left, g);
      for (int i = 0; i < N; ++i) v[i] = hn::Add(v[i], g[i]);
    }
    store_vectors(d, v, dx + at, left);
  });
}

// call(act) with the struct of an activation.
template <class Call>
HWY_INLINE void with_activation(Activation activation, const Call& call) {
  switch (activation) {
    case Activation::none:
      return call(None{});
    case Activation::relu:
      return call(Relu{});
    case Activation::gelu:
      return call(Gelu{});
    case Activation::gelu_tanh:
      return call(GeluTanh{});
    case Activation::silu:
      return call(Silu{});
    case Activation::tanh:
      return call(Tanh{});
    case Activation::sigmoid:
      return call(Sigmoid{});
  }
}

void activate_span(Activation activation, const float* x, float* y, int64_t n) {
  with_activation(activation, [&](auto act) { value_span<decltype(act)>(x, y, n); });
}

void activation_slope_span(Activation activation, const float* x, const float* dy, float* dx, int64_t n, bool add) {
  with_activation(activation, [&](auto act) { slope_span<decltype(act)>(x, dy, dx, n, add); });
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(activate_span);
HWY_EXPORT(activation_slope_span);

void activation_forward(Activation activation, View<const float, 2> x, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape());
  if (is_flat(x) && is_flat(y)) x = flattened(x), y = flattened(y);
  for_row_parts(x.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(activate_span)(activation, x.at(r, c), y.at(r, c), n);
  });
}

void activation_backward(Activation activation, View<const float, 2> x, View<const float, 2> dy, View<float, 2> dx,
                         Parallel& parallel) noexcept {
  assert(x.shape() == dy.shape() && x.shape() == dx.shape());
  if (is_flat(x) && is_flat(dy) && is_flat(dx)) x = flattened(x), dy = flattened(dy), dx = flattened(dx);
  for_row_parts(x.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(activation_slope_span)(activation, x.at(r, c), dy.at(r, c), dx.at(r, c), n, true);
  });
}

void activate(Activation activation, std::span<const float> x, std::span<float> y) noexcept {
  assert(x.size() == y.size());
  HWY_DYNAMIC_DISPATCH(activate_span)(activation, x.data(), y.data(), std::ssize(x));
}

void activation_slope(Activation activation, std::span<const float> x, std::span<const float> dy,
                      std::span<float> dx) noexcept {
  assert(x.size() == dy.size() && x.size() == dx.size());
  HWY_DYNAMIC_DISPATCH(activation_slope_span)(activation, x.data(), dy.data(), dx.data(), std::ssize(x), false);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
