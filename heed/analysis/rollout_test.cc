// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/rollout.h"

#include <numeric>

#include "heed/analysis/testing.h"
#include "heed/analysis/weights.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;
using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b.front().size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b.front().size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

class RolloutTest : public AnalysisTest {
 protected:
  // Of all tokens, those of the source first: (1 + A) / 2 of one layer, and 1 where a token is on the other side.
  Matrix step_of(const Tensor& weights, nn::AttentionRole role, int64_t S, int64_t T) {
    Matrix step(static_cast<size_t>(S + T), std::vector<double>(static_cast<size_t>(S + T)));
    for (size_t i = 0; i < step.size(); ++i) step[i][i] = 1;
    const int64_t H = weights.shape(1), queries = weights.shape(2), keys = weights.shape(3);
    const int64_t row = role == nn::AttentionRole::self ? 0 : S, column = role == nn::AttentionRole::masked ? S : 0;
    for (int64_t t = 0; t < queries; ++t) {
      std::vector<double>& to = step[static_cast<size_t>(row + t)];
      to[static_cast<size_t>(row + t)] = 0.5;
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t s = 0; s < keys; ++s) {
          const float* numbers = weights.data<float>() + (h * queries + t) * keys;
          to[static_cast<size_t>(column + s)] += 0.5 * double{numbers[s]} / static_cast<double>(H);
        }
      }
    }
    return step;
  }

  // The product of all layers' matrices, written out. Weights are recorded in f32.
  Matrix definition(const Question& question) {
    const int64_t S = question.tokens(nn::TextSide::source), T = question.tokens(nn::TextSide::target);
    std::vector<std::pair<std::string, Matrix>> steps;
    for (const auto role : {nn::AttentionRole::self, nn::AttentionRole::masked, nn::AttentionRole::cross}) {
      WeightRecorder recorder(role, parallel_);
      question.measure(pass(&recorder));
      for (const auto& layer : recorder.layers()) {
        // encoder.0.self, decoder.0.self, decoder.0.cross: the order in which they run
        std::string order = (layer.path[0] == 'e' ? "0" : "1") + layer.path.substr(8, 1);
        order += role == nn::AttentionRole::cross ? "1" : "0";
        steps.emplace_back(order, step_of(layer.weights, role, S, T));
      }
    }
    std::sort(steps.begin(), steps.end());
    Matrix all = steps.back().second;
    for (size_t i = steps.size() - 1; i-- > 0;) all = product(all, steps[i].second);
    return all;
  }
};

TEST_F(RolloutTest, IsARowOfTheProductOfAllLayers) {
  for (const Kind kind : {Kind::encoder_decoder, Kind::encoder, Kind::decoder}) {
    const auto model = drawn(transformer(kind), 1);
    const Question question(*model, pair_for(model->task()));
    const Matrix expected = definition(question);
    const int64_t S = question.tokens(nn::TextSide::source);
    for (const nn::TextSide side : {nn::TextSide::source, nn::TextSide::target}) {
      for (int64_t t = 0; t < question.tokens(side); ++t) {
        const Rollout shares = rollout(pass(), question, side, t);
        std::vector<double> all = shares.source;
        all.insert(all.end(), shares.target.begin(), shares.target.end());
        EXPECT_NEAR(std::accumulate(all.begin(), all.end(), 0.0), 1, 1e-12);
        const auto& row = expected[static_cast<size_t>(side == nn::TextSide::source ? t : S + t)];
        ASSERT_EQ(all.size(), row.size());
        for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], row[i], 1e-6) << "from " << t << " to " << i;
      }
    }
  }
}

TEST_F(RolloutTest, IsForTransformers) {
  const auto model = drawn(recurrent(models::Query::current), 2), other = drawn(transformer(Kind::encoder), 2);
  EXPECT_EQ(
      error_of([&] {
        rollout(pass(), Question(*model, {{3}, {4}}), nn::TextSide::target, 0);
      }),
      "rollout: the model is of family rnn_seq2seq, expected a transformer: recurrent layers pass words on by ways "
      "that are no attention");
  EXPECT_EQ(error_of([&] {
              rollout(pass(), Question(*other, {{3}, {1}}), nn::TextSide::source, 2);
            }),
            "rollout: position is 2, expected 0 to 1");
}

}  // namespace
}  // namespace heed::analysis
