// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the tests of recurrent models: a small model of every variant, and how to run a batch through one.
#include <string>
#include <vector>

#include "heed/models/rnn_seq2seq.h"
#include "heed/models/self_attentive.h"
#include "heed/models/testing.h"

namespace heed::models::testing {

// Every query and score, fed and not, and every base layer and score of a self-attentive encoder; the other options
// take turns.
inline std::vector<RnnSeq2SeqOptions> every_rnn_seq2seq() {
  std::vector<RnnSeq2SeqOptions> all;
  int turn = 0;
  const auto add = [&](Query query, nn::Score score, bool feeding) -> RnnSeq2SeqOptions& {
    RnnSeq2SeqOptions o{.vocabulary = kVocabulary, .width = 4, .query = query, .score = score};
    o.input_feeding = feeding;
    o.cell = static_cast<nn::Cell>(turn % 3);
    o.first_state = static_cast<FirstState>(turn / 4 % 3);
    o.bidirectional = turn % 2 == 0;
    o.layers = turn % 4 == 1 ? 2 : 1;
    o.tied = turn % 3 == 0;
    if (turn % 5 < 2) o.source_vocabulary = kSourceVocabulary;
    o.readout = query == Query::none ? Readout::state : static_cast<Readout>(turn % 3);
    if (query == Query::current && !feeding && o.readout == Readout::state) o.readout = Readout::both;
    o.dropout = 0.2f, o.max_length = 64;
    ++turn;
    all.push_back(o);
    return all.back();
  };
  for (int cell = 0; cell < 3; ++cell) add(Query::none, nn::Score::dot, false);
  for (const auto& score : enum_names(nn::Score{})) {
    for (int again = 0; again < 2; ++again) add(Query::previous, score.value, false);
    add(Query::current, score.value, false);
    add(Query::current, score.value, true);
    RnnSeq2SeqOptions& luong = add(Query::current, score.value, true);
    luong.readout = Readout::both, luong.feed = Feed::attentional;
  }
  for (const auto& base : enum_names(BaseLayer{})) {
    for (const auto& score : enum_names(nn::Score{})) {
      constexpr Query kQueries[] = {Query::previous, Query::current, Query::none, Query::current, Query::current};
      const Query query = kQueries[turn % 5];
      const bool feeding = query == Query::current && turn % 4 > 0;
      RnnSeq2SeqOptions& o = add(query, static_cast<nn::Score>(turn / 3 % 4), feeding);
      o.encoder = Encoder::self_attentive;
      o.self_attentive = {.base = base.value, .blocks = 2 - turn / 2 % 2, .score = score.value};
      if (feeding && turn % 4 > 1) o.readout = Readout::both, o.feed = Feed::attentional;
    }
  }
  all.push_back(all.back());  // the same without attention
  all.back().self_attentive.attention = false;
  return all;
}

// Parts of different widths and depths, with the bridges that they need.
inline std::vector<RnnSeq2SeqOptions> every_rnn_of_parts() {
  std::vector<RnnSeq2SeqOptions> all;
  int turn = 0;
  for (const auto& cell : enum_names(nn::Cell{})) {
    for (const auto& first : enum_names(FirstState{})) {
      for (const Encoder encoder : {Encoder::recurrent, Encoder::self_attentive}) {
        ++turn;
        RnnSeq2SeqOptions o{.vocabulary = kVocabulary, .source_vocabulary = kSourceVocabulary, .encoder = encoder};
        o.cell = cell.value, o.first_state = first.value;
        o.embedding_width = 5, o.source_embedding_width = 3, o.encoder_width = 6, o.decoder_width = 4;
        o.decoder_layers = 1 + turn / 2 % 2;
        if (encoder == Encoder::recurrent) o.encoder_layers = 1 + turn / 3 % 2;
        if (first.value == FirstState::last) o.encoder_layers = encoder == Encoder::recurrent ? o.decoder_layers : 0;
        if (first.value != FirstState::learned) o.bridge = turn / 2 % 2 ? Bridge::tanh : Bridge::linear;
        o.query = static_cast<Query>(turn % 3);
        o.score = turn % 2 ? nn::Score::additive : nn::Score::bilinear;
        o.readout = o.query == Query::none ? Readout::state : turn % 4 == 1 ? Readout::context : Readout::both;
        o.input_feeding = o.query == Query::current && turn / 2 % 2;
        if (o.input_feeding && o.readout == Readout::both && turn / 4 % 2) o.feed = Feed::attentional;
        o.embedding_scale = 0.5;
        o.dropout = 0.2f, o.max_length = 64;
        if (turn % 5 == 0 && o.readout != Readout::context) o.tied = true, o.embedding_width = o.decoder_width;
        all.push_back(o);
      }
    }
  }
  return all;
}

// Every base layer with every score, heads and directions in turn; and one without attention.
inline std::vector<SelfAttentiveOptions> every_self_attentive() {
  std::vector<SelfAttentiveOptions> all;
  int turn = 0;
  for (const auto& base : enum_names(BaseLayer{})) {
    for (const auto& score : enum_names(nn::Score{})) {
      SelfAttentiveOptions o{.vocabulary = kVocabulary, .outputs = 3, .width = 4};
      o.layers = {.base = base.value, .blocks = 1 + turn / 3 % 2, .attention = turn % 11 != 10, .score = score.value};
      o.head = static_cast<SelfAttentiveHead>(turn % 2);
      o.bidirectional = turn / 2 % 2;
      o.dropout = 0.2f, o.max_length = 20;
      ++turn;
      all.push_back(o);
    }
  }
  return all;
}

inline std::string name_of(const AttentiveBlocksOptions& o) {
  return label(o.base) + "_" + (o.attention ? label(o.score) : "alone") + "_" + std::to_string(o.blocks);
}

inline std::string name_of(const RnnSeq2SeqOptions& o) {
  return label(o.cell) + "_query_" + label(o.query) + (o.query == Query::none ? "" : "_" + label(o.score)) +
         (o.encoder == Encoder::recurrent ? "" : "_encoder_" + name_of(o.self_attentive)) +
         (o.input_feeding ? "_fed_" + label(o.feed) : "") + "_readout_" + label(o.readout) + "_first_" +
         label(o.first_state) + (o.bidirectional ? "_both_ways" : "") + (o.layers > 1 ? "_layers" : "") +
         (o.bridge == Bridge::none ? "" : "_bridge_" + label(o.bridge)) + (o.tied ? "_tied" : "") +
         (o.source_vocabulary ? "_sources" : "");
}

inline std::string name_of(const SelfAttentiveOptions& o) {
  return label(o.layers.base) + "_" + (o.layers.attention ? label(o.layers.score) : "alone") + "_" + label(o.head) +
         "_" + std::to_string(o.layers.blocks) + (o.bidirectional ? "_both_ways" : "");
}

inline Var run(const RnnSeq2Seq& model, nn::Pass& pass, const Batch& batch) {
  return model.decode(pass, batch.target, model.encode(pass, batch.source), batch.source);
}

// The input of a tagger or a classifier; the target is the tag of each token, or the class of the whole.
struct Source : Batch {
  Source(const SelfAttentiveOptions& o, int64_t B, int64_t S, Rng& rng)
      : Batch(Sizes{o.outputs, o.vocabulary}, B, S, o.head == SelfAttentiveHead::tags ? S : 1, rng) {}
  struct Sizes {
    int64_t vocabulary, source_vocabulary;
  };
};

inline Var run(const SelfAttentive& model, nn::Pass& pass, const Batch& batch) {
  return model.logits(pass, batch.source);
}

}  // namespace heed::models::testing
