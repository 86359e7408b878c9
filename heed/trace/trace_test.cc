// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/trace/base64.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

using heed::testing::bytes_of, heed::testing::error_of, heed::testing::seeded, heed::testing::TemporaryFolder;

// Two tokens that look at each other in one head, by hand.
Trace small_trace() {
  Trace t;
  t.tool = "by hand";
  t.model = {.kind = "transformer", .task = "tag", .layers = 1, .heads = 1, .kv_heads = 1, .width = 2, .head_width = 2};
  t.sequences = {{.id = "source", .role = SequenceRole::source, .text = "a </script>"}};
  t.sequences[0].tokens = {{.id = 4, .piece = "\u2581a", .text = "a", .start = 0, .end = 1, .word = 0, .prob = 0.25},
                           {.id = 2, .piece = "</s>", .special = true}};
  const std::vector<float> half = {0.5f, 0.5f, 0.25f, 0.75f}, entropy = {0.6931472f, 0.5623351f};
  t.tensors["w"] = Array::f32({1, 2, 2}, half);
  t.tensors["e"] = Array::f32({1, 2}, entropy);
  Attention one{.id = "a", .path = "encoder.0.self", .stack = "encoder", .heads = {0}, .key_heads = {0}};
  one.q = one.k = {.seq = "source", .begin = 0, .end = 2};
  one.weights = {"w"}, one.stats.entropy = {"e"};
  t.attn = {one};
  t.output.seq = "source";
  t.output.steps = {{.row = 0, .id = 5, .piece = "X", .logprob = -0.5, .alternatives = {{5, "X", -0.5}}}};
  return t;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Trace, IsWrittenAndReadAndWrittenTheSame) {
  const Trace trace = small_trace();
  const std::string text = to_json(trace);
  const Trace again = from_json(text, "t");
  EXPECT_EQ(to_json(again), text);
  EXPECT_EQ(again.values(again.attn[0].weights), (std::vector<float>{0.5f, 0.5f, 0.25f, 0.75f}));
  EXPECT_EQ(again.sequence("source").tokens[0].piece, "\u2581a");
  EXPECT_EQ(again.sequence("source").tokens[0].prob, 0.25);
  EXPECT_FALSE(again.sequence("source").tokens[1].start.has_value());
  EXPECT_FALSE(again.attn[0].Q);
}

TEST(Trace, IsAFile) {
  const TemporaryFolder folder;
  save(folder.file("t.json"), small_trace());
  EXPECT_EQ(to_json(load(folder.file("t.json"))), to_json(small_trace()));
  EXPECT_EQ(folder.count(), 1u) << "nothing unfinished is left";
}

TEST(Trace, RefusesAnotherVersionAndIgnoresWhatItDoesNotKnow) {
  const std::string text = to_json(small_trace());
  EXPECT_EQ(to_json(from_json(replaced(text, "\"tool\":", "\"colour\":[{\"deep\":null}],\"tool\":"), "t")), text);
  EXPECT_EQ(to_json(from_json(replaced(text, "\"1.1\"", "\"1.7\""), "t")), text);
  EXPECT_EQ(error_of([&] { from_json(replaced(text, "\"1.1\"", "\"2.0\""), "t"); }),
            "t: version is '2.0', expected 1.x: it was written by another heed");
  EXPECT_EQ(error_of([&] { from_json(replaced(text, "heed-trace", "other"), "t"); }),
            "t: format is 'other', expected 'heed-trace'");
  EXPECT_EQ(error_of([&] { from_json("{}", "t"); }), "t: there is no format, expected 'heed-trace': it is no trace");
  EXPECT_EQ(error_of([&] { from_json("[1]", "t"); }), "t: is a list, expected a trace, which is an object");
}

TEST(Trace, SaysWhatIsWrongWithAFile) {
  const std::string text = to_json(small_trace());
  const auto error = [&](const std::string& from, const std::string& to) {
    return error_of([&] { from_json(replaced(text, from, to), "t"); });
  };
  EXPECT_EQ(error_of([&] { from_json(text.substr(0, text.size() / 2), "t"); }).substr(0, 24),
            "t: not valid JSON at lin");
  EXPECT_EQ(error("\"fn\":\"dot\"", "\"fn\":\"cosine\""),
            "t: attn[0].score.fn is 'cosine', expected one of dot, additive");
  EXPECT_EQ(error("\"special\":true", "\"special\":1"),
            "t: sequences[0].tokens[1].special is 1, expected true or false");
  EXPECT_EQ(error("\"id\":4,", ""), "t: sequences[0].tokens[0] has no id, expected one");
  EXPECT_EQ(error("\"weights\":\"w\"", "\"weights\":\"x\""),
            "t: trace: attn[0].weights names tensor 'x', which is not there");
  EXPECT_EQ(error("\"begin\":0,\"end\":2", "\"begin\":0,\"end\":3"),
            "t: trace: attn[0].q is 0 to 3, expected a part of 0 to 2 tokens");
  EXPECT_EQ(error("\"heads\":[0]", "\"heads\":[0,1]"),
            "t: trace: attn[0].key_heads has 1 numbers, expected 2, one a head");
  EXPECT_EQ(error("\"shape\":[1,2,2]", "\"shape\":[1,4,1]"),
            "t: trace: attn[0].weights has shape [1, 4, 1], expected [1, 2, 2]");
  EXPECT_EQ(error("\"shape\":[1,2,2]", "\"shape\":[1,2,3]"),
            "t: trace: tensors['w']: 16 bytes came for shape [1, 2, 3], expected 24");
  EXPECT_EQ(error("\"shape\":[1,2,2]", "\"shape\":[4294967296,4294967296,4294967296]"),
            "t: trace: tensors['w']: its shape is too large");
  EXPECT_EQ(error("\"row\":0", "\"row\":2"), "t: trace: output.steps has row 2, expected 0 to 1");
  EXPECT_EQ(error("\"end\":1,", "\"end\":99,"),
            "t: trace: sequences[0]: a token has bytes 0 to 99, expected bytes of its text (11)");
  EXPECT_EQ(error("\"enc\":\"base64\"", "\"enc\":\"hex\""), "t: tensors['e'].enc is 'hex', expected 'base64'");
  EXPECT_EQ(error("\"data\":\"AAAAPw", "\"data\":\"AAAAP"),
            "t: tensors['w'].data is no base64, or cut off: 23 characters");
  EXPECT_EQ(error("\"data\":\"AAAAPw", "\"data\":\"AAAAQw").substr(0, 39), "t: tensors['w'].data has the check sum ");
}

TEST(Trace, EffectsOfWhatIsNotThereAreRefused) {
  const auto error = [](Effect effect) {
    Trace trace = small_trace();
    effect.seq = trace.output.seq;
    trace.effects = {std::move(effect)};
    return error_of([&] { trace.check(); });
  };
  const std::string path = small_trace().attn[0].path;
  EXPECT_EQ(error({.row = 2}), "trace: effects[0].row is 2, expected 0 to 1");
  EXPECT_EQ(error({.heads = {{"x", 0, 0.5}}}), "trace: effects[0].heads has layer 'x', which is not there");
  EXPECT_EQ(error({.links = {{.path = path, .values = {"w"}}}}),
            "trace: effects[0].links.values has shape [1, 2, 2], expected [1, 2]");
  EXPECT_EQ(error({.left_out = {{{"nowhere", 0, 1}, 0.5}}}),
            "trace: effects[0].left_out.tokens names sequence 'nowhere', which is not there");
  EXPECT_EQ(error({.rollout = TokenShares{.source = {"w"}}}),
            "trace: effects[0].source has shape [1, 2, 2], expected [any]");
}

TEST(Trace, NumbersThatJsonDoesNotHaveAreRefused) {
  Trace trace = small_trace();
  trace.output.logprob = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { to_json(trace); }), "trace: a number is not finite, expected numbers that JSON has");
  EXPECT_EQ(error_of([] { Array::f32({1}, std::vector<float>{NAN}); }),
            "trace: a number is NaN, expected finite ones: the weights of the model are broken, or too large");
  EXPECT_EQ(error_of([] { Array::f16({2}, std::vector<float>{1}); }),
            "trace: 1 numbers came for shape [2], expected 2");
}

TEST(Trace, ArraysKeepTheirNumbers) {
  Rng rng(seeded(1));
  std::vector<float> numbers;
  for (int i = 0; i < 100; ++i) numbers.push_back(3 * rng.normal());
  EXPECT_EQ(Array::f32({10, 10}, numbers).values(), numbers);
  const std::vector<float> halves = Array::f16({100}, numbers).values();
  const Array bytes = Array::u8n({100}, numbers);
  const std::vector<float> coarse = bytes.values();
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(halves[i], numbers[i], std::abs(numbers[i]) * 0x1p-11 + 0x1p-25);
    EXPECT_NEAR(coarse[i], numbers[i], (bytes.high - bytes.low) / 255 * 0.5001);
  }
  const Array large = Array::f16({1}, std::vector<float>{1e6f});
  EXPECT_EQ(large.dtype, Storage::f32) << "an f16 has no such number";
  EXPECT_EQ(large.values()[0], 1e6f);
  EXPECT_EQ(Array::u8n({2}, std::vector<float>{0, 0}).values(), (std::vector<float>{0, 0}));
  EXPECT_EQ(Array::u32({2}, std::vector<uint32_t>{7, kNoKey}).keys(), (std::vector<uint32_t>{7, kNoKey}));
}

// The test vectors of RFC 4648, and the check value that CRC-32 is known by.
TEST(Base64, IsThatOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes_of(bytes)), text);
    EXPECT_EQ(heed::testing::text_of(from_base64(text).value()), bytes);
  }
  for (const char* wrong : {"Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm9v\n", "Zg==Zg==", "Zm9\xff"}) {
    EXPECT_FALSE(from_base64(wrong)) << wrong;
  }
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
}

TEST(Mask, SeesWhatItSays) {
  const Mask causal{.type = MaskType::causal, .offset = 1};
  EXPECT_TRUE(causal.sees(2, 3));
  EXPECT_FALSE(causal.sees(2, 4));
  const Mask window{.type = MaskType::window, .left = 1, .right = 0, .keys = 3};
  EXPECT_FALSE(window.sees(2, 0));
  EXPECT_TRUE(window.sees(2, 1));
  EXPECT_FALSE(window.sees(3, 3)) << "padding";
  EXPECT_TRUE(Mask{}.sees(0, 100));
}

}  // namespace
}  // namespace heed::trace
