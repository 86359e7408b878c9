#include "heed/nn/alignment.h"

#include <utility>

#include "heed/base/error.h"
#include "heed/nn/recurrent.h"

namespace heed::nn {
namespace {

// Weights of equal scores are equal.
Var mean_of_visible(Pass& pass, const Var& x, std::span<const int64_t> lengths, kernels::Mask mask) {
  ops::AttentionArguments a{.q = Tensor::zeros({x.shape(0), 1, x.shape(2)}, x.dtype()), .k = x, .v = x};
  if (!lengths.empty()) mask.lengths = kernels::Lengths{lengths};
  a.options.mask = mask;
  return ops::reshape(pass, ops::attention(pass, a).out, {x.shape(0), x.shape(2)});
}

}  // namespace

Alignment::Alignment(Score kind, std::string name, int64_t width, int64_t source_width, Init init)
    : score(kind), path(std::move(name)) {
  if ((score == Score::dot || score == Score::scaled) && width != source_width) {
    throw Error("attention '" + path + "': source_width is " + std::to_string(source_width) + ", expected " +
                std::to_string(width) + " for a dot product with the queries");
  }
  if (score == Score::bilinear) query = Linear(width, source_width, init, false);
  if (score == Score::additive) {
    query = Linear(width, width, init);
    key = Linear(source_width, width, init, false);
    w = init.uniform({1, width}, std::sqrt(3.0 / static_cast<double>(width)));
  }
}

Var Alignment::keys(Pass& pass, const Var& source) const {
  return score == Score::additive ? key(pass, source) : source;
}

ops::AttentionArguments Alignment::arguments(Pass& pass, const Var& keys, const Var& source,
                                             const AttentionCall& call) const {
  ops::AttentionArguments a{.k = keys, .v = source};
  a.options.mask = call.mask;
  if (score != Score::scaled) a.options.scale = 1;
  if (score == Score::additive) a.w = pass.use(w);
  a.head_gate = pass.head_gate(path, 1, keys.dtype());
  return a;
}

Var Alignment::operator()(Pass& pass, const Var& x, const Var& keys, const Var& source,
                          const AttentionCall& call) const {
  ops::AttentionArguments a = arguments(pass, keys, source, call);
  a.q = query.weight.value ? query(pass, x) : x;
  const ops::AttentionResult result = ops::attention(pass, a);
  tell_attention(pass, path, a, result.stats, call);
  return result.out;
}

ops::AttentiveRecurrenceResult Alignment::recurrence(Pass& pass, const std::string& recurrence_path,
                                                     ops::AttentiveRecurrenceArguments a,
                                                     const AttentionCall& call) const {
  ops::AttentionArguments looked = arguments(pass, a.keys, a.values, call);
  a.w_query = pass.use(query.weight), a.b_query = pass.use(query.bias);
  a.w = looked.w, a.head_gate = looked.head_gate, a.attention = looked.options;
  a.recurrence.trace = pass.wants_recurrent();
  const ops::AttentiveRecurrenceResult result = ops::attentive_recurrence(pass, a);
  looked.q = result.queries;
  tell_attention(pass, path, looked, result.stats, call);
  tell_recurrent(pass, recurrence_path, a.recurrence, {result.h, result.last_h, result.last_c, result.trace},
                 call.position);
  return result;
}

Var mean_of_tokens(Pass& pass, const Var& x, std::span<const int64_t> lengths) {
  return mean_of_visible(pass, x, lengths, {});
}

Var last_of_tokens(Pass& pass, const Var& x, std::span<const int64_t> lengths) {
  return mean_of_visible(pass, x, lengths, kernels::Window::bottom_right(0, 0));
}

}  // namespace heed::nn
