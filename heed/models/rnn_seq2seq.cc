// SPDX-License-Identifier: Apache-2.0
#include "heed/models/rnn_seq2seq.h"

#include "heed/base/error.h"
#include "heed/nn/pooling.h"

namespace heed::models {
namespace {

using nn::AttentionRole;
using nn::LayerStates;
using nn::Pass;
using nn::RecurrentStates;

constexpr const char* kName = "rnn_seq2seq";

[[noreturn]] void fail(const std::string& what) { throw Error(std::string(kName) + ": " + what); }

int64_t or_usual(int64_t given, int64_t usual) { return given > 0 ? given : usual; }

// For contexts that are fed to the cell, where the observer is shown those of the readout: passes head gates on, and no
// events.
class GatesAlone final : public nn::ObserverBeside {
 public:
  using ObserverBeside::ObserverBeside;
  void attention(const nn::AttentionEvent&) override {}
};

void check_choices(const RnnSeq2SeqOptions& o) {
  check_fields(kName, o);
  if (o.vocabulary < 1) fail("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.query == Query::none && o.readout != Readout::state) {
    fail("readout is " + std::string(o.readout == Readout::both ? "both" : "context") +
         ", expected state where query is none");
  }
  if (o.query == Query::current && o.readout == Readout::state && !o.input_feeding) {
    fail("readout is state, expected context or both: nothing else would see what query current finds");
  }
  if (o.input_feeding && o.query != Query::current) {
    fail("input_feeding is on, expected it off where query is not current");
  }
  if (o.feed == Feed::attentional && !o.input_feeding) {
    fail("feed is attentional, expected input_feeding to be on");
  }
  if (o.feed == Feed::attentional && o.readout != Readout::both) {
    fail("feed is attentional, expected context where readout is not both: nothing is read out of both to be fed");
  }
}

}  // namespace

RnnSeq2Seq::Sizes::Sizes(const RnnSeq2SeqOptions& o)
    : embedding(or_usual(o.embedding_width, o.width)),
      source_embedding(or_usual(o.source_embedding_width, o.width)),
      encoder(or_usual(o.encoder_width, o.width)),
      encoder_layers(or_usual(o.encoder_layers, o.layers)),
      decoder(or_usual(o.decoder_width, o.width)),
      decoder_layers(or_usual(o.decoder_layers, o.layers)) {}

void RnnSeq2Seq::check_sizes() const {
  const RnnSeq2SeqOptions& o = options_;
  const Sizes& n = sizes_;
  const auto expect_equal = [](const std::string& what, int64_t came, const std::string& other, int64_t expected,
                               const std::string& why) {
    if (came == expected) return;
    fail(what + " is " + std::to_string(came) + ", expected " + std::to_string(expected) + " as " + other +
         " is: " + why);
  };
  if (o.source_vocabulary == 0) {
    expect_equal("source_embedding_width", n.source_embedding, "embedding_width", n.embedding,
                 "source and target share a table where source_vocabulary is 0");
  }
  if (o.encoder == Encoder::self_attentive && o.encoder_layers > 0) {
    fail("encoder_layers is " + std::to_string(o.encoder_layers) +
         ", expected 0 for a self_attentive encoder, which has blocks");
  }
  if (o.first_state == FirstState::learned && o.bridge != Bridge::none) {
    fail("bridge is on, expected none where first_state is learned, which has projections of its own");
  }
  if (o.first_state == FirstState::last && o.encoder == Encoder::recurrent) {
    expect_equal("encoder_layers", n.encoder_layers, "decoder_layers", n.decoder_layers,
                 "with first_state last each layer begins from its own; top is the encoder's last layer for all");
  }
  if (o.first_state != FirstState::learned && o.bridge == Bridge::none) {
    expect_equal("encoder_width", n.encoder, "decoder_width", n.decoder,
                 "without a bridge the decoder begins from its states");
  }
  if (o.tied) {
    const bool of_context = o.readout == Readout::context;
    expect_equal(of_context ? "encoder_width" : "decoder_width", of_context ? n.encoder : n.decoder, "embedding_width",
                 n.embedding, "the output is tied to the embeddings");
  }
}

double RnnSeq2Seq::embedding_factor(int64_t width) const {
  return options_.embedding_scale != 0 ? options_.embedding_scale : std::sqrt(static_cast<double>(width));
}

RnnSeq2Seq::RnnSeq2Seq(const RnnSeq2SeqOptions& o, nn::Init init) : options_(o), sizes_(o) {
  check_choices(o);
  check_sizes();
  const Sizes& n = sizes_;
  const int64_t C = n.encoder, D = n.decoder;  // of contexts, and of the decoder's states
  nn::RecurrentOptions recurrent{.cell = o.cell, .width = C, .layers = n.encoder_layers, .dropout = o.dropout};
  recurrent.bidirectional = o.bidirectional;
  embedding_ = nn::Embedding(o.vocabulary, n.embedding, init);
  embedding_.factor = embedding_factor(n.embedding);
  embedding_.tied = o.tied;
  if (o.source_vocabulary > 0) {
    source_embedding_ = nn::Embedding(o.source_vocabulary, n.source_embedding, init);
    source_embedding_.factor = embedding_factor(n.source_embedding);
  }
  if (o.encoder == Encoder::recurrent) {
    encoder_ = nn::Recurrent(n.source_embedding, recurrent, "encoder", init);
  } else {
    const AttentiveBlocksSetting blocks{.path = "encoder",
                                        .parameters = "encoder.blocks",
                                        .width = C,
                                        .in = n.source_embedding,
                                        .bidirectional = o.bidirectional,
                                        .dropout = o.dropout};
    attentive_ = AttentiveBlocks(o.self_attentive, blocks, init);
    attentive_out_ = nn::Linear(attentive_.width, C, init);
  }
  make_first_states(init);
  if (n.decoder_layers > 1) {
    recurrent.width = D, recurrent.layers = n.decoder_layers - 1, recurrent.bidirectional = false;
    decoder_ = nn::Recurrent(n.embedding, recurrent, "decoder", init);
  }
  const int64_t fed = !feeds() ? 0 : o.feed == Feed::attentional ? D : C;
  top_ = nn::RecurrentDirection(o.cell, (n.decoder_layers > 1 ? D : n.embedding) + fed, D, init);
  top_.path = "decoder_top";
  if (o.query != Query::none) cross_ = nn::SingleHeadAttention(o.score, "decoder.cross", D, C, init);
  if (o.readout == Readout::both) readout_ = nn::Linear(D + C, D, init);
  if (!o.tied) output_ = nn::Linear(o.readout == Readout::context ? C : D, o.vocabulary, init);
}

void RnnSeq2Seq::make_first_states(nn::Init init) {
  const RnnSeq2SeqOptions& o = options_;
  const int64_t C = sizes_.encoder, D = sizes_.decoder;
  const bool learned = o.first_state == FirstState::learned;
  if (learned) {
    first_query_ = nn::Embedding(1, C, init);
    first_look_ = nn::Attention({.width = C, .score = nn::Score::scaled, .projections = false}, "decoder.first", init);
  }
  if (!learned && o.bridge == Bridge::none) return;
  // What an LSTM's c begins from: the mean of states has none.
  const bool with_c =
      o.cell == nn::Cell::lstm && o.first_state != FirstState::mean && (learned || o.encoder == Encoder::recurrent);
  for (int64_t i = 0; i < sizes_.decoder_layers; ++i) {
    first_h_.emplace_back(C, D, init);
    if (with_c) first_c_.emplace_back(C, D, init);
  }
}

void RnnSeq2Seq::check_length(int64_t tokens) const {
  if (tokens <= options_.max_length) return;
  fail("a row of " + std::to_string(tokens) + " tokens came, expected at most " + std::to_string(options_.max_length) +
       " (max_length)");
}

nn::RecurrentOutput RnnSeq2Seq::read(Pass& pass, const Var& x, const Tokens& source) const {
  if (options_.encoder == Encoder::recurrent) return encoder_(pass, x, {.lengths = source.lengths});
  nn::RecurrentOutput out{attentive_out_(pass, attentive_(pass, x, source), nn::Activation::tanh), {}};
  if (options_.first_state == FirstState::last || options_.first_state == FirstState::top) {
    out.last.push_back({nn::last_pool(pass, out.h, source.lengths), {}});
  }
  return out;
}

LayerStates RnnSeq2Seq::first_states(Pass& pass, const nn::RecurrentOutput& encoded, const Tokens& source) const {
  const int64_t B = encoded.h.shape(0);
  LayerStates seen;  // of the encoder: one per layer of the decoder, or one for all
  nn::Activation activation = options_.bridge == Bridge::linear ? nn::Activation::none : nn::Activation::tanh;
  if (options_.first_state == FirstState::last) {
    seen = encoded.last;
  } else if (options_.first_state == FirstState::top) {
    seen.push_back(encoded.last.back());
  } else if (options_.first_state == FirstState::mean) {
    seen.push_back({nn::mean_pool(pass, encoded.h, source.lengths), {}});
  } else {
    const Var query = first_query_(pass, Tensor::zeros({B, 1}, DType::i32));
    const Var found = first_look_(pass, query, encoded.h, {AttentionRole::cross, lengths_mask(source)});
    const Var rows = ops::reshape(pass, found, {B, sizes_.encoder});
    seen.push_back({rows, rows});
  }
  LayerStates states;
  for (size_t i = 0; i < static_cast<size_t>(sizes_.decoder_layers); ++i) {
    RecurrentStates state = seen[seen.size() == 1 ? 0 : i];
    if (!first_h_.empty()) state.h = first_h_[i](pass, state.h, activation);
    if (first_c_.empty() && !first_h_.empty()) state.c = {};
    if (!first_c_.empty()) state.c = first_c_[i](pass, state.c);
    states.push_back(state);
  }
  return states;
}

RnnSeq2Seq::Encoded RnnSeq2Seq::encode(Pass& pass, const Tokens& source) const {
  check_ids(kName, "source", source.ids);
  check_length(source.ids.shape(1));
  const nn::Embedding& table = source_embedding_.weight.value ? source_embedding_ : embedding_;
  const Var embedded = pass.embeddings(nn::TextSide::source, table(pass, source.ids));
  const Var x = ops::dropout(pass, embedded, pass.next_dropout(options_.dropout));
  const nn::RecurrentOutput encoded = read(pass, x, source);
  Encoded out{encoded.h, {}, first_states(pass, encoded, source)};
  if (options_.query != Query::none) out.keys = cross_.keys(pass, encoded.h);
  return out;
}

Var RnnSeq2Seq::run(Pass& pass, const Tensor& ids, const Encoded& source, const nn::AttentionCall& call,
                    LayerStates& states) const {
  const RnnSeq2SeqOptions& o = options_;
  const Var embedded = pass.embeddings(nn::TextSide::target, embedding_(pass, ids));
  Var x = ops::dropout(pass, embedded, pass.next_dropout(o.dropout));
  if (sizes_.decoder_layers > 1) {
    const nn::RecurrentOutput below =
        decoder_(pass, x, {.begin = std::span(states).first(states.size() - 1), .position = call.position});
    std::copy(below.last.begin(), below.last.end(), states.begin());
    x = ops::dropout(pass, below.h, pass.next_dropout(o.dropout));
  }
  ops::RecurrentArguments cell = top_.arguments(pass, x);
  cell.h0 = states.back().h, cell.c0 = states.back().c;
  cell.options.cell = o.cell;
  const bool looks_again = o.query == Query::current && o.readout != Readout::state;
  Var h, context;
  if (feeds()) {
    nn::Pass feeding = pass;
    GatesAlone gates(pass.observer);
    if (pass.observer && looks_again) feeding.observer = &gates;
    ops::AttentiveRecurrenceArguments a{.recurrence = cell, .keys = source.keys, .values = source.states};
    if (o.feed == Feed::attentional) a.w_feed = pass.use(readout_.weight), a.b_feed = pass.use(readout_.bias);
    const auto fed = cross_.recurrence(feeding, top_.path, a, call);
    h = fed.h, context = fed.fed, states.back() = {fed.last_h, fed.last_c};
  } else {
    const ops::RecurrentResult plain = top_.run(pass, cell, call.position);
    h = plain.h, states.back() = {plain.last_h, plain.last_c};
  }
  if (looks_again) context = cross_(pass, h, source.keys, source.states, call);
  const Var both[] = {h, context};
  const Var said = o.readout == Readout::state     ? h
                   : o.readout == Readout::context ? context
                                                   : readout_(pass, ops::concat(pass, both), nn::Activation::tanh);
  const Var y = ops::dropout(pass, said, pass.next_dropout(o.dropout));
  if (pass.output_subset) return (*pass.output_subset)(pass, y);
  return o.tied ? embedding_.output(pass, y) : output_(pass, y);
}

nn::Linear RnnSeq2Seq::output_subset(Pass& pass, std::span<const int32_t> tokens) const {
  return options_.tied ? embedding_.output_subset(tokens, {}, pass.parallel) : output_.subset(tokens, pass.parallel);
}

Var RnnSeq2Seq::decode(Pass& pass, const Tokens& target, const Encoded& encoded, const Tokens& source) const {
  check_ids(kName, "target", target.ids);
  check_length(target.ids.shape(1));
  LayerStates states = encoded.begin;
  return run(pass, target.ids, encoded, {AttentionRole::cross, lengths_mask(source)}, states);
}

nn::State RnnSeq2Seq::begin(Pass& pass, const Tokens& source) const {
  const Encoded encoded = encode(pass, source);
  nn::State state;
  const int64_t B = source.ids.shape(0), S = source.ids.shape(1);
  if (encoded.keys) state.cross.push_back(nn::KvCache::of(encoded.keys.value(), encoded.states.value()));
  state.source_lengths.assign(source.lengths.begin(), source.lengths.end());
  if (source.lengths.empty()) state.source_lengths.assign(static_cast<size_t>(B), S);
  for (const RecurrentStates& one : encoded.begin) {
    state.hidden.push_back(one.h.value());
    if (options_.cell != nn::Cell::lstm) continue;
    state.hidden.push_back(one.c ? one.c.value() : Tensor::zeros_like(one.h.value()));
  }
  return state;
}

Var RnnSeq2Seq::step(Pass& pass, const Tensor& ids, nn::State& state) const {
  check_ids(kName, "ids", ids);
  const size_t kinds = options_.cell == nn::Cell::lstm ? 2 : 1, layers = static_cast<size_t>(sizes_.decoder_layers);
  if (state.hidden.size() != kinds * layers || state.cross.empty() != (options_.query == Query::none)) {
    fail("the state has " + std::to_string(state.hidden.size()) + " tensors, expected " +
         std::to_string(kinds * layers) + ", as begin gives them");
  }
  check_length(state.length() + ids.shape(1));
  Encoded encoded;
  if (!state.cross.empty()) encoded = {state.cross[0].values(), state.cross[0].keys(), {}};
  LayerStates states;
  for (size_t i = 0; i < layers; ++i) {
    states.push_back({state.hidden[kinds * i], {}});
    if (kinds == 2) states.back().c = state.hidden[kinds * i + 1];
  }
  const nn::AttentionCall call{AttentionRole::cross, kernels::Lengths{state.source_lengths}, state.length()};
  Var logits = run(pass, ids, encoded, call, states);
  for (size_t i = 0; i < layers; ++i) {
    state.hidden[kinds * i] = states[i].h.value();
    if (kinds == 2) state.hidden[kinds * i + 1] = states[i].c.value();
  }
  state.advance(ids.shape(0), ids.shape(1));
  return logits;
}

}  // namespace heed::models
