// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/single_head_attention.h"

#include <cmath>
#include <utility>

#include "heed/base/error.h"
#include "heed/nn/recurrent.h"

namespace heed::nn {
SingleHeadAttention::SingleHeadAttention(Score kind, std::string name, int64_t width, int64_t source_width, Init init)
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

Var SingleHeadAttention::keys(Pass& pass, const Var& source) const {
  return score == Score::additive ? key(pass, source) : source;
}

ops::AttentionArguments SingleHeadAttention::arguments(Pass& pass, const Var& keys, const Var& source,
                                                       const AttentionCall& call) const {
  ops::AttentionArguments a{.k = keys, .v = source};
  a.options.mask = call.mask;
  if (score != Score::scaled) a.options.scale = 1;
  if (score == Score::additive) a.w = pass.use(w);
  a.head_gate = pass.head_gate(path, 1, keys.dtype());
  return a;
}

Var SingleHeadAttention::operator()(Pass& pass, const Var& x, const Var& keys, const Var& source,
                                    const AttentionCall& call) const {
  ops::AttentionArguments a = arguments(pass, keys, source, call);
  a.q = query.exists() ? query(pass, x) : x;
  const ops::AttentionResult result = ops::attention(pass, a);
  report_attention(pass, path, a, result.stats, call);
  return pass.head_outputs(path, 1, result.out);
}

ops::AttentiveRecurrenceResult SingleHeadAttention::recurrence(Pass& pass, const std::string& recurrence_path,
                                                               ops::AttentiveRecurrenceArguments a,
                                                               const AttentionCall& call) const {
  ops::AttentionArguments attention = arguments(pass, a.keys, a.values, call);
  a.w_query = pass.use(query.weight), a.b_query = pass.use(query.bias);
  a.w = attention.w, a.head_gate = attention.head_gate, a.attention = attention.options;
  a.recurrence.trace = pass.wants_recurrent();
  const ops::AttentiveRecurrenceResult result = ops::attentive_recurrence(pass, a);
  attention.q = result.queries;
  report_attention(pass, path, attention, result.stats, call);
  report_recurrent(pass, recurrence_path, a.recurrence, {result.h, result.last_h, result.last_c, result.trace},
                   call.position);
  return result;
}

}  // namespace heed::nn
