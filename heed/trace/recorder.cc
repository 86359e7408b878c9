// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/recorder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "heed/base/error.h"
#include "heed/nn/attention_weights.h"
#include "heed/trace/event_reader.h"
#include "heed/trace/recorded.h"

namespace heed::trace {
namespace {

// Rows of a batch that are hypotheses of a sentence, with their nodes.
struct BatchRow {
  int64_t row, node;
};
std::vector<BatchRow> rows_of(std::span<const nn::HypothesisRow> rows, int64_t B, int64_t sentence) {
  std::vector<BatchRow> own;
  if (rows.empty() && sentence < B) own.push_back({sentence, 0});
  for (int64_t b = 0; b < std::ssize(rows); ++b) {
    const nn::HypothesisRow& row = rows[static_cast<size_t>(b)];
    if (row.sentence == sentence) own.push_back({b, row.node});
  }
  return own;
}

Score score_of(const nn::AttentionEvent& event, const EventReader& reader, std::span<const int64_t> heads) {
  Score score;
  score.fn = reader.has_w() ? ScoreFunction::additive : ScoreFunction::dot;
  const double usual = reader.has_w() ? 1 : 1 / std::sqrt(static_cast<double>(reader.key_width()));
  score.scale = event.options.scale ? double{*event.options.scale} : usual;
  if (event.options.softcap > 0) score.softcap = double{event.options.softcap};
  if (const auto& alibi = event.options.mask.alibi) {
    for (const int64_t head : heads) score.slopes.push_back(double{alibi->slopes[static_cast<size_t>(head)]});
  }
  return score;
}

// By positions in the sequences, as the first query of an event is at event.position.
Mask mask_of(const nn::AttentionEvent& event, int64_t b, int64_t T, int64_t S) {
  const kernels::Mask& from = event.options.mask;
  Mask mask;
  int64_t visible = S;
  if (from.lengths && from.lengths->keys[static_cast<size_t>(b)] < S) {
    visible = from.lengths->keys[static_cast<size_t>(b)];
    mask.keys = visible;
  }
  const auto offset = [&](const kernels::MaskAlignment& align) { return align.resolve(T, visible) - event.position; };
  if (from.causal) mask.type = MaskType::causal, mask.offset = offset(from.causal->align);
  if (from.window) {
    const bool apart = from.causal && mask.offset != offset(from.window->align);
    mask.type = apart ? MaskType::other : MaskType::window;
    mask.offset = offset(from.window->align);
    if (from.window->left != kernels::Window::kUnbounded) mask.left = from.window->left;
    if (from.window->right != kernels::Window::kUnbounded) mask.right = from.window->right;
    if (from.causal) mask.right = std::min<int64_t>(0, mask.right.value_or(0));
  }
  if (from.dense || from.packed) mask.type = MaskType::other;
  return mask;
}

std::vector<int64_t> chosen_heads(const RecorderOptions& options, const std::string& path, int64_t heads) {
  std::vector<int64_t> all(static_cast<size_t>(heads));
  std::iota(all.begin(), all.end(), int64_t{0});
  if (options.heads.empty()) return all;
  for (const int64_t head : options.heads) {
    if (head >= 0 && head < heads) continue;
    throw Error("trace: layer '" + path + "' has no head " + std::to_string(head) + ", expected 0 to " +
                std::to_string(heads - 1));
  }
  return options.heads;
}

template <class T>
std::vector<float> floats(const T* from, int64_t count) {
  std::vector<float> to;
  to.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) to.push_back(static_cast<float>(from[i]));
  return to;
}

// Row b of [B,...], from `count` numbers a row.
std::vector<float> row_of(const Tensor& tensor, int64_t b, int64_t count) {
  if (!tensor) return {};
  return with_float("trace", tensor.dtype(), [&](auto type) {
    return floats(tensor.data<decltype(type)>() + b * (tensor.size() / tensor.shape(0)), count);
  });
}

// Which queries an event has, and which of them are kept; nothing of them yet.
NodeRows frame_of(const nn::AttentionEvent& event, const EventReader& reader, const RecorderOptions& options) {
  const int64_t first = event.position, last = first + reader.queries();
  const Rows& rows = event.role == nn::AttentionRole::self ? options.source : options.target;
  const int64_t begin = std::clamp(rows.begin, first, last), end = std::clamp(rows.end, begin, last);
  return {.position = first,
          .count = reader.queries(),
          .begin = begin,
          .kept = end - begin,
          .keys = reader.keys(),
          .whole = std::max(reader.queries(), reader.keys()) <= options.full};
}

// The rows that were chosen with their statistics, and themselves where they are kept whole. weights: [B,Hq,kept,S].
void keep_rows(const Tensor& weights, int64_t b, const RecordedLayer& layer, int64_t top, NodeRows& to) {
  const int64_t S = weights.shape(3);
  for (const int64_t head : layer.heads) {
    for (int64_t i = 0; i < to.kept; ++i) {
      const int64_t at = ((b * weights.shape(1) + head) * to.kept + i) * S;
      const std::vector<float> row = with_float(
          "trace", weights.dtype(), [&](auto type) { return floats(weights.data<decltype(type)>() + at, S); });
      add_row_statistics(row, top, to);
      if (to.whole) to.weights.insert(to.weights.end(), row.begin(), row.end());
    }
  }
}

bool is_tile(const RecorderOptions& options, const std::string& path, int64_t head) {
  const std::string name = path + "." + std::to_string(head);
  return std::find(options.tiles.begin(), options.tiles.end(), name) != options.tiles.end();
}

// Queries of the rows that were chosen; keys and values of all tokens that are new.
void keep_vectors(const EventReader& reader, int64_t b, const RecordedLayer& layer, const RecorderOptions& options,
                  NodeRows& to) {
  const bool own_keys = layer.role == nn::AttentionRole::masked;
  for (const int64_t head : layer.heads) {
    if (to.whole ? !options.vectors : !is_tile(options, layer.path, head)) continue;
    std::vector<float>& q = to.q[head];
    for (int64_t i = 0; i < to.kept; ++i) reader.q(b, head, to.begin - to.position + i, q);
    const int64_t key_head = layer.key_head(head);
    if (to.k.contains(key_head)) continue;
    // Of a source that all nodes share, the first has them.
    if (!own_keys && !layer.nodes.empty() && layer.nodes.begin()->second.k.contains(key_head)) continue;
    for (int64_t s = own_keys ? to.position : 0; s < to.keys; ++s) {
      reader.k(b, key_head, s, to.k[key_head]);
      if (to.whole) reader.v(b, key_head, s, to.v[key_head]);
    }
  }
}

}  // namespace

void add_row_statistics(std::span<const float> row, int64_t K, NodeRows& to) {
  double entropy = 0, sum = 0;
  for (const float weight : row) {
    if (weight > 0) entropy -= double{weight} * std::log(double{weight});
    sum += double{weight};
  }
  if (sum > 0) to.row_sum_error = std::max(to.row_sum_error, std::abs(sum - 1));
  std::vector<uint32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto best = order.begin() + std::min<int64_t>(K, std::ssize(order));
  std::partial_sort(order.begin(), best, order.end(),
                    [&](uint32_t a, uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  for (int64_t i = 0; i < K; ++i) {
    const bool there = i < std::ssize(order) && row[order[static_cast<size_t>(i)]] > 0;
    to.top_keys.push_back(there ? order[static_cast<size_t>(i)] : kNoKey);
    to.top_weights.push_back(there ? row[order[static_cast<size_t>(i)]] : 0);
  }
  to.entropy.push_back(static_cast<float>(entropy));
  to.max.push_back(row.empty() ? 0 : *std::max_element(row.begin(), row.end()));
}

Recorder::Recorder(Parallel& parallel, RecorderOptions options, int64_t sentence)
    : kept_(std::make_unique<Kept>(parallel, std::move(options), sentence)) {
  check_fields("trace", kept_->options);
}

Recorder::~Recorder() = default;

bool Recorder::wants_recurrent() const { return kept_->options.states; }

Tensor Recorder::head_gate(const std::string& path, int64_t heads) {
  return kept_->options.gates ? kept_->options.gates->head_gate(path, heads) : Tensor();
}

RecordedLayer& Recorder::Kept::layer_of(const nn::AttentionEvent& event, const EventReader& reader, int64_t b) {
  const auto known =
      std::find_if(layers.begin(), layers.end(), [&](const RecordedLayer& one) { return one.path == event.path; });
  if (known != layers.end()) return *known;
  RecordedLayer& layer = layers.emplace_back();
  layer.path = event.path, layer.role = event.role;
  layer.all_heads = reader.heads(), layer.all_key_heads = reader.key_heads();
  layer.D = reader.key_width(), layer.Dv = reader.value_width();
  layer.heads = chosen_heads(options, event.path, reader.heads());
  layer.score = score_of(event, reader, layer.heads);
  layer.mask = mask_of(event, b, reader.queries(), reader.keys());
  if (reader.has_w()) {
    for (const int64_t head : layer.heads) reader.w(head, layer.w);
  }
  return layer;
}

void Recorder::attention(const nn::AttentionEvent& event) {
  const RecorderOptions& options = kept_->options;
  if (std::find(kept_->seen.begin(), kept_->seen.end(), event.path) == kept_->seen.end()) {
    kept_->seen.push_back(event.path);
  }
  const auto wanted = std::find(options.layers.begin(), options.layers.end(), event.path);
  if (!options.layers.empty() && wanted == options.layers.end()) return;
  const EventReader reader(event);
  const std::vector<BatchRow> batch_rows = rows_of(event.rows, event.stats.shape(0), kept_->sentence);
  if (batch_rows.empty()) return;
  RecordedLayer& layer = kept_->layer_of(event, reader, batch_rows.front().row);
  const NodeRows frame = frame_of(event, reader, options);
  std::vector<int64_t> queries(static_cast<size_t>(frame.kept));
  std::iota(queries.begin(), queries.end(), frame.begin - frame.position);
  constexpr int64_t kFew = 8;  // rows that are cheaper to compute than to observe
  const bool by_rows = frame.whole || frame.kept <= kFew;
  const Tensor weights = by_rows ? nn::attention_weights(event, queries, kept_->workspace, kept_->parallel) : Tensor();
  for (const auto& [b, node] : batch_rows) {
    if (layer.nodes.contains(node)) {
      throw Error("trace: layer '" + event.path + "' ran twice for node " + std::to_string(node) +
                  ", expected a recorder of its own for each sentence");
    }
    NodeRows own = frame;
    for (const int64_t head : layer.heads) {
      for (const int64_t t : queries) own.lse.push_back(static_cast<float>(reader.lse(b, head, t)));
    }
    if (by_rows) {
      keep_rows(weights, b, layer, options.top, own);
    } else {
      observe_long(event, b, layer, options, kept_->workspace, kept_->parallel, own);
    }
    keep_vectors(reader, b, layer, options, own);
    layer.nodes.emplace(node, std::move(own));
  }
}

void Recorder::recurrent(const nn::RecurrentEvent& event) {
  auto states = std::find_if(kept_->states.begin(), kept_->states.end(),
                             [&](const RecordedStates& one) { return one.path == event.path; });
  if (states == kept_->states.end()) {
    const char* cell = event.cell == kernels::Cell::gru ? "gru" : event.cell == kernels::Cell::lstm ? "lstm" : "rnn";
    kept_->states.push_back({.path = event.path, .cell = cell, .reverse = event.reverse, .width = event.h.shape(2)});
    states = kept_->states.end() - 1;
    for (const char* name : nn::gate_names(event.cell)) states->gate_names.emplace_back(name);
  }
  const int64_t H = states->width, G = std::ssize(states->gate_names);
  for (const auto& [b, node] : rows_of(event.rows, event.h.shape(0), kept_->sentence)) {
    const int64_t T = event.lengths.empty() ? event.h.shape(1) : event.lengths[static_cast<size_t>(b)];
    NodeStates own{.position = event.position, .count = T};
    own.h = row_of(event.h, b, T * H);
    own.c = row_of(event.c, b, T * H);
    if (T <= kept_->options.full) own.gates = row_of(event.gates, b, T * G * H);
    if (node == 0) own.h0 = row_of(event.h0, b, H), own.c0 = row_of(event.c0, b, H);
    states->nodes.emplace(node, std::move(own));
  }
}

}  // namespace heed::trace
