// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/kept_attention.h"

#include <algorithm>
#include <utility>

#include "heed/base/error.h"
#include "heed/nn/attention_weights.h"

namespace heed::analysis {
namespace {

// A strided view as a tensor of its own.
template <class T, size_t Rank>
Tensor copied(const View<const T, Rank>& from) {
  if (!from) return {};
  Tensor to = Tensor::uninitialised(Shape(from.shape()), kDType<T>);
  const View<T, Rank> numbers = to.view<T, Rank>();
  if constexpr (Rank == 4) {
    for (int64_t b = 0; b < from.shape(0); ++b) {
      for (int64_t h = 0; h < from.shape(1); ++h) {
        for (int64_t t = 0; t < from.shape(2); ++t) {
          std::copy_n(from.at(b, h, t), from.shape(3), numbers.at(b, h, t));
        }
      }
    }
  } else if constexpr (Rank == 2) {
    for (int64_t i = 0; i < from.shape(0); ++i) std::copy_n(from.at(i), from.shape(1), numbers.at(i));
  } else {
    for (int64_t i = 0; i < from.shape(0); ++i) numbers(i) = from(i);
  }
  return to;
}

}  // namespace

double KeptAttention::gate_of(int64_t head) const {
  if (!gate) return 1;
  return with_float("attention", gate.dtype(), [&](auto type) { return double{gate.data<decltype(type)>()[head]}; });
}

nn::TextSide KeptAttention::query_side() const {
  return role == nn::AttentionRole::self ? nn::TextSide::source : nn::TextSide::target;
}

nn::TextSide KeptAttention::key_side() const {
  return role == nn::AttentionRole::masked ? nn::TextSide::target : nn::TextSide::source;
}

Tensor KeptAttention::weights(const Context& context, std::span<const int64_t> chosen) const {
  kernels::AttentionInputs in;
  kernels::reference::Inputs in_f64;
  if (q.dtype() == DType::f32) {
    in.q = q.view<const float, 4>(), in.k = k.view<const float, 4>(), in.v = v.view<const float, 4>();
    in.w = w.view<const float, 2>();
  } else {
    in_f64.q = q.view<const double, 4>(), in_f64.k = k.view<const double, 4>(), in_f64.v = v.view<const double, 4>();
    in_f64.w = w.view<const double, 2>();
  }
  const nn::AttentionEvent event{.path = path,
                                 .role = role,
                                 .position = 0,
                                 .rows = {},
                                 .inputs = in,
                                 .inputs_f64 = in_f64,
                                 .stats = stats,
                                 .options = options};
  const Tensor all = nn::attention_weights(event, chosen, context.workspace, context.parallel);
  return all.slice(0, 1).reshaped({heads(), std::ssize(chosen), keys()}).converted(DType::f64);
}

void AttentionKeeper::attention(const nn::AttentionEvent& event) {
  ObserverBeside::attention(event);
  KeptAttention kept{.path = event.path,
                     .role = event.role,
                     .stats = event.stats,
                     .projected = event.projected,
                     .projection = event.projection,
                     .options = event.options};
  if (event.dtype() == DType::f64) {
    const kernels::reference::Inputs& in = event.inputs_f64;
    kept.q = copied(in.q), kept.k = copied(in.k), kept.v = copied(in.v);
    kept.gate = copied(in.head_gate), kept.w = copied(in.w);
  } else {
    const kernels::AttentionInputs& in = event.inputs;
    kept.q = copied(in.q), kept.k = copied(in.k.rows()), kept.v = copied(in.v.rows());
    kept.gate = copied(in.head_gate), kept.w = copied(in.w);
  }
  layers_.push_back(std::move(kept));
}

std::vector<KeptAttention> of_texts(std::vector<KeptAttention> layers, const Question& question) {
  if (layers.empty()) throw Error("the model has no attention, expected one that has heads");
  std::erase_if(layers, [&](const KeptAttention& one) {
    return one.queries() != question.tokens(one.query_side()) || one.keys() != question.tokens(one.key_side());
  });
  return layers;
}

std::vector<KeptAttention> kept_attention(const nn::Pass& pass, const Question& question) {
  AttentionKeeper keeper(pass.observer);
  nn::Pass own = pass;
  own.observer = &keeper;
  question.measure(own);
  return of_texts(keeper.layers(), question);
}

}  // namespace heed::analysis
