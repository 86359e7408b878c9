// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/gates.h"

#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;

class GatesTest : public AnalysisTest {
 protected:
  double measure(const Question& question, nn::Observer* observer) { return question.measure(pass(observer)); }
};

TEST(ParseGate, ReadsAHeadOrALayerAndItsFactor) {
  const HeadGate one = parse_gate("encoder.1.self.2=0.5"), all = parse_gate("decoder.0.cross=-1"),
                 short_path = parse_gate("decoder.cross.0=0");
  EXPECT_EQ(one.layer, "encoder.1.self");
  EXPECT_EQ(one.head, 2);
  EXPECT_EQ(one.factor, 0.5);
  EXPECT_EQ(all.layer, "decoder.0.cross");
  EXPECT_EQ(all.head, -1);
  EXPECT_EQ(all.factor, -1);
  EXPECT_EQ(short_path.layer, "decoder.cross");
  for (const char* text : {"", "encoder", "encoder=0", "encoder.0.self.2", "encoder.0.self.=0", "encoder.0.self.2=",
                           "encoder.0.self.2=x", "encoder.0.self.2=nan", "encoder.0.self.2=inf", ".2=0"}) {
    EXPECT_EQ(error_of([&] { parse_gate(text); }),
              std::string("gate '") + text + "' is no head with its factor, expected such as encoder.0.self.2=0");
  }
  EXPECT_EQ(error_of([] { parse_gate("encoder.0.self.-1=0"); }),
            "gate 'encoder.0.self.-1=0' is for head -1, expected 0 or more");
}

TEST(ParseHead, HasALayerAndItsHeadOrAll) {
  EXPECT_EQ(parse_head("encoder.1.self.2").layer, "encoder.1.self");
  EXPECT_EQ(parse_head("encoder.1.self.2").head, 2);
  EXPECT_EQ(parse_head("encoder.1.self").layer, "encoder.1.self");
  EXPECT_EQ(parse_head("encoder.1.self").head, -1);
  EXPECT_EQ(error_of([] { parse_head("encoder.1.self.-1"); }), "'encoder.1.self.-1' is head -1, expected 0 or more");
}

// A head with factor g is one whose values are g times as large.
TEST_F(GatesTest, ScaleWhatAHeadGives) {
  const auto model = drawn(transformer(Kind::encoder_decoder), 3);
  const Question question(*model, pair_for(model->task()));
  const double plain = measure(question, nullptr);
  Gates half({{"encoder.1.self", 0, 0.5}}), on({{"encoder.1.self", 0, 1}}), none;
  const double halved = measure(question, &half);
  EXPECT_EQ(measure(question, &on), plain);
  EXPECT_EQ(measure(question, &none), plain);
  EXPECT_NE(halved, plain);
  const auto scale_values = [&](double factor) {  // rows of the first head of two
    for (const char* name : {"encoder.1.self.v.weight", "encoder.1.self.v.bias"}) {
      for (double& x : model->parameters().find(name)->value.slice(0, 4).span<double>()) x *= factor;
    }
  };
  scale_values(0.5);
  EXPECT_NEAR(measure(question, nullptr), halved, 1e-12);
}

TEST_F(GatesTest, MultiplyEachOther) {
  const auto model = drawn(transformer(Kind::encoder_decoder), 4);
  const Question question(*model, pair_for(model->task()));
  Gates layer({{"decoder.0.cross", -1, 0.5}}), both({{"decoder.0.cross", 0, 0.5}, {"decoder.0.cross", 1, 0.5}});
  EXPECT_EQ(measure(question, &layer), measure(question, &both));
  Gates twice({{"decoder.0.cross", 1, 0.5}, {"decoder.0.cross", 1, 0.5}}), once({{"decoder.0.cross", 1, 0.25}}),
      beside({{"decoder.0.cross", 1, 0.5}}, nullptr), outside({{"decoder.0.cross", 1, 0.5}}, &beside);
  EXPECT_EQ(measure(question, &twice), measure(question, &once));
  EXPECT_EQ(measure(question, &outside), measure(question, &once));
}

TEST_F(GatesTest, SayWhatIsNotThere) {
  const auto model = drawn(transformer(Kind::encoder_decoder), 5);
  const auto error = [&](const models::Model& of, const HeadGate& gate) {
    return error_of([&] { check_gates(pass(), of, std::span(&gate, 1)); });
  };
  EXPECT_EQ(error(*model, {"encoder.0.self", 1}), "no error");
  EXPECT_EQ(error(*model, {"encoder.0.self"}), "no error");
  EXPECT_EQ(error(*model, {"encoder.7.self", 0}),
            "there is no layer 'encoder.7.self', expected one of: encoder.0.self, encoder.1.self, decoder.0.self, "
            "decoder.0.cross, decoder.1.self, decoder.1.cross");
  EXPECT_EQ(error(*model, {"encoder.0.self", 2}), "layer 'encoder.0.self' has no head 2, expected 0 to 1");
  Gates beyond({{"encoder.0.self", 2, 0}});
  EXPECT_EQ(error_of([&] { measure(Question(*model, pair_for(model->task())), &beyond); }),
            "layer 'encoder.0.self' has no head 2, expected 0 to 1");
  EXPECT_EQ(error(*drawn(recurrent(models::Query::none), 5), {"encoder.0.self", 0}),
            "there is no layer 'encoder.0.self', expected a model with attention");
}

TEST_F(GatesTest, KnowEveryLayerOfEveryFamily) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 6);
    size_t heads = 0;
    for (const AttentionLayer& layer : attention_layers(pass(), *model)) heads += static_cast<size_t>(layer.heads);
    EXPECT_EQ(heads, family.heads);
  }
}

}  // namespace
}  // namespace heed::analysis
