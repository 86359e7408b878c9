// SPDX-License-Identifier: Apache-2.0
// The rows of nodes, put together to those of a hypothesis.
#include <algorithm>
#include <charconv>

#include "heed/base/error.h"
#include "heed/trace/recorded.h"

namespace heed::trace {
namespace {

// Where the first state of a decoder is attended from: a parameter, no token.
bool is_learned_query(const RecordedLayer& layer) { return layer.path == "decoder.first"; }

std::string stack_of(const std::string& path) { return path.substr(0, path.find_first_of("._")); }

// The first number in a path: "encoder.1.self" is layer 1; without one, 0.
int64_t layer_of(const std::string& path) {
  for (size_t point = path.find('.'); point != path.npos; point = path.find('.', point + 1)) {
    int64_t number = 0;
    const char *begin = path.data() + point + 1, *end = path.data() + path.size();
    if (std::from_chars(begin, end, number).ptr != begin) return number;
  }
  return 0;
}

// Numbers [H,n] of several nodes, one after the other in the second dimension: each number is `width` floats.
template <class T>
void interleave(std::vector<T>& to, int64_t H, int64_t to_rows, int64_t first, const std::vector<T>& from, int64_t rows,
                int64_t width, int64_t to_width) {
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t t = 0; t < rows; ++t) {
      std::copy_n(from.begin() + (h * rows + t) * width, width, to.begin() + (h * to_rows + first + t) * to_width);
    }
  }
}

// One layer over the nodes of one hypothesis, on its way into a trace.
class Assembly {
 public:
  Assembly(Trace& trace, const RecordedLayer& layer, const RecorderOptions& options, std::span<const int64_t> nodes,
           const std::string& suffix)
      : trace_(trace), layer_(layer), options_(options) {
    id_ = layer.path + suffix;
    H_ = std::ssize(layer.heads);
    for (const int64_t node : nodes) {
      const auto found = layer.nodes.find(node);
      if (found == layer.nodes.end()) {
        throw Error("trace: layer '" + layer.path + "' did not run for node " + std::to_string(node) +
                    ", expected the nodes of one of its hypotheses");
      }
      const NodeRows& rows = found->second;
      parts_.push_back(&rows);
      whole_ = whole_ && rows.whole;
      if (T_ == 0) begin_ = rows.begin;
      T_ += rows.kept;
      S_ = std::max(S_, rows.keys);
    }
  }

  Attention entry(const std::string& q_sequence, const std::string& k_sequence) {
    Attention one{.id = id_, .path = layer_.path, .stack = stack_of(layer_.path), .layer = layer_of(layer_.path)};
    one.role = static_cast<Role>(layer_.role);
    one.heads = layer_.heads;
    for (const int64_t head : layer_.heads) one.key_heads.push_back(key_place(head));
    one.q = {q_sequence, begin_, begin_ + T_};
    one.k = {k_sequence, 0, S_};
    one.score = layer_.score;
    one.mask = layer_.mask;
    if (!layer_.w.empty()) one.additive = {{put("w", {H_, layer_.D}, layer_.w)}};
    add_statistics(one);
    if (whole_) {
      add_rows(one);
      if (options_.vectors && T_ > 0) add_vectors(one);
    } else {
      add_top(one);
      add_pooled(one);
      add_tiles(one);
      trace_.capture.full = false;
      trace_.capture.dropped.push_back("weights, V and O of " + id_ + ": " + std::to_string(std::max(T_, S_)) +
                                       " tokens, more than " + std::to_string(options_.full));
    }
    return one;
  }

 private:
  Ref put(const std::string& name, const std::vector<int64_t>& shape, std::span<const float> numbers) {
    return put(name, Array::f32(shape, numbers));
  }
  Ref put(const std::string& name, Array array) {
    Ref ref{id_ + "/" + name};
    trace_.tensors[ref.name] = std::move(array);
    return ref;
  }

  // The heads of keys that belong to the chosen heads, in their order.
  std::vector<int64_t> key_heads() const {
    std::vector<int64_t> all;
    for (const int64_t head : layer_.heads) {
      const int64_t key_head = layer_.key_head(head);
      if (std::find(all.begin(), all.end(), key_head) == all.end()) all.push_back(key_head);
    }
    return all;
  }
  int64_t key_place(int64_t head) const {
    const std::vector<int64_t> all = key_heads();
    return std::find(all.begin(), all.end(), layer_.key_head(head)) - all.begin();
  }

  // [H,T,width] of a member [H,kept,width] of the parts.
  template <class T>
  std::vector<T> joined(std::vector<T> NodeRows::*member, int64_t width) const {
    std::vector<T> all(static_cast<size_t>(H_ * T_ * width));
    int64_t first = 0;
    for (const NodeRows* part : parts_) {
      interleave(all, H_, T_, first, part->*member, part->kept, width, width);
      first += part->kept;
    }
    return all;
  }

  void add_statistics(Attention& one) {
    one.lse = put("lse", {H_, T_}, joined(&NodeRows::lse, 1));
    one.stats.entropy = put("entropy", {H_, T_}, joined(&NodeRows::entropy, 1));
    one.stats.max = put("max", {H_, T_}, joined(&NodeRows::max, 1));
    for (const NodeRows* part : parts_) {
      one.stats.row_sum_error = std::max(one.stats.row_sum_error, part->row_sum_error);
    }
  }

  void add_rows(Attention& one) {
    weights_.assign(static_cast<size_t>(H_ * T_ * S_), 0);
    int64_t first = 0;
    for (const NodeRows* part : parts_) {
      interleave(weights_, H_, T_, first, part->weights, part->kept, part->keys, S_);
      first += part->kept;
    }
    one.weights = put("weights", {H_, T_, S_}, weights_);
  }

  // Of one head of keys: those of the nodes' own tokens one after the other, or those of the source.
  std::vector<float> keys_of(std::map<int64_t, std::vector<float>> NodeRows::*member, int64_t key_head) const {
    std::vector<float> all;
    const auto add = [&](const NodeRows& part) {
      const auto found = (part.*member).find(key_head);
      if (found != (part.*member).end()) all.insert(all.end(), found->second.begin(), found->second.end());
    };
    if (layer_.role != nn::AttentionRole::masked) {
      add(layer_.nodes.begin()->second);
    } else {
      for (const NodeRows* part : parts_) add(*part);
    }
    return all;
  }
  std::vector<float> queries_of(int64_t head) const {
    std::vector<float> all;
    for (const NodeRows* part : parts_) {
      const auto found = part->q.find(head);
      if (found != part->q.end()) all.insert(all.end(), found->second.begin(), found->second.end());
    }
    return all;
  }

  void add_vectors(Attention& one) {
    std::vector<float> q, k, v;
    for (const int64_t head : layer_.heads) {
      const std::vector<float> own = queries_of(head);
      q.insert(q.end(), own.begin(), own.end());
    }
    const std::vector<int64_t> heads = key_heads();
    for (const int64_t key_head : heads) {
      const std::vector<float> keys = keys_of(&NodeRows::k, key_head), values = keys_of(&NodeRows::v, key_head);
      k.insert(k.end(), keys.begin(), keys.end());
      v.insert(v.end(), values.begin(), values.end());
    }
    const auto n = std::ssize(heads);
    one.Q = put("Q", {H_, T_, layer_.D}, q);
    one.K = put("K", {n, S_, layer_.D}, k);
    one.V = put("V", {n, S_, layer_.Dv}, v);
    one.O = put("O", {H_, T_, layer_.Dv}, outputs(one.key_heads, v));
  }

  // The weighted sums of values, in double.
  std::vector<float> outputs(std::span<const int64_t> key_places, std::span<const float> v) const {
    std::vector<float> out;
    std::vector<double> sum(static_cast<size_t>(layer_.Dv));
    for (int64_t h = 0; h < H_; ++h) {
      for (int64_t t = 0; t < T_; ++t) {
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int64_t s = 0; s < S_; ++s) {
          const auto weight = double{weights_[static_cast<size_t>((h * T_ + t) * S_ + s)]};
          const float* value = v.data() + (key_places[static_cast<size_t>(h)] * S_ + s) * layer_.Dv;
          for (size_t d = 0; d < sum.size() && weight != 0; ++d) sum[d] += weight * double{value[d]};
        }
        for (const double one : sum) out.push_back(static_cast<float>(one));
      }
    }
    return out;
  }

  void add_top(Attention& one) {
    const int64_t K = options_.top;
    one.top = Top{put("top_keys", Array::u32({H_, T_, K}, joined(&NodeRows::top_keys, K))),
                  put("top_weights", Array::f16({H_, T_, K}, joined(&NodeRows::top_weights, K)))};
  }

  void add_pooled(Attention& one) {
    for (const NodeRows* part : parts_) {
      if (part->map_rows == 0) continue;
      const int64_t M = part->map_rows, N = part->map_columns, cells = M * N;
      Pooled pooled{.queries = T_, .keys = part->keys};
      // A map is of all queries of the pass; those that were not chosen are not described.
      if (part->kept != part->count) {
        trace_.capture.dropped.push_back("maps of " + id_ + ": not all of its rows were chosen");
        return;
      }
      pooled.queries = part->count;
      pooled.received = put("received", {H_, part->keys}, part->received);
      for (int64_t h = 0; h < H_; ++h) {
        const auto cells_of = [&](const std::vector<float>& all) {
          return std::span(all).subspan(static_cast<size_t>(h * cells), static_cast<size_t>(cells));
        };
        const std::string name = std::to_string(layer_.heads[static_cast<size_t>(h)]);
        pooled.maps.push_back({.head = layer_.heads[static_cast<size_t>(h)],
                               .mean = put("mean." + name, Array::u8n({M, N}, cells_of(part->map_mean))),
                               .max = put("max." + name, Array::u8n({M, N}, cells_of(part->map_max)))});
      }
      one.pooled = std::move(pooled);
      return;
    }
  }

  bool is_tile(int64_t head) const {
    const std::string name = layer_.path + "." + std::to_string(head);
    return T_ > 0 && std::find(options_.tiles.begin(), options_.tiles.end(), name) != options_.tiles.end();
  }

  // In halves, unless they are too coarse for scores as large as these.
  void add_tiles(Attention& one) {
    const int64_t K = options_.top;
    const std::vector<float> lse = joined(&NodeRows::lse, 1), top_weights = joined(&NodeRows::top_weights, K);
    const std::vector<uint32_t> top_keys = joined(&NodeRows::top_keys, K);
    for (int64_t h = 0; h < H_; ++h) {
      const int64_t head = layer_.heads[static_cast<size_t>(h)];
      if (!is_tile(head)) continue;
      const auto rows_of = [&](const auto& all, int64_t width) {
        return std::span(all).subspan(static_cast<size_t>(h * T_ * width), static_cast<size_t>(T_ * width));
      };
      const std::vector<float> q = queries_of(head), k = keys_of(&NodeRows::k, layer_.key_head(head));
      const auto error_as = [&](const Array& queries, const Array& keys) {
        const std::vector<float> stored_q = queries.values(), stored_k = keys.values();
        return tile_error(layer_, static_cast<size_t>(h),
                          {.q = stored_q,
                           .k = stored_k,
                           .lse = rows_of(lse, 1),
                           .top_weights = rows_of(top_weights, K),
                           .top_keys = rows_of(top_keys, K),
                           .first = begin_},
                          queries.dtype);
      };
      Array queries = Array::f16({T_, layer_.D}, q), keys = Array::f16({S_, layer_.D}, k);
      double error = error_as(queries, keys);
      if (error > kTileTolerance) {
        queries = Array::f32({T_, layer_.D}, q), keys = Array::f32({S_, layer_.D}, k);
        error = error_as(queries, keys);
      }
      const std::string name = "." + std::to_string(head);
      one.tiles.push_back({.head = head,
                           .q = put("q" + name, std::move(queries)),
                           .k = put("k" + name, std::move(keys)),
                           .lse = put("lse" + name, {T_}, rows_of(lse, 1)),
                           .error = error});
      trace_.capture.tolerance = std::max({trace_.capture.tolerance, kTileTolerance, error});
    }
  }

  Trace& trace_;
  const RecordedLayer& layer_;
  const RecorderOptions& options_;
  std::string id_;
  std::vector<const NodeRows*> parts_;
  int64_t H_ = 0, T_ = 0, S_ = 0, begin_ = 0;
  bool whole_ = true;
  std::vector<float> weights_;
};

States assembled_states(Trace& trace, const RecordedStates& from, const RecorderOptions& options,
                        std::span<const int64_t> nodes, const std::string& sequence, const std::string& suffix) {
  const int64_t H = from.width, G = std::ssize(from.gate_names);
  NodeStates all;
  bool gates = G > 0;
  for (const int64_t node : nodes) {
    const auto found = from.nodes.find(node);
    if (found == from.nodes.end()) {
      throw Error("trace: layer '" + from.path + "' did not run for node " + std::to_string(node) +
                  ", expected the nodes of one of its hypotheses");
    }
    const NodeStates& part = found->second;
    all.count += part.count;
    all.h.insert(all.h.end(), part.h.begin(), part.h.end());
    all.c.insert(all.c.end(), part.c.begin(), part.c.end());
    all.gates.insert(all.gates.end(), part.gates.begin(), part.gates.end());
    gates = gates && !part.gates.empty();
    if (node == 0) all.h0 = part.h0, all.c0 = part.c0;
  }
  States states{.path = from.path, .stack = stack_of(from.path), .cell = from.cell, .layer = layer_of(from.path)};
  states.direction = from.reverse ? Direction::backward : Direction::forward;
  states.tokens = {sequence, 0, all.count};
  const bool is_long = all.count > options.full;
  const auto put = [&](const char* name, const std::vector<int64_t>& shape, const std::vector<float>& numbers) {
    Ref ref{from.path + suffix + "/" + name};
    trace.tensors[ref.name] = is_long ? Array::f16(shape, numbers) : Array::f32(shape, numbers);
    return ref;
  };
  states.h = put("h", {all.count, H}, all.h);
  if (!all.c.empty()) states.c = put("c", {all.count, H}, all.c);
  if (gates && !is_long) {
    states.names = from.gate_names;
    states.gates = put("gates", {all.count, G, H}, all.gates);
  } else if (G > 0) {
    trace.capture.full = false;
    trace.capture.dropped.push_back("gates of " + from.path + suffix + ": " + std::to_string(all.count) +
                                    " tokens, more than " + std::to_string(options.full));
  }
  if (!all.h0.empty()) states.h0 = put("h0", {H}, all.h0);
  if (!all.c0.empty()) states.c0 = put("c0", {H}, all.c0);
  return states;
}

constexpr int64_t kFirstNode[] = {0};

bool of_decoder(const RecordedStates& states) { return states.path.starts_with("decoder"); }

std::string listed(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none: the model has no attention" : text;
}

}  // namespace

void Recorder::Kept::check_chosen() const {
  for (const std::string& path : options.layers) {
    if (std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
    throw Error("trace: there is no layer '" + path + "', expected one of: " + listed(seen));
  }
  for (const std::string& tile : options.tiles) {
    const bool found = std::any_of(layers.begin(), layers.end(), [&](const RecordedLayer& layer) {
      return std::any_of(layer.heads.begin(), layer.heads.end(),
                         [&](int64_t head) { return tile == layer.path + "." + std::to_string(head); });
    });
    if (found) continue;
    throw Error("trace: there is no head '" + tile +
                "', expected a layer and a head of it, of these layers: " + listed(seen));
  }
}

void Recorder::add_source(Trace& trace, const std::string& source) const {
  kept_->check_chosen();
  for (const RecordedLayer& layer : kept_->layers) {
    if (layer.nodes.empty()) continue;
    if (layer.role == nn::AttentionRole::self) {
      trace.attn.push_back(Assembly(trace, layer, kept_->options, kFirstNode, "").entry(source, source));
    } else if (is_learned_query(layer)) {
      trace.sequences.push_back({.id = "first", .role = SequenceRole::learned});
      trace.sequences.back().tokens.push_back({.piece = "first", .special = true});
      trace.attn.push_back(Assembly(trace, layer, kept_->options, kFirstNode, "").entry("first", source));
    }
  }
  for (const RecordedStates& states : kept_->states) {
    if (of_decoder(states)) continue;
    trace.states.push_back(assembled_states(trace, states, kept_->options, kFirstNode, source, ""));
  }
}

void Recorder::add_target(Trace& trace, std::span<const int64_t> nodes, const Names& names) const {
  kept_->check_chosen();
  const std::string suffix = names.target == "target" ? "" : "@" + names.target;
  for (const RecordedLayer& layer : kept_->layers) {
    if (layer.nodes.empty() || layer.role == nn::AttentionRole::self || is_learned_query(layer)) continue;
    const std::string& keys = layer.role == nn::AttentionRole::cross ? names.source : names.target;
    trace.attn.push_back(Assembly(trace, layer, kept_->options, nodes, suffix).entry(names.target, keys));
  }
  for (const RecordedStates& states : kept_->states) {
    if (!of_decoder(states)) continue;
    trace.states.push_back(assembled_states(trace, states, kept_->options, nodes, names.target, suffix));
  }
}

}  // namespace heed::trace
