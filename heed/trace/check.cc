// SPDX-License-Identifier: Apache-2.0
// Whether the parts of a trace fit each other.
#include <algorithm>
#include <limits>
#include <set>

#include "heed/base/error.h"
#include "heed/io/quote.h"
#include "heed/trace/trace.h"

namespace heed::trace {
namespace {

constexpr int64_t kAny = -1;
constexpr int64_t kFar = int64_t{1} << 53;  // tokens: sums of two are no overflow

std::string shown(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i ? ", " : "") + (shape[i] == kAny ? "any" : std::to_string(shape[i]));
  }
  return text + "]";
}

class Checker {
 public:
  explicit Checker(const Trace& trace) : trace_(trace) {}

  void run() {
    check_arrays();
    check_sequences();
    for (size_t i = 0; i < trace_.attn.size(); ++i) {
      const Attention& one = trace_.attn[i];
      at_ = "attn[" + std::to_string(i) + "]";
      check_attention(one);
      check_long(one);
    }
    for (size_t i = 0; i < trace_.states.size(); ++i) {
      at_ = "states[" + std::to_string(i) + "]";
      check_states(trace_.states[i]);
    }
    at_ = "output";
    check_result(trace_.output);
    for (size_t i = 0; i < trace_.output.others.size(); ++i) {
      at_ = "output.others[" + std::to_string(i) + "]";
      check_result(trace_.output.others[i]);
    }
    for (size_t i = 0; i < trace_.effects.size(); ++i) {
      at_ = "effects[" + std::to_string(i) + "]";
      check_effect(trace_.effects[i]);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error("trace: " + at_ + what); }

  void check_arrays() {
    for (const auto& [name, array] : trace_.tensors) {
      at_ = "tensors[" + io::quote(name) + "]";
      if (array.shape.size() > 4) fail(": " + std::to_string(array.shape.size()) + " dimensions, expected at most 4");
      int64_t bytes = bytes_of(array.dtype);
      for (const int64_t extent : array.shape) {
        if (extent < 0) fail(": shape is " + shown(array.shape) + ", expected no negative extents");
        if (extent > 0 && bytes > std::numeric_limits<int64_t>::max() / extent) fail(": its shape is too large");
        bytes *= extent;
      }
      if (bytes != std::ssize(array.bytes)) {
        fail(": " + std::to_string(array.bytes.size()) + " bytes came for shape " + shown(array.shape) + ", expected " +
             std::to_string(bytes));
      }
    }
  }

  void check_sequences() {
    std::set<std::string> names;
    for (size_t i = 0; i < trace_.sequences.size(); ++i) {
      const Sequence& one = trace_.sequences[i];
      at_ = "sequences[" + std::to_string(i) + "]";
      if (!names.insert(one.id).second) fail(": id " + io::quote(one.id) + " comes twice");
      const int64_t bytes = std::ssize(one.text);
      for (const Token& token : one.tokens) {
        if (token.start.has_value() != token.end.has_value()) fail(": a token has one of start and end");
        if (!token.start || (0 <= *token.start && *token.start <= *token.end && *token.end <= bytes)) continue;
        fail(": a token has bytes " + std::to_string(*token.start) + " to " + std::to_string(*token.end) +
             ", expected bytes of its text (" + std::to_string(bytes) + ")");
      }
    }
  }

  const Sequence& sequence(const std::string& what, const std::string& id) const {
    for (const Sequence& one : trace_.sequences) {
      if (one.id == id) return one;
    }
    fail(what + " names sequence " + io::quote(id) + ", which is not there");
  }

  void check_span(const std::string& what, const Span& span) const {
    const int64_t tokens = std::ssize(sequence(what, span.seq).tokens);
    if (0 <= span.begin && span.begin <= span.end && span.end <= tokens) return;
    fail(what + " is " + std::to_string(span.begin) + " to " + std::to_string(span.end) + ", expected a part of 0 to " +
         std::to_string(tokens) + " tokens");
  }

  // The shape of an array that is referred to, which fits: kAny fits everything.
  std::vector<int64_t> check_ref(const std::string& what, const Ref& ref, const std::vector<int64_t>& expected,
                                 bool keys = false) const {
    if (!ref) return expected;
    const auto found = trace_.tensors.find(ref.name);
    if (found == trace_.tensors.end()) fail(what + " names tensor " + io::quote(ref.name) + ", which is not there");
    const Array& array = found->second;
    if ((array.dtype == Storage::u32) != keys)
      fail(what + " has a dtype of another kind, expected " + (keys ? "u32" : "numbers"));
    const bool same = array.shape.size() == expected.size() &&
                      std::equal(expected.begin(), expected.end(), array.shape.begin(),
                                 [](int64_t e, int64_t came) { return e == kAny || e == came; });
    if (!same) fail(what + " has shape " + shown(array.shape) + ", expected " + shown(expected));
    return array.shape;
  }

  void check_attention(const Attention& one) const {
    check_span(".q", one.q);
    check_span(".k", one.k);
    const int64_t H = std::ssize(one.heads), T = one.q.size(), S = one.k.size();
    if (std::ssize(one.key_heads) != H) {
      fail(".key_heads has " + std::to_string(one.key_heads.size()) + " numbers, expected " + std::to_string(H) +
           ", one a head");
    }
    for (const int64_t number : {one.mask.offset, one.mask.left.value_or(0), one.mask.right.value_or(0)}) {
      if (number > kFar || number < -kFar) {
        fail(".mask has " + std::to_string(number) + ", expected a number of tokens");
      }
    }
    if (!one.score.slopes.empty() && std::ssize(one.score.slopes) != H) fail(".score.slopes: expected one a head");
    check_ref(".weights", one.weights, {H, T, S});
    check_ref(".lse", one.lse, {H, T});
    const int64_t D = check_ref(".Q", one.Q, {H, T, kAny}).back();
    const std::vector<int64_t> k = check_ref(".K", one.K, {kAny, S, D});
    const std::vector<int64_t> v = check_ref(".V", one.V, {one.K ? k.front() : kAny, S, kAny});
    check_ref(".O", one.O, {H, T, v.back()});
    for (const int64_t head : one.key_heads) {
      if (head >= 0 && (!one.K || head < k.front()) && (!one.V || head < v.front())) continue;
      fail(".key_heads has " + std::to_string(head) + ", expected one of those of K and V");
    }
    if (one.additive) check_ref(".additive.w", one.additive->w, {H, D});
    check_ref(".stats.entropy", one.stats.entropy, {H, T});
    check_ref(".stats.max", one.stats.max, {H, T});
  }

  void check_long(const Attention& one) const {
    const int64_t H = std::ssize(one.heads), T = one.q.size(), S = one.k.size();
    const auto check_head = [&](const char* what, int64_t head) {
      if (std::find(one.heads.begin(), one.heads.end(), head) != one.heads.end()) return;
      fail(std::string(what) + " has head " + std::to_string(head) + ", expected one of .heads");
    };
    if (one.top) {
      const int64_t k = check_ref(".top.keys", one.top->keys, {H, T, kAny}, true).back();
      check_ref(".top.weights", one.top->weights, {H, T, k});
    }
    if (one.pooled) {
      const Pooled& p = *one.pooled;
      if (p.queries < 0 || p.queries > T || p.keys < 0 || p.keys > S) {
        fail(".pooled is of " + std::to_string(p.queries) + " x " + std::to_string(p.keys) +
             " tokens, expected at most " + std::to_string(T) + " x " + std::to_string(S));
      }
      check_ref(".pooled.received", p.received, {H, p.keys});
      for (const HeadMap& map : p.maps) {
        check_head(".pooled.maps", map.head);
        check_ref(".pooled.maps.max", map.max, check_ref(".pooled.maps.mean", map.mean, {kAny, kAny}));
      }
    }
    for (const Tile& tile : one.tiles) {
      check_head(".tiles", tile.head);
      const int64_t D = check_ref(".tiles.q", tile.q, {T, kAny}).back();
      check_ref(".tiles.k", tile.k, {S, D});
      check_ref(".tiles.lse", tile.lse, {T});
    }
  }

  void check_states(const States& one) const {
    check_span(".tokens", one.tokens);
    const int64_t T = one.tokens.size(), H = check_ref(".h", one.h, {T, kAny}).back();
    check_ref(".c", one.c, {T, H});
    check_ref(".gates", one.gates, {T, std::ssize(one.names), H});
    check_ref(".h0", one.h0, {H});
    check_ref(".c0", one.c0, {H});
  }

  void check_result(const Result& one) const {
    const int64_t tokens = std::ssize(sequence(".seq", one.seq).tokens);
    for (const Step& step : one.steps) {
      if (step.row >= 0 && step.row < tokens) continue;
      fail(".steps has row " + std::to_string(step.row) + ", expected 0 to " + std::to_string(tokens - 1));
    }
  }

  void check_effect(const Effect& one) const {
    const int64_t tokens = std::ssize(sequence(".seq", one.seq).tokens);
    if (one.row < 0 || one.row >= tokens) {
      fail(".row is " + std::to_string(one.row) + ", expected 0 to " + std::to_string(tokens - 1));
    }
    for (const LeftOut& word : one.left_out) check_span(".left_out.tokens", word.tokens);
    for (const HeadEffect& head : one.heads) attention(".heads", head.path);
    for (const LinkEffects& links : one.links) {
      const Attention& layer = attention(".links", links.path);
      const std::vector<int64_t> shape = {std::ssize(layer.heads), layer.k.size()};
      check_ref(".links.values", links.values, shape);
      check_ref(".links.gradients", links.gradients, shape);
    }
    for (const auto& shares : {one.integrated, one.rollout}) {
      if (!shares) continue;
      check_ref(".source", shares->source, {kAny});
      check_ref(".target", shares->target, {kAny});
    }
  }

  // The first layer of this path: that of the best hypothesis.
  const Attention& attention(const std::string& what, const std::string& path) const {
    for (const Attention& one : trace_.attn) {
      if (one.path == path) return one;
    }
    fail(what + " has layer " + io::quote(path) + ", which is not there");
  }

  const Trace& trace_;
  std::string at_;
};

}  // namespace

void Trace::check() const { Checker(*this).run(); }

}  // namespace heed::trace
