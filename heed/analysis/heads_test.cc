// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/heads.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/analysis/gates.h"
#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

class HeadsTest : public AnalysisTest {
 protected:
  double with_gate(const Question& question, const HeadValue& head, double factor) {
    Gates gates({{head.layer, head.head, factor}});
    return question.measure(pass(&gates));
  }
  // The derivative by a head's gate at 1, from differences of two steps: its error is of fourth order.
  double difference(const Question& question, const HeadValue& head) {
    const auto change = [&](double step) {
      return with_gate(question, head, 1 + step) - with_gate(question, head, 1 - step);
    };
    return (8 * change(kStep) - change(2 * kStep)) / (12 * kStep);
  }
  // What rounding makes of it: the value is exact to about 100 units in the last place.
  double rounding(const Question& question) {
    return 100 * std::numeric_limits<double>::epsilon() * std::abs(question.measure(pass())) / kStep;
  }

  static constexpr double kStep = 1e-4;
};

TEST_F(HeadsTest, GradientsAreThoseOfDifferences) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 1);
    for (const Target& target : {Target{}, Target{.position = 2}, Target{.position = 1, .token = 3, .against = 2}}) {
      const Question question(*model, pair_for(model->task()), target);
      const std::vector<HeadValue> heads = head_gradients(pass(), question);
      ASSERT_EQ(heads.size(), family.heads);
      double largest = 0;
      for (const HeadValue& head : heads) largest = std::max(largest, std::abs(head.value));
      EXPECT_GT(largest, 0);
      for (const HeadValue& head : heads) {
        EXPECT_NEAR(head.value, difference(question, head), 1e-7 * largest + rounding(question))
            << head.layer << '.' << head.head;
      }
    }
  }
}

TEST_F(HeadsTest, EffectsAreMeasured) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 2);
    const Question question(*model, pair_for(model->task()), {.position = 1});
    const double whole = question.measure(pass());
    const std::vector<HeadValue> heads = head_effects(pass(), question);
    ASSERT_EQ(heads.size(), family.heads);
    for (const HeadValue& head : heads) EXPECT_EQ(head.value, with_gate(question, head, 0) - whole);
  }
}

// What the pass gates already stays so.
TEST_F(HeadsTest, AreThoseOfAGatedModel) {
  const auto model = drawn(transformer(models::TransformerKind::encoder_decoder), 3);
  const Question question(*model, pair_for(model->task()));
  Gates off({{"encoder.0.self", 1, 0}});
  for (const HeadValue& head : head_gradients(pass(&off), question)) {
    constexpr double kSmall = 1e-5;
    Gates more({{head.layer, head.head, 1 + kSmall}}, &off), less({{head.layer, head.head, 1 - kSmall}}, &off);
    const double change = question.measure(pass(&more)) - question.measure(pass(&less));
    if (head.layer == "encoder.0.self" && head.head == 1) continue;  // its difference is 0: what is off stays off
    EXPECT_NEAR(head.value, change / (2 * kSmall), 1e-6) << head.layer << '.' << head.head;
  }
}

TEST_F(HeadsTest, InSinglePrecisionAreTheSame) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto exact = drawn(family.options, 4), single = drawn(family.options, 4, DType::f32);
    const auto a = head_gradients(pass(), Question(*exact, pair_for(exact->task()))),
               b = head_gradients(pass(), Question(*single, pair_for(exact->task())));
    ASSERT_EQ(a.size(), b.size());
    double largest = 0;
    for (const HeadValue& head : a) largest = std::max(largest, std::abs(head.value));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i].value, b[i].value, 1e-4 * largest) << a[i].layer;
  }
}

TEST_F(HeadsTest, NeedAttention) {
  const auto model = drawn(recurrent(models::Query::none), 5);
  EXPECT_EQ(error_of([&] { head_gradients(pass(), Question(*model, pair_for(model->task()))); }),
            "the model has no attention, expected one that has heads");
}

}  // namespace
}  // namespace heed::analysis
