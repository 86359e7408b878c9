// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/base/testing.h"
#include "heed/data/batch.h"
#include "heed/data/testing.h"
#include "heed/decode/generate.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/trace/testing.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::families, testing::Family, testing::text_model;
using Kind = models::TransformerKind;

const std::string kSentence = "a Gato c, e";  // with words that the tokenizer does not know

RecordOptions beam(int64_t size) { return {.search = {.beam = size, .nbest = size, .max_length = 7}}; }

// Of a head, [T,S].
float weight_at(const Trace& trace, const Attention& one, size_t head, int64_t t, int64_t s) {
  const int64_t T = one.q.size(), S = one.k.size();
  return trace.values(one.weights)[static_cast<size_t>((static_cast<int64_t>(head) * T + t) * S + s)];
}

// The model is made to say the tokens of a sequence again, all in one pass, and what it does is recorded.
Trace said_again(const decode::Engine& engine, const Trace& trace, const std::string& seq) {
  const data::TextModel& model = engine.text_model();
  data::TokenPair pair;
  const bool translates = model.task() == models::Task::translate;
  if (translates) {
    for (const Token& token : trace.sequence("source").tokens) pair.source.push_back(static_cast<int32_t>(token.id));
    pair.source.pop_back();  // the end
  }
  for (const Token& token : trace.sequence(seq).tokens) pair.target.push_back(static_cast<int32_t>(token.id));
  pair.target.erase(pair.target.begin());
  const data::Batch batch = data::pair_batch(std::span(&pair, 1), std::vector<size_t>{0}, model.special());
  Recorder recorder(engine.parallel());
  Workspace workspace;
  nn::Pass pass{{engine.parallel(), workspace}};
  pass.observer = &recorder;
  model.model().logits(pass, data::source_tokens(batch), data::target_tokens(batch, model.task()));
  Trace again;
  again.sequences = trace.sequences;
  if (translates) recorder.add_source(again);
  const std::vector<int64_t> nodes = {0};
  recorder.add_target(again, nodes, {.target = seq});
  return again;
}

const Attention* entry(const Trace& trace, const std::string& path, const std::string& seq) {
  for (const Attention& one : trace.attn) {
    if (one.path == path && one.q.seq == seq) return &one;
  }
  return nullptr;
}

// Every number [H,T,...] of one entry is that of another with more queries or keys.
void expect_same(const Trace& a, const Ref& x, const Trace& b, const Ref& y, double tolerance,
                 const std::string& what) {
  ASSERT_TRUE(x && y) << what;
  const Array &mine = a.tensor(x), &other = b.tensor(y);
  ASSERT_EQ(mine.shape.size(), other.shape.size()) << what;
  const std::vector<float> p = mine.values(), q = other.values();
  std::vector<int64_t> at(mine.shape.size(), 0);
  for (const float number : p) {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      ASSERT_LE(mine.shape[d], other.shape[d]) << what;
      place = place * other.shape[d] + at[d];
    }
    ASSERT_NEAR(number, q[static_cast<size_t>(place)], tolerance) << what;
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < mine.shape[d]) break;
      at[d] = 0;
    }
  }
}

// What any trace of whole rows has to satisfy, recomputed in double from the numbers that it shows.
void expect_consistent(const Trace& trace) {
  for (const Attention& one : trace.attn) {
    SCOPED_TRACE(one.id);
    const int64_t T = one.q.size(), S = one.k.size(), H = std::ssize(one.heads);
    const Array &K = trace.tensor(one.K), &V = trace.tensor(one.V);
    const int64_t D = K.shape[2], Dv = V.shape[2];
    const std::vector<float> weights = trace.values(one.weights), q = trace.values(one.Q), k = K.values(),
                             v = V.values(), o = trace.values(one.O), lse = trace.values(one.lse),
                             entropy = trace.values(one.stats.entropy);
    const std::vector<float> w = one.additive ? trace.values(one.additive->w) : std::vector<float>();
    EXPECT_LT(one.stats.row_sum_error, 1e-5);
    for (int64_t h = 0; h < H; ++h) {
      const int64_t kv = one.key_heads[static_cast<size_t>(h)];
      for (int64_t t = 0; t < T; ++t) {
        double sum = 0, information = 0;
        std::vector<double> mixed(static_cast<size_t>(Dv));
        for (int64_t s = 0; s < S; ++s) {
          const double weight = weights[static_cast<size_t>((h * T + t) * S + s)];
          sum += weight;
          const int64_t query = one.q.begin + t, key = one.k.begin + s;
          if (!one.mask.sees(query, key)) {
            ASSERT_EQ(weight, 0) << "masked";
            continue;
          }
          double score = 0;
          for (int64_t d = 0; d < D; ++d) {
            const double x = q[static_cast<size_t>((h * T + t) * D + d)],
                         y = k[static_cast<size_t>((kv * S + s) * D + d)];
            score += w.empty() ? x * y : w[static_cast<size_t>(h * D + d)] * std::tanh(x + y);
          }
          score *= one.score.scale;
          if (!one.score.slopes.empty()) {
            score -= one.score.slopes[static_cast<size_t>(h)] * static_cast<double>(std::abs(query - key));
          }
          ASSERT_NEAR(std::exp(score - double{lse[static_cast<size_t>(h * T + t)]}), weight, trace.capture.tolerance);
          if (weight > 0) information -= weight * std::log(weight);
          for (size_t d = 0; d < mixed.size(); ++d) {
            mixed[d] += weight * double{v[static_cast<size_t>((kv * S + s) * Dv) + d]};
          }
        }
        EXPECT_NEAR(sum, 1, 1e-5) << "a row sums to one";
        EXPECT_NEAR(entropy[static_cast<size_t>(h * T + t)], information, 1e-5);
        for (size_t d = 0; d < mixed.size(); ++d) {
          EXPECT_NEAR(o[static_cast<size_t>((h * T + t) * Dv) + d], mixed[d], 1e-5);
        }
      }
    }
  }
}

TEST(Record, EveryFamilyHasATraceThatFitsTogether) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const decode::Engine engine(text_model(family.options, seeded(1)));
    const Trace trace = record(engine, kSentence, beam(2));
    const std::string text = to_json(trace);
    EXPECT_EQ(to_json(from_json(text, "t")), text) << "writer, reader, writer";
    expect_consistent(trace);
    EXPECT_EQ(trace.model.kind, family.options.family_name());
    EXPECT_EQ(trace.attn.empty(), family.name == "rnn");
    const bool recurs =
        family.name.find("rnn") != std::string::npos || family.name == "tagger-gru" || family.name == "tagger-lstm";
    EXPECT_EQ(trace.states.empty(), !recurs);
    EXPECT_TRUE(trace.capture.full);
  }
}

// The heart of it: what was recorded while a beam grew and died is what one pass over the same tokens does.
TEST(Record, RowsOfABeamAreThoseOfOnePassOverTheSameTokens) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const decode::Engine engine(text_model(family.options, seeded(2)));
    if (engine.text_model().task() == models::Task::tag) continue;
    const Trace trace = record(engine, kSentence, beam(3));
    ASSERT_EQ(trace.output.others.size(), 2u);
    for (const std::string seq : {"target", "target.1", "target.2"}) {
      SCOPED_TRACE(seq);
      const Trace again = said_again(engine, trace, seq);
      size_t compared = 0;
      for (const Attention& one : trace.attn) {
        if (one.q.seq != seq && one.q.seq != "source") continue;
        const Attention* other = entry(again, one.path, one.q.seq);
        ASSERT_TRUE(other) << one.path;
        expect_same(trace, one.weights, again, other->weights, 1e-5, one.id + " weights");
        expect_same(trace, one.lse, again, other->lse, 1e-4, one.id + " lse");
        expect_same(trace, one.Q, again, other->Q, 1e-4, one.id + " Q");
        expect_same(trace, one.K, again, other->K, 1e-4, one.id + " K");
        expect_same(trace, one.O, again, other->O, 1e-4, one.id + " O");
        EXPECT_EQ(one.mask.type, other->mask.type);
        EXPECT_EQ(one.mask.offset, other->mask.offset);
        ++compared;
      }
      EXPECT_EQ(compared > 0, family.name != "rnn");
      for (const States& one : trace.states) {
        if (one.tokens.seq != seq) continue;
        const auto other = std::find_if(again.states.begin(), again.states.end(),
                                        [&](const States& each) { return each.path == one.path; });
        ASSERT_NE(other, again.states.end()) << one.path;
        expect_same(trace, one.h, again, other->h, 1e-5, one.path + " h");
        if (one.c) expect_same(trace, one.c, again, other->c, 1e-5, one.path + " c");
        expect_same(trace, one.gates, again, other->gates, 1e-5, one.path + " gates");
      }
    }
  }
}

TEST(Record, AModelInDoubleGivesTheSame) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const data::TextModel model = text_model(family.options, seeded(12));
    const std::shared_ptr<const models::Model> twin = data::testing::in_double(model.model());
    const Trace f32 = record(decode::Engine(model), kSentence, beam(1));
    const Trace f64 = record(decode::Engine(data::TextModel(twin, model.tokenizers(), "m")), kSentence, beam(1));
    EXPECT_EQ(f64.capture.precision, "f64");
    EXPECT_EQ(f32.capture.precision, "f32");
    expect_consistent(f64);
    if (f64.output.text != f32.output.text) continue;  // two were equally likely
    ASSERT_EQ(f64.attn.size(), f32.attn.size());
    for (size_t i = 0; i < f32.attn.size(); ++i) {
      expect_same(f32, f32.attn[i].weights, f64, f64.attn[i].weights, 1e-4, f32.attn[i].id);
    }
    EXPECT_NEAR(f32.output.logprob, f64.output.logprob, 1e-3);
  }
}

TEST(Record, SaysWhatTheTranslatorSays) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(3)));
  for (const int64_t size : {1, 3}) {
    RecordOptions options = beam(size);
    const Trace trace = record_translation(engine, kSentence, options);
    const decode::Translator translator(engine);
    const auto expected = translator.translate(std::span(&kSentence, 1), {.search = options.search}).front();
    EXPECT_EQ(trace.output.text, expected[0].text);
    EXPECT_EQ(trace.output.others.size(), static_cast<size_t>(size - 1));
    EXPECT_NEAR(trace.output.logprob, expected[0].log_probability, 1e-4);
    for (size_t i = 0; i < trace.output.others.size(); ++i) {
      EXPECT_EQ(trace.output.others[i].text, expected[i + 1].text);
      EXPECT_NEAR(trace.output.others[i].score, expected[i + 1].score, 1e-4);
    }
  }
}

TEST(Record, WritesWhatTheGeneratorWritesDrawnTextToo) {
  const decode::Engine engine(text_model(testing::transformer(Kind::decoder), seeded(13)));
  const decode::Generator generator(engine);
  for (const char* prompt : {"", "a b"}) {
    for (const bool sample : {false, true}) {
      RecordOptions options{.search = {.beam = 2, .nbest = 2, .max_length = 6, .sample = sample, .temperature = 2}};
      const Trace trace = record_generation(engine, prompt, options);
      const std::vector<std::string> prompts = {prompt};
      const decode::Generations expected = generator.generate(prompts, {.search = options.search}).front();
      EXPECT_EQ(trace.output.text, expected[0].text);
      EXPECT_EQ(trace.output.others[0].text, expected[1].text);
      EXPECT_NEAR(trace.output.logprob, expected[0].log_probability, 1e-4);
      expect_consistent(trace);
    }
  }
}

double sum_of_steps(const Result& result) {
  double sum = 0;
  for (const Step& step : result.steps) sum += step.logprob;
  return sum;
}

TEST(Record, StepsAreTheChoicesAndAddUp) {
  for (const bool penalised : {false, true}) {
    const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(4)));
    RecordOptions options = beam(3);
    options.constraints.prefix = {5, 6};
    if (penalised) options.search.repetition_penalty = 1.7;
    const Trace trace = record_translation(engine, kSentence, options);
    std::vector<Result> all = trace.output.others;
    all.push_back(trace.output);
    for (const Result& result : all) {
      const Sequence& target = trace.sequence(result.seq);
      EXPECT_NEAR(sum_of_steps(result), result.logprob, 1e-5 * static_cast<double>(result.steps.size()));
      ASSERT_EQ(result.steps.size(), target.tokens.size() - (result.finished ? 0 : 1));
      for (size_t i = 0; i < result.steps.size(); ++i) {
        const Step& step = result.steps[i];
        EXPECT_EQ(step.row, static_cast<int64_t>(i));
        EXPECT_EQ(step.forced, i < 2) << "the prefix";
        if (i + 1 < target.tokens.size()) {
          EXPECT_EQ(step.id, target.tokens[i + 1].id);
          EXPECT_NEAR(target.tokens[i + 1].prob.value(), std::exp(step.logprob), 1e-12);
        } else {
          EXPECT_EQ(step.piece, "</s>");
        }
        ASSERT_EQ(step.alternatives.size(), 5u);
        for (size_t n = 1; n < 5; ++n) EXPECT_GE(step.alternatives[n - 1].logprob, step.alternatives[n].logprob);
        EXPECT_GE(step.alternatives[0].logprob, step.logprob);
      }
    }
  }
}

TEST(Record, TagsAreThoseOfTheTagger) {
  const decode::Engine engine(text_model(testing::attentive(models::BaseLayer::lstm), seeded(5)));
  const Trace trace = record_tags(engine, kSentence);
  const decode::Tagging tagging = decode::Tagger(engine).tag(kSentence);
  ASSERT_EQ(trace.output.steps.size(), tagging.size());
  for (size_t i = 0; i < tagging.size(); ++i) {
    EXPECT_EQ(trace.output.steps[i].id, tagging[i].tag_id);
    EXPECT_NEAR(trace.output.steps[i].logprob, tagging[i].log_probability, 1e-5);
    EXPECT_EQ(trace.sequence("source").tokens[i].text, tagging[i].token) << "as it was written";
  }
  ASSERT_EQ(trace.attn.size(), 1u);
  EXPECT_EQ(trace.attn[0].path, "blocks.0.self");
  // [h ; c]: the values are the states, in both directions side by side.
  ASSERT_EQ(trace.states.size(), 2u);
  EXPECT_EQ(trace.states[0].names, (std::vector<std::string>{"input", "forget", "candidate", "output"}));
  const std::vector<float> v = trace.values(trace.attn[0].V), forward = trace.values(trace.states[0].h),
                           backward = trace.values(trace.states[1].h);
  for (size_t t = 0; t < 6; ++t) {
    for (size_t d = 0; d < 4; ++d) {
      EXPECT_EQ(v[t * 8 + d], forward[t * 4 + d]);
      EXPECT_EQ(v[t * 8 + 4 + d], backward[t * 4 + d]);
    }
  }
}

TEST(Record, ATextThatIsReadHasTheProbabilitiesOfItsTokens) {
  const decode::Engine engine(text_model(testing::transformer(Kind::decoder), seeded(6)));
  const Trace trace = record_text(engine, "a b c d");
  ASSERT_EQ(trace.output.steps.size(), 4u);
  EXPECT_NEAR(sum_of_steps(trace.output), trace.output.logprob, 1e-6);
  EXPECT_EQ(trace.sequence("target").tokens.size(), 5u);
  expect_consistent(trace);
  // The same rows as those of a prompt that is gone on with.
  const Trace longer = record_generation(engine, "a b c d", beam(1));
  for (const Attention& one : trace.attn) {
    expect_same(trace, one.weights, longer, entry(longer, one.path, "target")->weights, 1e-5, one.id);
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(longer.output.steps[i].logprob, trace.output.steps[i].logprob, 1e-4);
}

TEST(Record, TokensHaveTheirPlacesAndWords) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(7)));
  const Trace trace = record_translation(engine, kSentence, beam(1));
  const Sequence& source = trace.sequence("source");
  ASSERT_EQ(source.tokens.size(), 6u);
  std::vector<std::string> texts;
  std::vector<int64_t> words;
  for (const Token& token : source.tokens) {
    if (token.special) continue;
    texts.push_back(
        source.text.substr(static_cast<size_t>(*token.start), static_cast<size_t>(*token.end - *token.start)));
    words.push_back(token.word.value());
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "Gato", "c", ",", "e"}));
  EXPECT_EQ(words, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(source.tokens.back().piece, "</s>");
  EXPECT_TRUE(source.tokens.back().special);
  EXPECT_FALSE(source.tokens.back().start.has_value());
  EXPECT_EQ(trace.sequence("target").tokens[0].piece, "<s>");
}

TEST(Record, OnlyWhatWasChosen) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(8)));
  RecordOptions options = beam(1);
  options.search.min_length = 4;
  const Trace all = record_translation(engine, kSentence, options);
  options.recorder = {
      .layers = {"decoder.1.cross", "decoder.0.self"}, .heads = {1}, .target = {1, 3}, .vectors = false};
  const Trace some = record_translation(engine, kSentence, options);
  ASSERT_EQ(some.attn.size(), 2u);
  for (const Attention& one : some.attn) {
    EXPECT_EQ(one.heads, (std::vector<int64_t>{1}));
    EXPECT_EQ(one.q.begin, 1);
    EXPECT_EQ(one.q.end, 3);
    EXPECT_FALSE(one.Q || one.K || one.V || one.O);
    const Attention& whole = *entry(all, one.path, "target");
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t s = 0; s < one.k.size(); ++s) {
        EXPECT_EQ(weight_at(some, one, 0, t, s), weight_at(all, whole, 1, t + 1, s));
      }
    }
  }
  options.recorder.layers = {"decoder.7.cross"};
  EXPECT_EQ(error_of([&] { record_translation(engine, kSentence, options); }),
            "trace: there is no layer 'decoder.7.cross', expected one of: encoder.0.self, encoder.1.self, "
            "decoder.0.self, decoder.0.cross, decoder.1.self, decoder.1.cross");
  options.recorder.layers = {}, options.recorder.heads = {2};
  EXPECT_EQ(error_of([&] { record_translation(engine, kSentence, options); }),
            "trace: layer 'encoder.0.self' has no head 2, expected 0 to 1");
}

class FirstHeadOff final : public nn::Observer {
  Tensor head_gate(const std::string& path, int64_t heads) override {
    Tensor gate = Tensor::full({heads}, 1);
    if (path == "encoder.0.self") gate.data<float>()[0] = 0;
    return gate;
  }
};

TEST(Record, AHeadThatIsOffIsOff) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(9)));
  FirstHeadOff off;
  RecordOptions options = beam(1);
  options.recorder.gates = &off;
  const Trace with = record_translation(engine, kSentence, beam(1)),
              without = record_translation(engine, kSentence, options);
  EXPECT_NE(with.output.steps[0].logprob, without.output.steps[0].logprob);
}

TEST(Record, SaysWhatItCannotRecord) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder_decoder), seeded(10)));
  EXPECT_EQ(error_of([&] { record_translation(engine, ""); }), "trace: the text has no token, expected at least 1");
  EXPECT_EQ(error_of([&] { record_tags(engine, "a"); }), "m: is a model that translates, expected a tagger");
  EXPECT_EQ(error_of([&] { record_translation(engine, "\xff"); }), "text: byte 1 is 0xff, which is no UTF-8");
  EXPECT_EQ(error_of([&] { record_translation(engine, "a", {.recorder = {.map = 0}}); }),
            "trace: map is 0, expected an integer in [1, 1024]");
}

// A recorder in a pass of one's own, for one sentence of a padded batch.
TEST(Recorder, PaddingIsMaskedAndHasNoWeight) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder), seeded(11)));
  const std::vector<std::vector<int32_t>> sources = {{4, 5, 6, 7, 8}, {8, 4}};
  const data::Batch batch = data::source_batch(sources);
  Recorder recorder(engine.parallel(), {}, /*sentence=*/1);
  Workspace workspace;
  nn::Pass pass{{engine.parallel(), workspace}};
  pass.observer = &recorder;
  engine.model().logits(pass, data::source_tokens(batch), {});
  Trace trace;
  trace.sequences = {{.id = "source"}};
  trace.sequences[0].tokens.resize(6);
  recorder.add_source(trace);
  EXPECT_EQ(trace.attn[0].mask.keys, 3);
  for (int64_t t = 0; t < 3; ++t) {
    double sum = 0;
    for (int64_t s = 0; s < 6; ++s) sum += double{weight_at(trace, trace.attn[0], 0, t, s)};
    EXPECT_NEAR(sum, 1, 1e-5);
    for (int64_t s = 3; s < 6; ++s) EXPECT_EQ(weight_at(trace, trace.attn[0], 0, t, s), 0);
  }
  trace.output.seq = "source";
  expect_consistent(from_json(to_json(trace), "t"));
}

TEST(Recorder, IsForOneSentence) {
  const decode::Engine engine(text_model(testing::transformer(Kind::encoder), seeded(11)));
  const std::vector<std::vector<int32_t>> sources = {{4, 5}};
  const data::Batch batch = data::source_batch(sources);
  Recorder recorder(engine.parallel());
  Workspace workspace;
  nn::Pass pass{{engine.parallel(), workspace}};
  pass.observer = &recorder;
  engine.model().logits(pass, data::source_tokens(batch), {});
  EXPECT_EQ(error_of([&] { engine.model().logits(pass, data::source_tokens(batch), {}); }),
            "trace: layer 'encoder.0.self' ran twice for node 0, expected a recorder of its own for each sentence");
}

}  // namespace
}  // namespace heed::trace
