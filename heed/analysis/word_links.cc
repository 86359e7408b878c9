// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/word_links.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/analysis/heads.h"
#include "heed/analysis/kept_attention.h"
#include "heed/base/error.h"

namespace heed::analysis {
namespace {

nn::TextSide key_side(nn::AttentionRole role) {
  return role == nn::AttentionRole::masked ? nn::TextSide::target : nn::TextSide::source;
}

std::vector<HeadLinks> links_by(LinkMethod method, const nn::Pass& pass, const Question& question,
                                const Queries& queries) {
  if (method == LinkMethod::weights) return weight_links(pass, question, queries);
  return method == LinkMethod::values ? value_links(pass, question, queries) : gradient_links(pass, question, queries);
}

// The layers in which a text looks at itself.
std::vector<KeptAttention> layers_within(const nn::Pass& pass, const Question& question) {
  std::vector<KeptAttention> layers = kept_attention(pass, question);
  std::erase_if(layers, [](const KeptAttention& layer) { return layer.query_side() != layer.key_side(); });
  return layers;
}

void check_index(const char* name, int64_t index, int64_t count) {
  if (index < count) return;
  throw Error(std::string("words looked at: ") + name + " is " + std::to_string(index) + ", expected 0 to " +
              std::to_string(count - 1) + ", or -1");
}

}  // namespace

std::vector<WordLinks> word_links(const nn::Pass& pass, const Reading& reading, const Question& question,
                                  const WordPlace& from, LinkMethod method) {
  std::vector<WordLinks> all;
  for (const HeadLinks& one : links_by(method, pass, question, reading.queries(from))) {
    const nn::TextSide side = key_side(one.role);
    all.push_back({one.layer, one.head, side, reading.by_word(side, one.links)});
  }
  return all;
}

void words_looked_at(const nn::Pass& pass, const Reading& reading, const Question& question,
                     const AlignOptions& options, const std::function<void(size_t word, const ByWord&)>& each) {
  const std::vector<KeptAttention> layers = layers_within(pass, question);
  check_index("layer", options.layer, std::ssize(layers));
  const KeptAttention& layer = options.layer < 0 ? layers.back() : layers[static_cast<size_t>(options.layer)];
  check_index("head", options.head, layer.heads());
  const nn::TextSide side = layer.query_side();
  for (size_t word = 0; word < reading.words(side).size(); ++word) {
    const Queries chosen = reading.queries({side, word});
    const std::vector<int64_t>& queries = side == nn::TextSide::source ? chosen.source : chosen.target;
    std::vector<double> mean(static_cast<size_t>(layer.keys()));
    const Tensor rows = queries.empty() ? Tensor() : layer.weights(pass, queries);
    const int64_t count = std::ssize(queries), heads = options.head < 0 ? layer.heads() : 1;
    for (int64_t i = 0; i < layer.heads() * count; ++i) {
      if (options.head >= 0 && i / count != options.head) continue;
      const double* row = rows.data<double>() + i * layer.keys();
      for (size_t s = 0; s < mean.size(); ++s) mean[s] += row[s] / static_cast<double>(heads * count);
    }
    each(word, reading.by_word(side, mean));
  }
}

std::vector<RankedHead> rank_heads(const nn::Pass& pass, const Reading& reading, const Question& question,
                                   const std::optional<WordPlace>& from, size_t measured) {
  std::vector<RankedHead> ranked;
  if (from) {
    const auto gradients = word_links(pass, reading, question, *from, LinkMethod::gradients);
    for (WordLinks& weights : word_links(pass, reading, question, *from, LinkMethod::weights)) {
      for (const WordLinks& one : gradients) {
        if (one.layer != weights.layer || one.head != weights.head) continue;
        // gate d target / d gate = sum_s a_ts d target / d a_ts, at gate 1
        const std::vector<double>& links = one.links.words;
        ranked.push_back({std::move(weights), std::accumulate(links.begin(), links.end(), one.links.rest), {}});
        break;
      }
    }
  } else {
    const std::vector<HeadValue> heads = head_gradients(pass, question);
    ranked.reserve(heads.size());
    for (const HeadValue& head : heads) {
      ranked.push_back({{head.layer, head.head, {}, {}}, head.value, {}});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedHead& a, const RankedHead& b) {
    return std::abs(a.gradient) > std::abs(b.gradient);
  });
  for (size_t i = 0; i < std::min(measured, ranked.size()); ++i) {
    ranked[i].off = effect_of(pass, question, {{ranked[i].weights.layer, ranked[i].weights.head, 0}});
  }
  return ranked;
}

}  // namespace heed::analysis
