// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/rollout.h"

#include <algorithm>
#include <string>
#include <variant>

#include "heed/analysis/kept_attention.h"
#include "heed/base/error.h"

namespace heed::analysis {
namespace {

constexpr int64_t kNumbers = int64_t{1} << 21;  // weights that are in memory at a time, about

// A^T r, in the mean of the heads.
std::vector<double> transposed_product(const Context& context, const KeptAttention& layer,
                                       const std::vector<double>& r) {
  std::vector<double> sum(static_cast<size_t>(layer.keys()));
  const int64_t heads = layer.heads(), S = layer.keys(), block = std::max<int64_t>(1, kNumbers / (heads * S));
  std::vector<int64_t> queries;
  const auto add_block = [&] {
    const auto count = static_cast<int64_t>(queries.size());
    if (count == 0) return;
    const Tensor rows = layer.weights(context, queries);
    for (int64_t i = 0; i < heads * count; ++i) {
      const double share = r[static_cast<size_t>(queries[static_cast<size_t>(i % count)])] / static_cast<double>(heads);
      const double* row = rows.data<double>() + i * S;
      for (int64_t s = 0; s < S; ++s) sum[static_cast<size_t>(s)] += share * row[s];
    }
    queries.clear();
  };
  for (int64_t t = 0; t < layer.queries(); ++t) {
    if (r[static_cast<size_t>(t)] != 0) queries.push_back(t);
    if (std::ssize(queries) == block) add_block();
  }
  add_block();
  return sum;
}

}  // namespace

Rollout rollout(const nn::Pass& pass, const Question& question, nn::TextSide side, int64_t position) {
  if (!std::holds_alternative<models::TransformerOptions>(question.model().options().family)) {
    throw Error("rollout: the model is of family " + question.model().options().family_name() +
                ", expected a transformer: recurrent layers pass words on by ways that are no attention");
  }
  if (position < 0 || position >= question.tokens(side)) {
    throw Error("rollout: position is " + std::to_string(position) + ", expected 0 to " +
                std::to_string(question.tokens(side) - 1));
  }
  Rollout result{std::vector<double>(static_cast<size_t>(question.tokens(nn::TextSide::source))),
                 std::vector<double>(static_cast<size_t>(question.tokens(nn::TextSide::target)))};
  const auto of = [&](nn::TextSide one) -> std::vector<double>& {
    return one == nn::TextSide::source ? result.source : result.target;
  };
  of(side)[static_cast<size_t>(position)] = 1;
  const std::vector<KeptAttention> layers = kept_attention(pass, question);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    std::vector<double>& from = of(layer->query_side());
    const std::vector<double> seen = transposed_product(pass, *layer, from);
    for (double& share : from) share /= 2;
    std::vector<double>& to = of(layer->key_side());
    for (size_t s = 0; s < seen.size(); ++s) to[s] += seen[s] / 2;
  }
  return result;
}

}  // namespace heed::analysis
