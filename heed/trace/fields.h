// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fields of a trace's structs with their names in the file, once, for the writer and the reader. A field may be
// left out of a file if it is an optional, a Ref or a vector that is marked with Optional; any other must be there.
// Internal.
#include "heed/trace/trace.h"

namespace heed::trace {

struct Optional {};  // an empty one is not written, and need not be there

void fields(Token& o, auto&& f) {
  f("id", o.id), f("piece", o.piece), f("text", o.text);
  f("start", o.start), f("end", o.end), f("word", o.word);
  f("special", o.special), f("prob", o.prob);
}
void fields(Sequence& o, auto&& f) { f("id", o.id), f("role", o.role), f("text", o.text), f("tokens", o.tokens); }
void fields(Span& o, auto&& f) { f("seq", o.seq), f("begin", o.begin), f("end", o.end); }
void fields(Score& o, auto&& f) {
  f("fn", o.fn), f("scale", o.scale), f("softcap", o.softcap), f("slopes", o.slopes, Optional{});
}
void fields(Mask& o, auto&& f) {
  f("type", o.type), f("offset", o.offset), f("left", o.left), f("right", o.right), f("keys", o.keys);
}
void fields(Feed& o, auto&& f) { f("state", o.state), f("at", o.at); }
void fields(Additive& o, auto&& f) { f("w", o.w); }
void fields(RowStats& o, auto&& f) { f("entropy", o.entropy), f("max", o.max), f("row_sum_error", o.row_sum_error); }
void fields(Top& o, auto&& f) { f("keys", o.keys), f("weights", o.weights); }
void fields(HeadMap& o, auto&& f) { f("head", o.head), f("mean", o.mean), f("max", o.max); }
void fields(Pooled& o, auto&& f) {
  f("queries", o.queries), f("keys", o.keys), f("maps", o.maps), f("received", o.received);
}
void fields(Tile& o, auto&& f) { f("head", o.head), f("q", o.q), f("k", o.k), f("lse", o.lse), f("error", o.error); }
void fields(Attention& o, auto&& f) {
  f("id", o.id), f("path", o.path), f("stack", o.stack), f("layer", o.layer), f("role", o.role);
  f("heads", o.heads), f("key_heads", o.key_heads), f("q", o.q), f("k", o.k), f("score", o.score), f("mask", o.mask);
  f("weights", o.weights), f("lse", o.lse), f("Q", o.Q), f("K", o.K), f("V", o.V), f("O", o.O);
  f("additive", o.additive), f("feed", o.feed), f("stats", o.stats);
  f("top", o.top), f("pooled", o.pooled), f("tiles", o.tiles, Optional{});
}
void fields(States& o, auto&& f) {
  f("path", o.path), f("stack", o.stack), f("cell", o.cell), f("layer", o.layer), f("direction", o.direction);
  f("tokens", o.tokens), f("h", o.h), f("c", o.c), f("names", o.names, Optional{}), f("gates", o.gates);
  f("h0", o.h0), f("c0", o.c0);
}
void fields(Alternative& o, auto&& f) { f("id", o.id), f("piece", o.piece), f("logprob", o.logprob); }
void fields(Step& o, auto&& f) {
  f("row", o.row), f("id", o.id), f("piece", o.piece), f("logprob", o.logprob), f("forced", o.forced);
  f("alternatives", o.alternatives, Optional{});
}
void fields(Result& o, auto&& f) {
  f("seq", o.seq), f("text", o.text), f("logprob", o.logprob), f("score", o.score), f("finished", o.finished);
  f("steps", o.steps);
}
void fields(Output& o, auto&& f) {
  fields(static_cast<Result&>(o), f);
  f("others", o.others, Optional{});
}
void fields(LeftOut& o, auto&& f) { f("tokens", o.tokens), f("change", o.change); }
void fields(HeadEffect& o, auto&& f) {
  f("path", o.path), f("head", o.head), f("gradient", o.gradient), f("off", o.off);
}
void fields(LinkEffects& o, auto&& f) { f("path", o.path), f("values", o.values), f("gradients", o.gradients); }
void fields(TokenShares& o, auto&& f) {
  f("source", o.source), f("target", o.target), f("baseline", o.baseline), f("error", o.error);
}
void fields(Effect& o, auto&& f) {
  f("seq", o.seq), f("row", o.row), f("name", o.name), f("against", o.against), f("value", o.value);
  f("left_out", o.left_out, Optional{}), f("heads", o.heads, Optional{}), f("links", o.links, Optional{});
  f("integrated", o.integrated), f("rollout", o.rollout);
}
void fields(Model& o, auto&& f) {
  f("kind", o.kind), f("task", o.task), f("layers", o.layers), f("heads", o.heads), f("kv_heads", o.kv_heads);
  f("width", o.width), f("head_width", o.head_width);
}
void fields(Capture& o, auto&& f) {
  f("full", o.full), f("dropped", o.dropped), f("precision", o.precision), f("tolerance", o.tolerance);
}
// Without format, version and tensors, which are not plain fields.
void fields(Trace& o, auto&& f) {
  f("tool", o.tool), f("label", o.label), f("model", o.model), f("sequences", o.sequences), f("attn", o.attn),
      f("states", o.states);
  f("output", o.output), f("effects", o.effects, Optional{}), f("capture", o.capture);
}

}  // namespace heed::trace
