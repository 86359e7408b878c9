#include "heed/nn/attention.h"

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

void tell_attention(Pass& pass, const std::string& path, const ops::AttentionArguments& a, const Tensor& stats,
                    const AttentionCall& call) {
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
                            .options = a.options});
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
  if (o.rotary) tables_ = ops::RotaryTables::make(o.positions, o.key_width, o.rotary_base);
}

Var Attention::rotated(Pass& pass, const Var& x, int64_t heads, int64_t position) const {
  if (!options.rotary) return x;
  const int64_t end = position + x.shape(1);
  if (end > options.positions) {
    throw Error("attention '" + path + "': a row of " + std::to_string(end) + " tokens came, expected at most " +
                std::to_string(options.positions) + " (positions)");
  }
  const ops::RotaryOptions at{.heads = heads, .offset = position};
  if (x.dtype() == DType::f32) return ops::rotary(pass, x, tables_, at);
  return ops::rotary(pass, x, ops::RotaryTables::make(end, options.key_width, options.rotary_base, x.dtype()), at);
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

Var Attention::attend(Pass& pass, const Var& query, const KeysValues& source, const AttentionCall& call) const {
  ops::AttentionArguments a{
      .q = query, .k = source.k, .v = source.v, .heads = options.heads, .kv_heads = options.kv_heads};
  a.options.mask = call.mask;
  a.options.dropout = pass.next_attention_dropout(options.dropout);
  if (options.score == Score::dot || options.score == Score::bilinear) a.options.scale = 1;
  if (options.score == Score::additive) a.w = pass.use(w);
  if (options.alibi) a.options.mask.alibi = kernels::Alibi::offset(call.position, slopes_);
  a.head_gate = pass.head_gate(path, options.heads, query.dtype());
  const ops::AttentionResult result = ops::attention(pass, a);
  tell_attention(pass, path, a, result.stats, call);
  return options.projections ? out(pass, result.out) : result.out;
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
  const int64_t position = cache.length;
  const KeysValues newest = project_source(pass, x, position);
  cache.append(newest.k.value(), newest.v.value());
  // The causal mask also hides the room after the rows that are there.
  return attend(pass, project_query(pass, x, position), {cache.k, cache.v},
                {AttentionRole::masked, kernels::Causal::offset(position), position});
}

KvCache Attention::remember(Pass& pass, const Var& source) const {
  check_inference(pass);
  const KeysValues all = project_source(pass, source, 0);
  return KvCache::of(all.k.value(), all.v.value(), pass.cache_dtype);
}

Var Attention::step(Pass& pass, const Var& x, const KvCache& source, const AttentionCall& call) const {
  check_inference(pass);
  return attend(pass, project_query(pass, x, call.position), {source.k, source.v}, call);
}

}  // namespace heed::nn
