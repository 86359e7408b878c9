// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/integrated_gradients.h"

#include <algorithm>
#include <cmath>

#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

// Embeddings times a factor, and one token's times more.
class Scaled final : public nn::Observer {
 public:
  Scaled(double factor, nn::TextSide side, int64_t token, double more)
      : factor_(factor), side_(side), token_(token), more_(more) {}
  Var embeddings(const Context&, nn::TextSide side, const Var& embedded) override {
    const Tensor scaled = embedded.value().clone();
    const int64_t E = scaled.shape(2);
    for (int64_t i = 0; i < scaled.size(); ++i) {
      scaled.data<double>()[i] *= factor_ + (side == side_ && i / E == token_ ? more_ : 0);
    }
    return scaled;
  }

 private:
  double factor_;
  nn::TextSide side_;
  int64_t token_;
  double more_;
};

class IntegratedGradientsTest : public AnalysisTest {
 protected:
  double at(const Question& question, double factor, nn::TextSide side, int64_t token, double more) {
    Scaled scaled(factor, side, token, more);
    return question.measure(pass(&scaled));
  }
};

TEST_F(IntegratedGradientsTest, AreTheSumOfDirectionalDerivatives) {
  constexpr double kStep = 1e-5;
  constexpr int64_t kSteps = 4;
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 1);
    const Question question(*model, pair_for(model->task()), {.position = 1});
    const IntegratedGradients came = integrated_gradients(pass(), question, {.steps = kSteps});
    EXPECT_EQ(came.value, question.measure(pass()));
    EXPECT_EQ(came.baseline, at(question, 0, nn::TextSide::source, 0, 0));
    double largest = 0, sum = 0;
    for (const auto* side : {&came.source, &came.target}) {
      for (const double share : *side) largest = std::max(largest, std::abs(share)), sum += share;
    }
    EXPECT_NEAR(came.completeness_error, sum - (came.value - came.baseline), 1e-12);
    for (const nn::TextSide side : {nn::TextSide::source, nn::TextSide::target}) {
      const std::vector<double>& shares = side == nn::TextSide::source ? came.source : came.target;
      ASSERT_EQ(std::ssize(shares), question.tokens(side));
      for (int64_t token = 0; token < question.tokens(side); ++token) {
        double expected = 0;  // x_i . d target / d x_i is the derivative by a factor of x_i
        for (int64_t step = 0; step < kSteps; ++step) {
          const double factor = (static_cast<double>(step) + 0.5) / kSteps;
          expected += (at(question, factor, side, token, kStep) - at(question, factor, side, token, -kStep)) /
                      (2 * kStep * kSteps);
        }
        EXPECT_NEAR(shares[static_cast<size_t>(token)], expected, 1e-6 * std::max(1.0, largest)) << token;
      }
    }
  }
}

// A smooth integrand's midpoint rule has an error of second order: 16 times the steps, about 1/256 of it.
TEST_F(IntegratedGradientsTest, ComeNearerToCompleteWithMoreSteps) {
  const auto model = drawn(self_attentive(models::BaseLayer::lstm), 2);
  const Question question(*model, pair_for(model->task()));
  const double few = std::abs(integrated_gradients(pass(), question, {.steps = 64}).completeness_error),
               many = std::abs(integrated_gradients(pass(), question, {.steps = 1024}).completeness_error);
  EXPECT_GT(few, 0);
  EXPECT_LT(many, few / 64);
}

TEST_F(IntegratedGradientsTest, LeaveTheParametersGradientsAlone) {
  const auto model = drawn(transformer(models::TransformerKind::encoder_decoder), 3);
  integrated_gradients(pass(), Question(*model, pair_for(model->task())), {.steps = 1});
  for (const double x : model->parameters().gradients().to_doubles()) ASSERT_EQ(x, 0);
}

TEST_F(IntegratedGradientsTest, NeedAStep) {
  const auto model = drawn(transformer(models::TransformerKind::encoder), 3);
  EXPECT_NE(error_of([&] {
              integrated_gradients(pass(), Question(*model, {{3}, {1}}), {.steps = 0});
            }).find("integrated gradients: steps is 0, expected"),
            std::string::npos);
}

}  // namespace
}  // namespace heed::analysis
