// SPDX-License-Identifier: Apache-2.0
#include "heed/models/rnn_seq2seq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/io/config.h"
#include "heed/models/model.h"
#include "heed/models/recurrent_testing.h"

namespace heed::models {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::Batch, testing::columns_of, testing::deviation, testing::label, testing::Machine, testing::name_of,
    testing::row_of, testing::run, testing::same_bits;

// That follow each other forward and backward, on the longest path: each token of source and target, each layer, with
// sums over inputs and states (8), gates (16), keys (4) and scores (4); the readout and the output.
double additions_of(const RnnSeq2SeqOptions& o, int64_t S, int64_t T) {
  const int64_t layers = std::max({o.layers, o.encoder_layers, o.decoder_layers});
  const double decoder = 2.0 * static_cast<double>((S + T) * layers) * (8 + 4 + 16 + 8 + 10) + 60;
  const double fed = o.feed == Feed::attentional ? 2.0 * static_cast<double>(T) * (8 + 4 + 10) : 0;
  if (o.encoder == Encoder::recurrent) return decoder + fed;
  // Each token and block of an encoder whose states attend, as in the test of self_attentive.
  return decoder + fed + 2.0 * static_cast<double>(S * o.self_attentive.blocks) * (12 + 16 + 12 + 10) * 2;
}

class RnnSeq2SeqVariant : public ::testing::TestWithParam<RnnSeq2SeqOptions> {
 protected:
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng{seeded(21)};
  RnnSeq2Seq model{GetParam(), rng};
  ParameterStore store{model};
  void SetUp() override { testing::scatter(store, 21); }
  void expect_exact_gradients();
  void expect_steps_like_the_whole();
  void expect_the_same_from_a_folder();
};

void RnnSeq2SeqVariant::expect_exact_gradients() {
  const RnnSeq2SeqOptions options = GetParam();
  const Batch batch(options, 2, 4, 3, rng);
  const auto make = [&] {
    Rng weights(seeded(12));
    return RnnSeq2Seq(options, weights);
  };
  const auto use = [&](const RnnSeq2Seq& made, nn::Pass& run_pass, std::span<const Var>) {
    return run(made, run_pass, batch);
  };
  const double additions = additions_of(options, 4, 3);
  testing::check_layer(make, {}, use, {.training = true, .additions = additions, .seed = seeded(13)});
}

void RnnSeq2SeqVariant::expect_steps_like_the_whole() {
  constexpr int64_t T = 9;
  const Batch batch(GetParam(), 3, 6, T, rng);
  const Tensor whole = run(model, pass, batch).value();
  nn::State state = model.begin(pass, batch.source);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}, {2, 7}, {7, 8}, {8, 9}}) {
    const Tensor logits = model.step(pass, columns_of(batch.target.ids, begin, end), state).value();
    for (int64_t t = begin; t < end; ++t) {
      EXPECT_LE(deviation(row_of(logits, t - begin), row_of(whole, t)), 1e-5) << "token " << t;
    }
  }
  EXPECT_EQ(state.length(), T);
}

TEST_P(RnnSeq2SeqVariant, HasExactGradients) { expect_exact_gradients(); }
TEST_P(RnnSeq2SeqVariant, StepsGiveTheLogitsOfTheWhole) { expect_steps_like_the_whole(); }
TEST_P(RnnSeq2SeqVariant, ComesBackFromItsFolder) { expect_the_same_from_a_folder(); }

TEST_P(RnnSeq2SeqVariant, ReorderedHypothesesGoOn) {
  const Batch batch(GetParam(), 3, 5, 4, rng);
  nn::State state = model.begin(pass, batch.source), same = state;
  for (int64_t t = 0; t < 4; ++t) {
    const Tensor ids = columns_of(batch.target.ids, t, t + 1);
    model.step(pass, ids, state), model.step(pass, ids, same);
  }
  const std::vector<int64_t> parents{2, 0, 0, 1};
  state.reorder(parents);
  const Tensor next = Tensor::of({4, 1}, std::vector<int32_t>{1, 1, 1, 1});
  const Tensor got = model.step(pass, next, state).value();
  const Tensor want = model.step(pass, Tensor::of({3, 1}, std::vector<int32_t>{1, 1, 1}), same).value();
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_LE(deviation(got.slice(i, 1), want.slice(parents[static_cast<size_t>(i)], 1)), 1e-5) << i;
  }
}

TEST_P(RnnSeq2SeqVariant, NeverPeeks) {
  constexpr int64_t T = 7;
  Batch batch(GetParam(), 2, 5, T, rng);
  const Tensor before = run(model, pass, batch).value();
  for (int64_t i = 0; i < T; ++i) {
    const Tensor ids = batch.target.ids, other = ids.clone();
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t t = i; t < T; ++t) {
        int32_t& id = other.data<int32_t>()[b * T + t];
        id = (id + 1) % testing::kVocabulary;
      }
    }
    batch.target.ids = other;
    const Tensor after = run(model, pass, batch).value();
    for (int64_t t = 0; t < i; ++t) EXPECT_TRUE(same_bits(row_of(after, t), row_of(before, t))) << i << ", row " << t;
    batch.target.ids = ids;
  }
}

TEST_P(RnnSeq2SeqVariant, WhatStandsInPaddingDoesNotMatter) {
  constexpr int64_t B = 3, S = 6;
  const Batch batch(GetParam(), B, S, 4, rng);
  const Tensor before = run(model, pass, batch).value();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = batch.source_lengths[b]; s < S; ++s) {
      int32_t& id = batch.source.ids.data<int32_t>()[b * S + s];
      id = (id + 1) % testing::kVocabulary;
    }
  }
  EXPECT_TRUE(same_bits(run(model, pass, batch).value(), before));
}

TEST_P(RnnSeq2SeqVariant, MorePaddingChangesOnlyRounding) {
  constexpr int64_t S = 6;
  const Batch batch(GetParam(), 3, S, 4, rng);
  const Tensor before = run(model, pass, batch).value();
  const Tokens padded{testing::with_padding(batch.source.ids, 5), batch.source.lengths};
  const Tensor after = model.decode(pass, batch.target, model.encode(pass, padded), padded).value();
  EXPECT_LE(deviation(after, before), additions_of(GetParam(), S, 4) * testing::kUnit);
}

struct Listener : nn::Observer {
  std::vector<std::string> told;
  void attention(const nn::AttentionEvent& e) override {
    told.push_back(e.path + " " + nn::name_of(e.role) + " " + std::to_string(e.position) + " " +
                   to_string(e.inputs.q.shape()) + (e.stats ? "" : " without stats"));
  }
};

TEST_P(RnnSeq2SeqVariant, TellsAnObserver) {
  const Batch batch(GetParam(), 2, 5, 4, rng);
  Listener listener;
  pass.observer = &listener;
  run(model, pass, batch);
  std::vector<std::string> expected;
  const AttentiveBlocksOptions& blocks = GetParam().self_attentive;
  const bool attends = GetParam().encoder == Encoder::self_attentive && blocks.attention;
  for (int64_t i = 0; attends && i < blocks.blocks; ++i) {
    const int64_t width = blocks.base == BaseLayer::none ? 4 << i : 4;
    expected.push_back("encoder." + std::to_string(i) + ".self self 0 [2, 1, 5, " + std::to_string(width) + "]");
  }
  if (GetParam().first_state == FirstState::learned) expected.push_back("decoder.first cross 0 [2, 1, 1, 4]");
  if (GetParam().query != Query::none) expected.push_back("decoder.cross cross 0 [2, 1, 4, 4]");
  EXPECT_EQ(listener.told, expected);
  nn::State state = model.begin(pass, batch.source);
  model.step(pass, columns_of(batch.target.ids, 0, 1), state);
  listener.told.clear();
  model.step(pass, columns_of(batch.target.ids, 1, 2), state);
  if (GetParam().query != Query::none) {
    EXPECT_EQ(listener.told, std::vector<std::string>{"decoder.cross cross 1 [2, 1, 1, 4]"});
  }
}

// Of recurrent layers: what they are called, at which position, and the states, cells and gates side by side.
struct RecurrentListener : nn::Observer {
  struct Told {
    std::string path;
    int64_t position;
    std::vector<Tensor> tensors;  // [B,T,...]
  };
  std::vector<Told> told;
  bool wants_recurrent() const override { return true; }
  void recurrent(const nn::RecurrentEvent& e) override {
    told.push_back({e.path, e.position, {e.h}});
    const int64_t B = e.h.shape(0), T = e.h.shape(1), H = e.h.shape(2);
    if (e.c) told.back().tensors.push_back(e.c);
    if (e.gates) told.back().tensors.push_back(e.gates.reshaped({B, T, e.gates.shape(2) * H}));
  }
};

// The names are those of parameters: the encoder's layers, then those of the decoder, the last of which has attention.
TEST_P(RnnSeq2SeqVariant, TellsOfEachRecurrentLayer) {
  const RnnSeq2SeqOptions& o = GetParam();
  std::vector<std::string> encoder, decoder;
  const auto add = [&](const std::string& path) {
    encoder.push_back(path + ".forward");
    if (o.bidirectional) encoder.push_back(path + ".backward");
  };
  const bool cells = o.self_attentive.base >= BaseLayer::rnn;
  for (int64_t i = 0; o.encoder == Encoder::recurrent && i < o.layers; ++i) add("encoder.layers." + std::to_string(i));
  for (int64_t i = 0; o.encoder == Encoder::self_attentive && cells && i < o.self_attentive.blocks; ++i) {
    add("encoder.blocks." + std::to_string(i) + ".recurrent.layers.0");
  }
  for (int64_t i = 0; i + 1 < o.layers; ++i) decoder.push_back("decoder.layers." + std::to_string(i) + ".forward");
  decoder.emplace_back("decoder_top");

  const Batch batch(o, 2, 5, 4, rng);
  RecurrentListener listener;
  pass.observer = &listener;
  nn::State state = model.begin(pass, batch.source);
  ASSERT_EQ(listener.told.size(), encoder.size());
  for (size_t i = 0; i < encoder.size(); ++i) {
    EXPECT_EQ(listener.told[i].path, encoder[i]);
    EXPECT_TRUE(store.find(encoder[i] + ".w_hh")) << encoder[i];
  }
  listener.told.clear();
  run(model, pass, batch);
  const std::vector<RecurrentListener::Told> whole(listener.told.begin() + std::ssize(encoder), listener.told.end());
  ASSERT_EQ(whole.size(), decoder.size());
  for (int64_t t = 0; t < 4; ++t) {
    listener.told.clear();
    model.step(pass, columns_of(batch.target.ids, t, t + 1), state);
    ASSERT_EQ(listener.told.size(), decoder.size());
    for (size_t i = 0; i < decoder.size(); ++i) {
      EXPECT_EQ(listener.told[i].path, decoder[i]);
      EXPECT_EQ(whole[i].path, decoder[i]);
      EXPECT_TRUE(store.find(decoder[i] + ".w_hh")) << decoder[i];
      EXPECT_EQ(listener.told[i].position, t);
      ASSERT_EQ(listener.told[i].tensors.size(), whole[i].tensors.size());
      for (size_t k = 0; k < whole[i].tensors.size(); ++k) {
        EXPECT_LE(deviation(row_of(listener.told[i].tensors[k], 0), row_of(whole[i].tensors[k], t)), 1e-5) << t;
      }
    }
  }
}

// One layer's head is switched off, all others are left alone.
struct Switch : nn::Observer {
  std::string off;
  std::vector<std::string> asked;
  void attention(const nn::AttentionEvent& e) override { asked.push_back(e.path); }
  Tensor head_gate(const std::string& path, int64_t heads) override {
    return path == off ? Tensor::zeros({heads}) : Tensor();
  }
};

TEST_P(RnnSeq2SeqVariant, EachAttentionCanBeSwitchedOff) {
  const Batch batch(GetParam(), 2, 5, 4, rng);
  Switch observer;
  pass.observer = &observer;
  const Tensor before = run(model, pass, batch).value();
  for (const std::string& path : std::vector(observer.asked)) {
    observer.off = path;
    EXPECT_FALSE(same_bits(run(model, pass, batch).value(), before)) << path;
  }
}

void RnnSeq2SeqVariant::expect_the_same_from_a_folder() {
  const auto made = make_model(GetParam(), seeded(5));
  const auto loaded = testing::saved_and_loaded(*made);
  EXPECT_EQ(loaded->task(), Task::translate);
  const Batch batch(GetParam(), 2, 4, 3, rng);
  EXPECT_TRUE(same_bits(loaded->logits(pass, batch.source, batch.target).value(),
                        made->logits(pass, batch.source, batch.target).value()));
}

INSTANTIATE_TEST_SUITE_P(All, RnnSeq2SeqVariant, ::testing::ValuesIn(testing::every_rnn_seq2seq()),
                         [](const auto& one) { return std::to_string(one.index) + "_" + name_of(one.param); });

class RnnSeq2SeqOfParts : public RnnSeq2SeqVariant {};

TEST_P(RnnSeq2SeqOfParts, HasExactGradients) { expect_exact_gradients(); }
TEST_P(RnnSeq2SeqOfParts, StepsGiveTheLogitsOfTheWhole) { expect_steps_like_the_whole(); }
TEST_P(RnnSeq2SeqOfParts, ComesBackFromItsFolder) { expect_the_same_from_a_folder(); }

INSTANTIATE_TEST_SUITE_P(All, RnnSeq2SeqOfParts, ::testing::ValuesIn(testing::every_rnn_of_parts()),
                         [](const auto& one) { return std::to_string(one.index) + "_" + name_of(one.param); });

TEST(RnnSeq2Seq, HasTheShapesOfItsParts) {
  RnnSeq2SeqOptions o{.vocabulary = 7, .source_vocabulary = 9, .cell = nn::Cell::lstm, .query = Query::previous};
  o.embedding_width = 5, o.source_embedding_width = 3, o.encoder_width = 6, o.decoder_width = 4;
  o.encoder_layers = 3, o.decoder_layers = 2, o.first_state = FirstState::top, o.bridge = Bridge::linear;
  RnnSeq2Seq model(o, nn::Init::none());
  const ParameterStore store(model, {.gradients = false});
  const auto shape = [&](const char* name) { return to_string(store.find(name)->value.shape()); };
  EXPECT_EQ(shape("embedding.weight"), "[7, 5]");
  EXPECT_EQ(shape("source_embedding.weight"), "[9, 3]");
  EXPECT_EQ(shape("encoder.layers.0.forward.w_ih"), "[12, 3]");
  EXPECT_EQ(shape("encoder.layers.2.backward.w_ih"), "[12, 6]");
  EXPECT_EQ(shape("first_h.1.weight"), "[4, 6]");
  EXPECT_EQ(shape("first_c.0.weight"), "[4, 6]");
  EXPECT_EQ(shape("decoder.layers.0.forward.w_ih"), "[16, 5]");
  EXPECT_EQ(shape("decoder_top.w_ih"), "[16, 10]");
  EXPECT_EQ(shape("cross.key.weight"), "[4, 6]");
  EXPECT_EQ(shape("readout.weight"), "[4, 10]");
  EXPECT_EQ(shape("output.weight"), "[7, 4]");
}

// The dot model has parameter-free attention: queries are the decoder's states, keys and values the
// encoder's, and the scale is 1.
TEST(RnnSeq2Seq, DotAttentionIsParameterFreeAttention) {
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng(seeded(3));
  constexpr int64_t W = 6;
  nn::SingleHeadAttention alignment(nn::Score::dot, "decoder.cross", W, W, rng);
  const nn::Attention free({.width = W, .score = nn::Score::dot, .projections = false}, "free", rng);
  const Var states = nn::normal({2, 5, W}, 1, rng), source = nn::normal({2, 7, W}, 1, rng);
  const std::vector<int64_t> lengths{7, 4};
  const nn::AttentionCall call{nn::AttentionRole::cross, kernels::Lengths{lengths}};
  EXPECT_TRUE(same_bits(alignment(pass, states, alignment.keys(pass, source), source, call).value(),
                        free(pass, states, source, call).value()));
  EXPECT_TRUE(ParameterStore(alignment).entries().empty());

  struct : nn::Observer {
    void attention(const nn::AttentionEvent& e) override {
      EXPECT_EQ(e.inputs.k.data(), e.inputs.v.data());
      EXPECT_EQ(e.options.scale, 1.0f);
    }
  } checks;
  pass.observer = &checks;
  RnnSeq2SeqOptions o{.vocabulary = testing::kVocabulary, .width = 4, .query = Query::current};
  o.score = nn::Score::dot;
  const RnnSeq2Seq model(o, rng);
  run(model, pass, Batch(o, 2, 5, 4, rng));
}

// Wide enough that there is work for several threads.
TEST(RnnSeq2Seq, HasTheSameBitsOnAnyNumberOfThreads) {
  std::vector<RnnSeq2SeqOptions> wide(4, {.vocabulary = 50, .width = 64, .layers = 2});
  wide[1].cell = nn::Cell::lstm;
  wide[2].encoder = Encoder::self_attentive, wide[2].self_attentive.base = BaseLayer::conv1d;
  wide[3].query = Query::current, wide[3].input_feeding = true, wide[3].feed = Feed::attentional;
  for (const RnnSeq2SeqOptions& o : wide) {
    SCOPED_TRACE(name_of(o));
    Rng rng(seeded(4));
    RnnSeq2Seq model(o, rng);
    const ParameterStore store(model);
    const Batch batch(o, 20, 12, 11, rng);
    std::vector<Tensor> results;
    for (const int threads : {1, 2, 3}) {
      Machine machine(threads);
      Tape tape;
      nn::Pass pass = machine.pass(&tape);
      store.clear_gradients();
      const Var logits = run(model, pass, batch);
      tape.backward(logits, pass, Tensor::full(logits.shape(), 0.5));
      results.insert(results.end(), {logits.value(), store.gradients().clone()});
    }
    for (size_t i = 2; i < results.size(); ++i) EXPECT_TRUE(same_bits(results[i], results[i % 2])) << i;
  }
}

// Composed again of its layers, with the same parameters.
TEST(RnnSeq2Seq, ASelfAttentiveEncoderIsTheBlocksAndAProjection) {
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng(seeded(5));
  RnnSeq2SeqOptions o{.vocabulary = 7, .encoder = Encoder::self_attentive, .width = 4};
  o.self_attentive = {.base = BaseLayer::linear, .blocks = 2, .score = nn::Score::bilinear};
  RnnSeq2Seq model(o, rng);
  const ParameterStore store(model);
  AttentiveBlocks blocks(o.self_attentive, {.path = "encoder", .width = 4}, rng);
  const auto value = [&](const std::string& name) { return store.find(name)->value; };
  visit_parameters(
      blocks, [&](const std::string& name, Parameter& p) { p.value = value(name); }, "encoder.");
  const Batch batch(o, 3, 5, 2, rng);
  const Var x = ops::embedding(pass, value("embedding.weight"), batch.source.ids, 2);
  const Var states = ops::linear(pass, blocks(pass, x, batch.source), value("encoder_out.weight"),
                                 value("encoder_out.bias"), nn::Activation::tanh);
  const RnnSeq2Seq::Encoded encoded = model.encode(pass, batch.source);
  EXPECT_TRUE(same_bits(encoded.states.value(), states.value()));
  // The decoder begins from the state of each row's last token.
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor rows = states.value().slice(b, 1).reshaped({5, 4});
    EXPECT_TRUE(same_bits(encoded.begin[0].h.value().slice(b, 1), rows.slice(batch.source_lengths[b] - 1, 1))) << b;
  }
}

// Luong's decoder, token by token: the readout after a token, before the output layer, is fed beside the next token.
TEST(RnnSeq2Seq, WhatIsReadOutIsWhatIsFed) {
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng(seeded(6));
  constexpr int64_t W = 4, T = 5;
  RnnSeq2SeqOptions o{.vocabulary = 7, .width = W, .query = Query::current, .score = nn::Score::dot};
  o.input_feeding = true, o.feed = Feed::attentional;
  RnnSeq2Seq model(o, rng);
  const ParameterStore store(model);
  testing::scatter(store, 6);
  const Batch batch(o, 2, 4, T, rng);
  const Tensor whole = run(model, pass, batch).value();

  const auto value = [&](const std::string& name) { return Var(store.find(name)->value); };
  const RnnSeq2Seq::Encoded encoded = model.encode(pass, batch.source);
  const nn::AttentionCall call{nn::AttentionRole::cross, lengths_mask(batch.source)};
  const nn::SingleHeadAttention cross(nn::Score::dot, "decoder.cross", W, W, rng);
  const auto read_out = [&](const Var& h) {
    const Var looking = ops::reshape(pass, h, {2, 1, W});
    const Var both[] = {h, ops::reshape(pass, cross(pass, looking, encoded.keys, encoded.states, call), {2, W})};
    return ops::linear(pass, ops::concat(pass, both), value("readout.weight"), value("readout.bias"),
                       nn::Activation::tanh);
  };
  Var h = encoded.begin[0].h, fed = read_out(h);
  for (int64_t t = 0; t < T; ++t) {
    const Var token = ops::embedding(pass, value("embedding.weight"), columns_of(batch.target.ids, t, t + 1), 2);
    const Var parts[] = {ops::reshape(pass, token, {2, W}), fed};
    ops::RecurrentArguments cell{.x = ops::reshape(pass, ops::concat(pass, parts), {2, 1, 2 * W})};
    cell.w_ih = value("decoder_top.w_ih"), cell.w_hh = value("decoder_top.w_hh");
    cell.b_ih = value("decoder_top.b_ih"), cell.b_hh = value("decoder_top.b_hh");
    cell.h0 = h, cell.options.cell = nn::Cell::gru;
    h = ops::recurrent(pass, cell).last_h, fed = read_out(h);
    const Var logits = ops::linear(pass, fed, value("output.weight"), value("output.bias"));
    EXPECT_LE(deviation(row_of(whole, t), logits.value().reshaped({2, 1, 7})), additions_of(o, 4, T) * testing::kUnit)
        << "token " << t;
  }
}

TEST(RnnSeq2Seq, AConfigHasTheOptionsOfItsEncoderAlone) {
  RnnSeq2SeqOptions o{.vocabulary = 7};
  const std::string recurrent = io::to_json(o);
  EXPECT_EQ(recurrent.find("self_attentive"), recurrent.npos);
  o.encoder = Encoder::self_attentive, o.self_attentive.base = BaseLayer::conv1d;
  RnnSeq2SeqOptions back;
  io::from_json(io::to_json(o), back, "config.json");
  EXPECT_EQ(back.self_attentive.base, BaseLayer::conv1d);
  // Folders of older versions do not have this option.
  back = {};
  io::from_json(R"({"vocabulary": 7, "cell": "lstm", "bidirectional": true})", back, "config.json");
  EXPECT_EQ(back.encoder, Encoder::recurrent);
  io::from_json(R"({"query": "current", "input_feeding": true})", back, "config.json");
  EXPECT_EQ(back.feed, Feed::context);
  const std::string error = error_of([&] { io::from_json(R"({"self_attentive": {"taps": 5}})", back, "config.json"); });
  EXPECT_TRUE(error.starts_with("config.json: unknown key 'self_attentive'")) << error;
}

TEST(RnnSeq2Seq, SaysWhatDoesNotFit) {
  const auto made = [](const auto& change) {
    RnnSeq2SeqOptions o{.vocabulary = 5, .width = 4};
    change(o);
    Rng rng(seeded(1));
    return error_of([&] { RnnSeq2Seq(o, rng); });
  };
  EXPECT_EQ(made([](auto&) {}), "no error");
  EXPECT_EQ(made([](auto& o) { o.vocabulary = 0; }), "rnn_seq2seq: vocabulary is 0, expected 1 or more");
  EXPECT_EQ(made([](auto& o) { o.width = 5; }), "recurrent: width is 5, expected an even one for two directions");
  EXPECT_EQ(made([](auto& o) { o.query = Query::none; }),
            "rnn_seq2seq: readout is both, expected state where query is none");
  EXPECT_EQ(made([](auto& o) { o.input_feeding = true; }),
            "rnn_seq2seq: input_feeding is on, expected it off where query is not current");
  EXPECT_EQ(made([](auto& o) { o.feed = Feed::attentional; }),
            "rnn_seq2seq: feed is attentional, expected input_feeding to be on");
  EXPECT_EQ(made([](auto& o) {
              o.query = Query::current, o.input_feeding = true, o.feed = Feed::attentional;
              o.readout = Readout::context;
            }),
            "rnn_seq2seq: feed is attentional, expected context where readout is not both: nothing is read out of both "
            "to be fed");
  EXPECT_EQ(
      made([](auto& o) { o.source_embedding_width = 3; }),
      "rnn_seq2seq: source_embedding_width is 3, expected 4 as embedding_width is: source and target share a table "
      "where source_vocabulary is 0");
  EXPECT_EQ(made([](auto& o) { o.decoder_width = 6; }),
            "rnn_seq2seq: encoder_width is 4, expected 6 as decoder_width is: without a bridge the decoder begins from "
            "its states");
  EXPECT_EQ(
      made([](auto& o) { o.decoder_layers = 2; }),
      "rnn_seq2seq: encoder_layers is 1, expected 2 as decoder_layers is: with first_state last each layer begins "
      "from its own; top is the encoder's last layer for all");
  EXPECT_EQ(made([](auto& o) { o.tied = true, o.embedding_width = o.source_embedding_width = 6; }),
            "rnn_seq2seq: decoder_width is 4, expected 6 as embedding_width is: the output is tied to the embeddings");
  EXPECT_EQ(made([](auto& o) { o.first_state = FirstState::learned, o.bridge = Bridge::tanh; }),
            "rnn_seq2seq: bridge is on, expected none where first_state is learned, which has projections of its own");
  EXPECT_EQ(made([](auto& o) { o.encoder = Encoder::self_attentive, o.encoder_layers = 2; }),
            "rnn_seq2seq: encoder_layers is 2, expected 0 for a self_attentive encoder, which has blocks");
  EXPECT_EQ(made([](auto& o) { o.decoder_width = 6, o.bridge = Bridge::tanh, o.score = nn::Score::dot; }),
            "attention 'decoder.cross': source_width is 4, expected 6 for a dot product with the queries");
  EXPECT_EQ(made([](auto& o) { o.encoder = Encoder::self_attentive, o.self_attentive.blocks = 0; }),
            "rnn_seq2seq: self_attentive.blocks is 0, expected an integer in [1, 1000]");
  EXPECT_EQ(made([](auto& o) {
              o.encoder = Encoder::self_attentive, o.self_attentive = {.base = BaseLayer::conv1d, .taps = 4};
            }),
            "conv1d: taps is 4, expected an odd number");
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng(seeded(1));
  const RnnSeq2Seq model({.vocabulary = 5, .width = 4, .max_length = 3}, rng);
  EXPECT_EQ(error_of([&] {
              model.encode(pass, {Tensor::zeros({2, 3})});
            }),
            "rnn_seq2seq: source has shape [2, 3] in f32, expected token ids [B, tokens] in i32");
  EXPECT_EQ(error_of([&] {
              model.encode(pass, {Tensor::zeros({2, 4}, DType::i32)});
            }),
            "rnn_seq2seq: a row of 4 tokens came, expected at most 3 (max_length)");
  nn::State empty;
  EXPECT_EQ(error_of([&] {
              model.step(pass, Tensor::zeros({2, 1}, DType::i32), empty);
            }),
            "rnn_seq2seq: the state has 0 tensors, expected 1, as begin gives them");
}

}  // namespace
}  // namespace heed::models
