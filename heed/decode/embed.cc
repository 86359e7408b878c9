// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/embed.h"

#include <algorithm>
#include <cmath>

#include "heed/data/batch.h"

namespace heed::decode {
namespace {

// states [tokens, width]
template <class T>
std::vector<double> pooled(const T* states, int64_t tokens, int64_t width, Pooling pooling) {
  const int64_t begin = pooling == Pooling::last ? tokens - 1 : 0, end = pooling == Pooling::first ? 1 : tokens;
  std::vector<double> vector(states + begin * width, states + (begin + 1) * width);
  for (int64_t t = begin + 1; t < end; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      double& to = vector[static_cast<size_t>(i)];
      const auto x = double{states[t * width + i]};
      to = pooling == Pooling::max ? std::max(to, x) : to + x;
    }
  }
  if (pooling == Pooling::mean) {
    for (double& x : vector) x /= static_cast<double>(tokens);
  }
  return vector;
}

void normalize(std::vector<double>& vector) {
  double squares = 0;
  for (const double x : vector) squares += x * x;
  if (squares == 0) return;
  for (double& x : vector) x /= std::sqrt(squares);
}

}  // namespace

Embedding Embedder::embed(const std::string& sentence, const EmbedOptions& options) const {
  return embed(std::span(&sentence, 1), options).front();
}

std::vector<Embedding> Embedder::embed(std::span<const std::string> sentences, const EmbedOptions& options,
                                       const Done<Embedding>& done) const {
  return embed_ids(engine_.encode(sentences), options, done);
}

std::vector<Embedding> Embedder::embed_ids(std::span<const std::vector<int32_t>> sentences, const EmbedOptions& options,
                                           const Done<Embedding>& done) const {
  engine_.check_sources(sentences);
  const text::SpecialTokens special = engine_.text_model().special();
  std::vector<Embedding> results(sentences.size());
  InferencePass pass(engine_, options.call);
  for_each_group(lengths_of(sentences), options.call, [&](std::span<const size_t> items) {
    const data::Batch batch = data::source_batch(gathered(sentences, items), special);
    const Tensor states = engine_.model().states(pass, data::source_tokens(batch)).value();
    const int64_t S = states.shape(1), width = states.shape(2);
    const Tensor rows = states.reshaped({batch.rows * S, width});
    for (int64_t row = 0; row < batch.rows; ++row) {
      const int64_t tokens = batch.source_lengths[static_cast<size_t>(row)];
      const Tensor own = rows.slice(row * S, tokens);
      Embedding& result = results[items[static_cast<size_t>(row)]];
      result.tokens.assign(batch.source.begin() + row * S, batch.source.begin() + row * S + tokens);
      if (options.states) result.states = own.clone();
      std::vector<double> vector = with_float("embed", own.dtype(), [&](auto type) {
        return pooled(own.data<decltype(type)>(), tokens, width, options.pooling);
      });
      if (options.normalize) normalize(vector);
      result.vector.assign(vector.begin(), vector.end());
      if (done) done(items[static_cast<size_t>(row)], result);
    }
  });
  return results;
}

}  // namespace heed::decode
