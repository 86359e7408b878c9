// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/word_links.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

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

// What words look at in one layer, some words at a time: a kernel has one query in each lane, so that rows of one query
// alone would take many times as long.
class LookBlocks {
 public:
  LookBlocks(const Context& context, const KeptAttention& layer, int64_t head)
      : context_(context), layer_(layer), head_(head) {}

  int64_t most_queries() const { return std::max<int64_t>(1, kNumbers / (layer_.heads() * layer_.keys())); }

  // The mean over a word's queries, and over the heads or that of one of them; zeros of a word without queries.
  void looks(const std::vector<std::vector<int64_t>>& words,
             const std::function<void(size_t, const std::vector<double>&)>& each) const {
    std::vector<int64_t> queries;
    for (const std::vector<int64_t>& word : words) queries.insert(queries.end(), word.begin(), word.end());
    const Tensor rows = queries.empty() ? Tensor() : layer_.weights(context_, queries);
    const int64_t first = std::max<int64_t>(0, head_), last = head_ < 0 ? layer_.heads() : head_ + 1;
    std::vector<double> mean(static_cast<size_t>(layer_.keys()));
    for (int64_t i = 0, begin = 0; i < std::ssize(words); ++i) {
      const int64_t count = std::ssize(words[static_cast<size_t>(i)]);
      const double share = 1 / static_cast<double>((last - first) * count);
      std::fill(mean.begin(), mean.end(), 0);
      for (int64_t head = first; head < last; ++head) {
        for (int64_t query = begin; query < begin + count; ++query) {
          const double* row = rows.data<double>() + (head * std::ssize(queries) + query) * layer_.keys();
          for (size_t s = 0; s < mean.size(); ++s) mean[s] += share * row[s];
        }
      }
      begin += count;
      each(static_cast<size_t>(i), mean);
    }
  }

 private:
  static constexpr int64_t kNumbers = int64_t{1} << 21;  // weights that are in memory at a time, about
  const Context& context_;
  const KeptAttention& layer_;
  const int64_t head_;
};

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
  const LookBlocks blocks(pass, layer, options.head);
  const size_t words = reading.words(side).size();
  std::vector<std::vector<int64_t>> block;  // the queries of some words
  int64_t queries = 0;
  for (size_t word = 0; word < words; ++word) {
    Queries chosen = reading.queries({side, word});
    block.push_back(std::move(side == nn::TextSide::source ? chosen.source : chosen.target));
    queries += std::ssize(block.back());
    if (queries < blocks.most_queries() && word + 1 < words) continue;
    const size_t first = word + 1 - block.size();
    blocks.looks(block,
                 [&](size_t i, const std::vector<double>& look) { each(first + i, reading.by_word(side, look)); });
    block.clear(), queries = 0;
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
