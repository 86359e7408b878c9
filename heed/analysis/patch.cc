// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/patch.h"

#include <algorithm>
#include <utility>

#include "heed/analysis/gates.h"
#include "heed/base/error.h"
#include "heed/ops/elementwise.h"

namespace heed::analysis {
namespace {

const HeadOutputs::Layer* find(const HeadOutputs& kept, const std::string& path) {
  for (const HeadOutputs::Layer& layer : kept.layers()) {
    if (layer.path == path) return &layer;
  }
  return nullptr;
}

// 0 where the other sentence's outputs are taken, else 1.
template <class T>
void mark(const PatchSite& site, int64_t heads, const Tensor& own) {
  const int64_t B = own.shape(0), length = own.shape(1), width = own.shape(2), Dv = width / heads;
  const auto clear = [&](int64_t row) {
    T* numbers = own.data<T>() + row * width;
    const int64_t first = site.head < 0 ? 0 : site.head * Dv;
    std::fill_n(numbers + first, site.head < 0 ? width : Dv, T{0});
  };
  for (int64_t b = 0; b < B; ++b) {
    if (site.positions.empty()) {
      for (int64_t t = 0; t < length; ++t) clear(b * length + t);
    }
    for (const int64_t t : site.positions) {
      if (t < 0 || t >= length) {
        throw Error("patch: a position of layer '" + site.layer + "' is " + std::to_string(t) + ", expected 0 to " +
                    std::to_string(length - 1));
      }
      clear(b * length + t);
    }
  }
}

// (1 - own) * outputs.
template <class T>
Tensor the_others(const Tensor& own, const Tensor& outputs) {
  Tensor taken = outputs.clone();
  for (int64_t i = 0; i < taken.size(); ++i) {
    if (own.data<T>()[i] != 0) taken.data<T>()[i] = 0;
  }
  return taken;
}

}  // namespace

Var HeadOutputs::head_outputs(const Context& context, const std::string& path, int64_t heads, const Var& outputs) {
  Var given = ObserverBeside::head_outputs(context, path, heads, outputs);
  layers_.push_back({path, heads, given.value()});
  return given;
}

Patch::Patch(std::vector<PatchSite> sites, const HeadOutputs& kept, nn::Observer* other)
    : ObserverBeside(other), sites_(std::move(sites)), kept_(kept) {
  std::vector<std::string> paths;
  paths.reserve(kept.layers().size());
  for (const HeadOutputs::Layer& layer : kept.layers()) paths.push_back(layer.path);
  for (const PatchSite& site : sites_) {
    check_layer(site.layer, paths);
    check_head(site.layer, site.head, find(kept, site.layer)->heads);
  }
}

Var Patch::head_outputs(const Context& context, const std::string& path, int64_t heads, const Var& outputs) {
  Var given = ObserverBeside::head_outputs(context, path, heads, outputs);
  Tensor own;
  for (const PatchSite& site : sites_) {
    if (site.layer != path) continue;
    if (!own) own = Tensor::full(given.shape(), 1, given.dtype());
    with_float("patch", own.dtype(), [&](auto type) { mark<decltype(type)>(site, heads, own); });
  }
  if (!own) return given;
  const Tensor& other = find(kept_, path)->outputs;
  if (other.shape() != given.shape()) {
    throw Error("patch: layer '" + path + "' gave " + to_string(other.shape()) + " for the other sentence, expected " +
                to_string(given.shape()) + ": the sentences have different lengths");
  }
  const Tensor taken =
      with_float("patch", own.dtype(), [&](auto type) { return the_others<decltype(type)>(own, other); });
  return ops::add(context, ops::multiply(context, given, own), taken);
}

double patched(const nn::Pass& pass, const Question& into, const Question& from, const std::vector<PatchSite>& sites) {
  return Patching(pass, into, from).value(sites);
}

Question question_of(const Question& question, data::TokenPair other) {
  const data::TokenPair& own = question.pair();
  if (other.source.size() != own.source.size() || other.target.size() != own.target.size()) {
    const bool source = other.source.size() != own.source.size();
    throw Error("patch: the other sentence has " + std::to_string((source ? other.source : other.target).size()) +
                " tokens, expected " + std::to_string((source ? own.source : own.target).size()) +
                ": outputs are taken token by token");
  }
  return Question(question.model(), std::move(other), question.target(), question.special());
}

Patching::Patching(const nn::Pass& pass, const Question& into, const Question& from)
    : pass_(pass), into_(into), kept_(pass.observer) {
  nn::Pass own = pass;
  own.observer = &kept_;
  other_ = from.measure(own);
  own_ = into.measure(pass);
}

double Patching::value(const std::vector<PatchSite>& sites) const {
  Patch patch(sites, kept_, pass_.observer);
  nn::Pass own = pass_;
  own.observer = &patch;
  return into_.measure(own);
}

std::vector<HeadValue> Patching::heads() const {
  std::vector<HeadValue> all;
  for (const HeadOutputs::Layer& layer : kept_.layers()) {
    for (int64_t head = 0; head < layer.heads; ++head) {
      all.push_back({layer.path, head, value({{.layer = layer.path, .head = head}})});
    }
  }
  return all;
}

std::vector<HeadValue> Patching::layers() const {
  std::vector<HeadValue> all;
  for (const HeadOutputs::Layer& layer : kept_.layers()) {
    all.push_back({layer.path, -1, value({{.layer = layer.path}})});
  }
  return all;
}

}  // namespace heed::analysis
