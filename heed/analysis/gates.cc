// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/gates.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "heed/base/error.h"

namespace heed::analysis {
namespace {

// The whole of `text` as a number; false where it is none.
template <class T>
bool read_number(std::string_view text, T& number) {
  const char *begin = std::to_address(text.begin()), *end = begin + text.size();
  return !text.empty() && std::from_chars(begin, end, number).ptr == end;
}

// What stands before the last point, and the number behind it, where there is one.
HeadName split(const std::string& text) {
  HeadName name{.layer = text};
  const size_t point = text.rfind('.');
  if (point != text.npos && read_number(std::string_view(text).substr(point + 1), name.head)) {
    name.layer = text.substr(0, point);
  } else {
    name.head = -1;
  }
  return name;
}

// No number stands for all heads but the absence of one.
bool is_below_zero(const HeadName& name, const std::string& text) { return name.head < 0 && name.layer != text; }

}  // namespace

HeadName parse_head(const std::string& text) {
  HeadName name = split(text);
  if (is_below_zero(name, text)) {
    throw Error("'" + text + "' is head " + std::to_string(name.head) + ", expected 0 or more");
  }
  return name;
}

HeadGate parse_gate(const std::string& text) {
  HeadGate gate;
  const size_t equals = text.find('=');
  const std::string place = text.substr(0, equals);
  const size_t point = place.rfind('.');
  bool good = equals != text.npos && read_number(std::string_view(text).substr(equals + 1), gate.factor);
  good = good && std::isfinite(gate.factor) && point != place.npos && point > 0 && point + 1 < place.size();
  if (!good) throw Error("gate '" + text + "' is no head with its factor, expected such as encoder.0.self.2=0");
  const HeadName name = split(place);
  if (is_below_zero(name, place)) {
    throw Error("gate '" + text + "' is for head " + std::to_string(name.head) + ", expected 0 or more");
  }
  gate.layer = name.layer, gate.head = name.head;
  return gate;
}

void check_layer(const std::string& layer, std::span<const std::string> seen) {
  if (std::find(seen.begin(), seen.end(), layer) != seen.end()) return;
  std::string there;
  for (const std::string& path : seen) there += (there.empty() ? "" : ", ") + path;
  throw Error("there is no layer '" + layer + "', expected " +
              (there.empty() ? "a model with attention" : "one of: " + there));
}

void check_head(const std::string& layer, int64_t head, int64_t heads) {
  if (head >= -1 && head < heads) return;
  throw Error("layer '" + layer + "' has no head " + std::to_string(head) + ", expected 0 to " +
              std::to_string(heads - 1));
}

Gates::Gates(std::vector<HeadGate> gates, nn::Observer* other) : ObserverBeside(other), gates_(std::move(gates)) {}

Tensor Gates::head_gate(const std::string& path, int64_t heads) {
  Tensor given = ObserverBeside::head_gate(path, heads);
  const bool mine = std::any_of(gates_.begin(), gates_.end(), [&](const HeadGate& g) { return g.layer == path; });
  if (!mine) return given;
  Tensor factors = given ? given.converted(DType::f64) : Tensor::full({heads}, 1, DType::f64);
  for (const HeadGate& gate : gates_) {
    if (gate.layer != path) continue;
    check_head(path, gate.head, heads);
    for (int64_t head = 0; head < heads; ++head) {
      if (gate.head < 0 || gate.head == head) factors.data<double>()[head] *= gate.factor;
    }
  }
  return factors;
}

std::vector<AttentionLayer> attention_layers(const nn::Pass& pass, const models::Model& model) {
  struct Lister final : nn::Observer {
    Tensor head_gate(const std::string& path, int64_t heads) override {
      const auto same = [&](const AttentionLayer& one) { return one.path == path; };
      if (std::none_of(layers.begin(), layers.end(), same)) layers.push_back({path, heads});
      return {};
    }
    std::vector<AttentionLayer> layers;
  } lister;
  nn::Pass own = pass;
  own.tape = nullptr;
  own.observer = &lister;
  const models::Tokens token{.ids = Tensor::zeros({1, 1}, DType::i32)};
  if (model.task() == models::Task::encode) {
    model.states(own, token);
  } else {
    model.logits(own, token, token);
  }
  return lister.layers;
}

void check_gates(const nn::Pass& pass, const models::Model& model, std::span<const HeadGate> gates) {
  const std::vector<AttentionLayer> layers = attention_layers(pass, model);
  std::vector<std::string> paths;
  paths.reserve(layers.size());
  for (const AttentionLayer& layer : layers) paths.push_back(layer.path);
  for (const HeadGate& gate : gates) {
    check_layer(gate.layer, paths);
    const auto layer = std::find(paths.begin(), paths.end(), gate.layer) - paths.begin();
    check_head(gate.layer, gate.head, layers[static_cast<size_t>(layer)].heads);
  }
}

}  // namespace heed::analysis
