// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/attention.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "heed/base/error.h"

namespace heed::nn {
namespace {

AttentionOptions checked(AttentionOptions o, const std::string& path) {
  const auto fail = [&](const std::string& what) { throw Error("attention '" + path + "': " + what); };
  const auto text = [](int64_t n) { return std::to_string(n); };
  if (o.width < 1) fail("width is " + text(o.width) + ", expected 1 or more");
  if (o.heads < 1) fail("heads is " + text(o.heads) + ", expected 1 or more");
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  if (o.kv_heads < 1 || o.heads % o.kv_heads != 0) {
    fail("kv_heads is " + text(o.kv_heads) + ", expected a divisor of heads (" + text(o.heads) + ")");
  }
  if (o.source_width == 0) o.source_width = o.width;
  if ((o.key_width == 0 || o.value_width == 0) && o.width % o.heads != 0) {
    fail("width is " + text(o.width) + ", expected a multiple of heads (" + text(o.heads) + ")");
  }
  if (o.key_width == 0) o.key_width = o.width / o.heads;
  if (o.value_width == 0) o.value_width = o.width / o.heads;
  if (!o.projections && o.heads * o.key_width != o.width) {
    fail("width is " + text(o.width) + ", expected " + text(o.heads * o.key_width) +
         " without projections (heads times key_width)");
  }
  for (const int64_t head_width : {o.key_width, o.value_width}) {
    if (o.projections || o.kv_heads * head_width == o.source_width) continue;
    fail("source_width is " + text(o.source_width) + ", expected " + text(o.kv_heads * head_width) +
         " without projections (kv_heads times key_width and value_width)");
  }
  if (o.rotary && o.key_width % 2 != 0) {
    fail("key_width is " + text(o.key_width) + ", expected an even one for rotary");
  }
  return o;
}

}  // namespace

void report_attention(Pass& pass, const std::string& path, const ops::AttentionArguments& a, const Tensor& stats,
                      const AttentionCall& call, const Linear* projection) {
  if (!pass.observer) return;
  const kernels::AttentionInputs inputs = ops::attention_inputs(a);
  const kernels::reference::Inputs inputs_f64 = ops::attention_inputs_f64(a);
  pass.observer->attention({.path = path,
                            .role = call.role,
                            .position = call.position,
                            .rows = pass.rows_of(a.q.shape(0)),
                            .inputs = inputs,
                            .inputs_f64 = inputs_f64,
                            .stats = stats,
                            .options = a.options,
                            .projected = projection != nullptr,
                            .projection = projection ? projection->weight.value : Tensor()});
}

Attention::Attention(const AttentionOptions& wanted, std::string name, Init init)
    : options(checked(wanted, name)), path(std::move(name)) {
  const AttentionOptions& o = options;
  if (o.projections) {
    q = Linear(o.width, o.heads * o.key_width, init, o.bias);
    k = Linear(o.source_width, o.kv_heads * o.key_width, init, o.bias);
    v = Linear(o.source_width, o.kv_heads * o.value_width, init, o.bias);
    out = Linear(o.heads * o.value_width, o.width, init, o.bias);
  }
  if (o.score == Score::bilinear) bilinear = Linear(o.heads * o.key_width, o.heads * o.key_width, init, false);
  if (o.score == Score::additive) {
    w = init.uniform({o.heads, o.key_width}, std::sqrt(3.0 / static_cast<double>(o.key_width)));
  }
  if (o.alibi) slopes_ = alibi_slopes(o.heads);
  if (o.rotary) {
    // Of the first positions, as many as fit into 4 MB; those of others are computed when they are used.
    constexpr int64_t kKept = int64_t{1} << 20;
    tables_ = ops::RotaryTables::make(std::min(o.positions, kKept / o.key_width), o.key_width, o.rotary_base);
  }
}

Var Attention::rotated(Pass& pass, const Var& x, int64_t heads, int64_t position) const {
  if (!options.rotary) return x;
  const int64_t end = position + x.shape(1);
  if (end > options.positions) {
    throw Error("attention '" + path + "': a row of " + std::to_string(end) + " tokens came, expected at most " +
                std::to_string(options.positions) + " (positions)");
  }
  if (x.dtype() == DType::f32 && end <= tables_.cos.shape(0)) {
    return ops::rotary(pass, x, tables_, {.heads = heads, .offset = position});
  }
  const auto own = ops::RotaryTables::make(x.shape(1), options.key_width, options.rotary_base, x.dtype(), position);
  return ops::rotary(pass, x, own, {.heads = heads});
}

Var Attention::rotated(Pass& pass, const Var& x, int64_t heads, std::span<const int64_t> positions) const {
  if (!options.rotary) return x;
  const Tensor all = Tensor::like(x.value());
  for (int64_t row = 0; row < x.shape(0); ++row) {
    const Tensor one = rotated(pass, x.value().slice(row, 1), heads, positions[static_cast<size_t>(row)]).value();
    std::memcpy(all.slice(row, 1).raw(), one.raw(), one.bytes());
  }
  return all;
}

Var Attention::project_query(Pass& pass, const Var& x, int64_t position) const {
  Var query = options.projections ? q(pass, x) : x;
  if (options.score == Score::bilinear) query = bilinear(pass, query);
  return rotated(pass, query, options.heads, position);
}

Attention::KeysValues Attention::project_source(Pass& pass, const Var& source, int64_t position) const {
  const Var keys = options.projections ? k(pass, source) : source;
  return {rotated(pass, keys, options.kv_heads, position), options.projections ? v(pass, source) : source};
}

kernels::AttentionOptions Attention::kernel_options(Pass& pass, const AttentionCall& call) const {
  kernels::AttentionOptions o;
  o.mask = call.mask;
  o.dropout = pass.next_attention_dropout(options.dropout);
  if (options.score == Score::dot || options.score == Score::bilinear) o.scale = 1;
  if (options.alibi) o.mask.alibi = kernels::Alibi::offset(call.position, slopes_);
  return o;
}

// An observer, and the twin in double, see whole tensors.
Var Attention::attend(Pass& pass, const Var& query, const KvCache& source, const AttentionCall& call) const {
  if (pass.observer || query.dtype() != DType::f32) {
    return attend(pass, query, KeysValues{source.keys(), source.values()}, call);
  }
  const Tensor found = ops::attention(pass, {.q = query.value(),
                                             .k = source.keys_by_heads(options.kv_heads),
                                             .v = source.values_by_heads(options.kv_heads),
                                             .heads = options.heads,
                                             .w = w.value,
                                             .options = kernel_options(pass, call)});
  return options.projections ? out(pass, found) : Var(found);
}

Var Attention::attend(Pass& pass, const Var& query, const KeysValues& source, const AttentionCall& call) const {
  ops::AttentionArguments a{
      .q = query, .k = source.k, .v = source.v, .heads = options.heads, .kv_heads = options.kv_heads};
  a.options = kernel_options(pass, call);
  if (options.score == Score::additive) a.w = pass.use(w);
  a.head_gate = pass.head_gate(path, options.heads, query.dtype());
  const ops::AttentionResult result = ops::attention(pass, a);
  report_attention(pass, path, a, result.stats, call, options.projections ? &out : nullptr);
  const Var outputs = pass.head_outputs(path, options.heads, result.out);
  return options.projections ? out(pass, outputs) : outputs;
}

Var Attention::operator()(Pass& pass, const Var& x, const Var& source, const AttentionCall& call) const {
  return attend(pass, project_query(pass, x, call.position), project_source(pass, source, 0), call);
}

void Attention::check_inference(const Pass& pass) const {
  if (pass.tape)
    throw Error("attention '" + path + "': a step came with a tape, expected none: caches have no gradient");
}

Var Attention::step(Pass& pass, const Var& x, KvCache& cache) const {
  check_inference(pass);
  const std::span<const int64_t> lengths = cache.lengths();
  const bool equal = std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) == lengths.end();
  if (!equal) return step_each(pass, x, cache);
  const int64_t position = cache.length();
  const KeysValues newest = project_source(pass, x, position);
  cache.append(newest.k.value(), newest.v.value());
  return attend(pass, project_query(pass, x, position), cache,
                {AttentionRole::masked, kernels::Causal::offset(position), position});
}

// A token sees all that came before it in its row. ALiBi's distances are from the longest row's token: that shifts all
// scores of a row alike, which a softmax does not see.
Var Attention::step_each(Pass& pass, const Var& x, KvCache& cache) const {
  if (x.shape(1) != 1) {
    throw Error("attention '" + path + "': " + std::to_string(x.shape(1)) +
                " tokens a row came, expected 1 where rows have different lengths");
  }
  const std::vector<int64_t> at(cache.lengths().begin(), cache.lengths().end());
  Var query = options.projections ? q(pass, x) : x;
  if (options.score == Score::bilinear) query = bilinear(pass, query);
  const Var key = rotated(pass, options.projections ? k(pass, x) : x, options.kv_heads, at);
  cache.append(key.value(), (options.projections ? v(pass, x) : x).value());
  return attend(pass, rotated(pass, query, options.heads, at), cache,
                {AttentionRole::masked, kernels::Lengths{cache.lengths()}, cache.length() - 1});
}

KvCache Attention::remember(Pass& pass, const Var& source) const {
  check_inference(pass);
  const KeysValues all = project_source(pass, source, 0);
  return KvCache::of(all.k.value(), all.v.value(), pass.cache_dtype);
}

Var Attention::step(Pass& pass, const Var& x, const KvCache& source, const AttentionCall& call) const {
  check_inference(pass);
  return attend(pass, project_query(pass, x, call.position), source, call);
}

}  // namespace heed::nn
