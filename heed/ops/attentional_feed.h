// SPDX-License-Identifier: Apache-2.0
#pragma once
// Input feeding, as in Luong's decoder: not the context of the state before a token is fed to the cell, but a layer of
// state and context,
//
//   fed_t = tanh(w [h_{t-1} ; c_t] + b)          w [F,H + C]  b [F]
//
// AttentionalFeed wraps the attention that makes contexts; without w the recurrence is given that attention itself.
// Internal to ops.
#include <algorithm>

#include "heed/kernels/activation.h"
#include "heed/kernels/product.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/reference/linear.h"
#include "heed/tensor/tensor.h"

namespace heed::ops {

// The layer's weights, and what is kept of a forward pass; all empty where contexts are fed as they are.
struct FeedCall {
  Tensor w, b, fed;  // fed [B,T,F]
  Tensor pairs;      // [B,T,H + C]: the states before, and their contexts
  int64_t H = 0;

  // The contexts among the pairs, [B,T,C].
  template <class T>
  View<T, 3> contexts() const {
    return pairs.view<T, 3>().slice(2, H, pairs.shape(2) - H);
  }
};

// Room for gradients in a backward pass; empty in a forward pass.
struct FeedGradients {
  Tensor sums, pair;  // of w [h ; c] + b, all tokens [B,T,F]; of [h ; c], one token [B,H + C]
};

// A packed weight (kernels/weight.h), in memory that is kept for the next call (base/allocator.h).
struct CachedPanels {
  Tensor memory{};
  kernels::Weight weight{};

  CachedPanels() = default;
  CachedPanels(const View<const float, 2>& w, Parallel& parallel)
      : memory(Tensor::uninitialised(
            {static_cast<int64_t>(kernels::packed_weight_bytes(w.shape(0), w.shape(1), DType::f32) / sizeof(float))})),
        weight(kernels::pack_weight(w, DType::f32, memory.raw(), parallel)) {}
};

// The products of a step, in a forward or a backward pass.
template <class T>
class FeedProduct;

template <>
class FeedProduct<double> {
 public:
  FeedProduct(const FeedCall& call, bool /*backward*/, Parallel&) : call_(call) {}

  // y = tanh(x w^T + b)
  void forward(const View<const double, 2>& x, const View<double, 2>& y) const {
    kernels::reference::linear_forward({x, call_.w.view<const double, 2>(), call_.b.view<const double, 1>()}, {.y = y},
                                       kernels::Activation::tanh);
  }
  // dx = dz w
  void backward(const View<const double, 2>& dz, const View<double, 2>& dx) const {
    for (int64_t b = 0; b < dx.shape(0); ++b) std::fill_n(dx.at(b), dx.shape(1), 0.0);
    const View<const double, 2> x = dx;  // only its shape is read
    kernels::reference::linear_backward({x, call_.w.view<const double, 2>(), {}}, {.dy = dz, .dx = dx},
                                        kernels::Activation::none);
  }

 private:
  const FeedCall& call_;
};

template <>
class FeedProduct<float> {
 public:
  FeedProduct(const FeedCall& call, bool backward, Parallel& parallel)
      : b_(call.b.view<const float, 1>()), parallel_(parallel) {
    if (!call.w) return;
    const View<const float, 2> w = call.w.view<const float, 2>();
    w_ = CachedPanels(backward ? w.transposed(0, 1) : w, parallel);
  }

  void forward(const View<const float, 2>& x, const View<float, 2>& y) const {
    kernels::project(x, w_.weight, y, {.b = b_}, parallel_);
    kernels::activation_forward(kernels::Activation::tanh, y, y, parallel_);
  }
  void backward(const View<const float, 2>& dz, const View<float, 2>& dx) const {
    kernels::project(dz, w_.weight, dx, {}, parallel_);
  }

 private:
  CachedPanels w_;
  View<const float, 1> b_;
  Parallel& parallel_;
};

template <class T>
class AttentionalFeed final : public kernels::Feedback<T> {
 public:
  AttentionalFeed(const FeedCall& call, const FeedGradients& to, kernels::Feedback<T>& attention, Parallel& parallel)
      : call_(call), to_(to), attention_(attention), product_(call, static_cast<bool>(to.sums), parallel) {}

  // The feedback to give to the recurrence.
  kernels::Feedback<T>* feedback() { return call_.w ? this : &attention_; }

  void forward(int64_t t, const View<const T, 2>& h, const View<T, 2>& fed) noexcept override {
    const View<T, 2> pair = token_rows(call_.pairs, t);
    for (int64_t b = 0; b < h.shape(0); ++b) std::copy_n(h.at(b), h.shape(1), pair.at(b));
    attention_.forward(t, h, context_of(pair));
    product_.forward(pair, fed);
  }

  void backward(int64_t t, const View<const T, 2>& d_fed, const View<T, 2>& dh) noexcept override {
    const View<T, 2> fed = token_rows(call_.fed, t), sums = token_rows(to_.sums, t), pair = to_.pair.view<T, 2>();
    for (int64_t b = 0; b < fed.shape(0); ++b) {
      const T *y = fed.at(b), *dy = d_fed.at(b);
      T* dz = sums.at(b);
      for (int64_t j = 0; j < fed.shape(1); ++j) dz[j] = dy[j] * (1 - y[j] * y[j]);
    }
    product_.backward(sums, pair);
    for (int64_t b = 0; b < dh.shape(0); ++b) {
      for (int64_t j = 0; j < dh.shape(1); ++j) dh(b, j) += pair(b, j);
    }
    attention_.backward(t, context_of(pair), dh);
  }

 private:
  static View<T, 2> token_rows(const Tensor& x, int64_t t) {
    return {x.data<T>() + t * x.shape(2), {x.shape(0), x.shape(2)}, {x.shape(1) * x.shape(2), 1}};
  }
  View<T, 2> context_of(const View<T, 2>& pair) const { return pair.slice(1, call_.H, pair.shape(1) - call_.H); }

  const FeedCall& call_;
  const FeedGradients& to_;
  kernels::Feedback<T>& attention_;
  FeedProduct<T> product_;
};

}  // namespace heed::ops
