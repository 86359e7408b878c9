#include "heed/models/rnn_seq2seq.h"

#include "heed/base/error.h"

namespace heed::models {
namespace {

using nn::AttentionRole;
using nn::LayerStates;
using nn::Pass;
using nn::RecurrentStates;

constexpr const char* kName = "rnn_seq2seq";

[[noreturn]] void refuse(const std::string& what) { throw Error(std::string(kName) + ": " + what); }

void check(const RnnSeq2SeqOptions& o) {
  check_fields(kName, o);
  if (o.vocabulary < 1) refuse("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.query == Query::none && o.readout != Readout::state) {
    refuse("readout is " + std::string(o.readout == Readout::both ? "both" : "context") +
           ", expected state where query is none");
  }
  if (o.query == Query::current && o.readout == Readout::state && !o.input_feeding) {
    refuse("readout is state, expected context or both: nothing else would see what query current finds");
  }
  if (o.input_feeding && o.query != Query::current) {
    refuse("input_feeding is on, expected it off where query is not current");
  }
  if (o.feed == Feed::attentional && !o.input_feeding) {
    refuse("feed is attentional, expected input_feeding to be on");
  }
  if (o.feed == Feed::attentional && o.readout != Readout::both) {
    refuse("feed is attentional, expected context where readout is not both: nothing is read out of both to be fed");
  }
}

nn::RecurrentOptions layers_of(const RnnSeq2SeqOptions& o, int64_t layers, bool bidirectional) {
  return {.cell = o.cell, .width = o.width, .layers = layers, .bidirectional = bidirectional, .dropout = o.dropout};
}

// Contexts that go into the cell, where those that are read out are the ones to be told of: gates count, events do not.
class GatesAlone final : public nn::Observer {
 public:
  explicit GatesAlone(nn::Observer* whole) : whole_(whole) {}
  Tensor head_gate(const std::string& path, int64_t heads) override { return whole_->head_gate(path, heads); }
  bool wants_recurrent() const override { return whole_->wants_recurrent(); }
  void recurrent(const nn::RecurrentEvent& event) override { whole_->recurrent(event); }

 private:
  nn::Observer* whole_;
};

}  // namespace

RnnSeq2Seq::RnnSeq2Seq(const RnnSeq2SeqOptions& o, Rng& rng) : options_(o) {
  check(o);
  const int64_t W = o.width;
  embedding_ = nn::Embedding(o.vocabulary, W, rng);
  embedding_.factor = std::sqrt(static_cast<double>(W));
  if (o.source_vocabulary > 0) {
    source_embedding_ = nn::Embedding(o.source_vocabulary, W, rng);
    source_embedding_.factor = embedding_.factor;
  }
  if (o.encoder == Encoder::recurrent) {
    encoder_ = nn::Recurrent(W, layers_of(o, o.layers, o.bidirectional), "encoder", rng);
  } else {
    const AttentiveBlocksSetting setting{.path = "encoder",
                                         .parameters = "encoder.blocks",
                                         .width = W,
                                         .bidirectional = o.bidirectional,
                                         .dropout = o.dropout};
    attentive_ = AttentiveBlocks(o.self_attentive, setting, rng);
    attentive_out_ = nn::Linear(attentive_.width, W, rng);
  }
  if (o.first_state == FirstState::learned) {
    first_query_ = nn::Embedding(1, W, rng);
    first_look_ = nn::Attention({.width = W, .score = nn::Score::scaled, .projections = false}, "decoder.first", rng);
    for (int64_t i = 0; i < o.layers; ++i) {
      first_h_.emplace_back(W, W, rng);
      if (o.cell == nn::Cell::lstm) first_c_.emplace_back(W, W, rng);
    }
  }
  if (o.layers > 1) decoder_ = nn::Recurrent(W, layers_of(o, o.layers - 1, false), "decoder", rng);
  top_ = nn::RecurrentDirection(o.cell, feeds() ? 2 * W : W, W, rng);
  top_.path = "decoder_top";
  if (o.query != Query::none) cross_ = nn::Alignment(o.score, "decoder.cross", W, W, rng);
  if (o.readout == Readout::both) readout_ = nn::Linear(2 * W, W, rng);
  if (!o.tied) output_ = nn::Linear(W, o.vocabulary, rng);
}

void RnnSeq2Seq::check_length(int64_t tokens) const {
  if (tokens <= options_.max_length) return;
  refuse("a row of " + std::to_string(tokens) + " tokens came, expected at most " +
         std::to_string(options_.max_length) + " (max_length)");
}

nn::RecurrentOutput RnnSeq2Seq::read(Pass& pass, const Var& x, const Tokens& source) const {
  if (options_.encoder == Encoder::recurrent) return encoder_(pass, x, {.lengths = source.lengths});
  nn::RecurrentOutput out{attentive_out_(pass, attentive_(pass, x, source), nn::Activation::tanh), {}};
  if (options_.first_state == FirstState::last) {
    out.last.assign(static_cast<size_t>(options_.layers), {nn::last_of_tokens(pass, out.h, source.lengths), {}});
  }
  return out;
}

LayerStates RnnSeq2Seq::first_states(Pass& pass, const nn::RecurrentOutput& encoded, const Tokens& source) const {
  if (options_.first_state == FirstState::last) return encoded.last;
  const int64_t B = encoded.h.shape(0), W = options_.width;
  if (options_.first_state == FirstState::mean) {
    const Var mean = nn::mean_of_tokens(pass, encoded.h, source.lengths);
    return LayerStates(static_cast<size_t>(options_.layers), {mean, {}});
  }
  const Var query = first_query_(pass, Tensor::zeros({B, 1}, DType::i32));
  const Var seen =
      ops::reshape(pass, first_look_(pass, query, encoded.h, {AttentionRole::cross, lengths_mask(source)}), {B, W});
  LayerStates states;
  for (size_t i = 0; i < first_h_.size(); ++i) {
    states.push_back({first_h_[i](pass, seen, nn::Activation::tanh), {}});
    if (!first_c_.empty()) states.back().c = first_c_[i](pass, seen);
  }
  return states;
}

RnnSeq2Seq::Encoded RnnSeq2Seq::encode(Pass& pass, const Tokens& source) const {
  check_ids(kName, "source", source.ids);
  check_length(source.ids.shape(1));
  const nn::Embedding& table = source_embedding_.weight.value ? source_embedding_ : embedding_;
  const Var x = ops::dropout(pass, table(pass, source.ids), pass.next_dropout(options_.dropout));
  const nn::RecurrentOutput encoded = read(pass, x, source);
  Encoded out{encoded.h, {}, first_states(pass, encoded, source)};
  if (options_.query != Query::none) out.keys = cross_.keys(pass, encoded.h);
  return out;
}

Var RnnSeq2Seq::run(Pass& pass, const Tensor& ids, const Encoded& source, const nn::AttentionCall& call,
                    LayerStates& states) const {
  const RnnSeq2SeqOptions& o = options_;
  Var x = ops::dropout(pass, embedding_(pass, ids), pass.next_dropout(o.dropout));
  if (o.layers > 1) {
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
  return o.tied ? ops::linear(pass, y, pass.use(embedding_.weight)) : output_(pass, y);
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
  if (encoded.keys) state.cross.push_back({encoded.keys.value(), encoded.states.value(), S});
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
  const size_t kinds = options_.cell == nn::Cell::lstm ? 2 : 1, layers = static_cast<size_t>(options_.layers);
  if (state.hidden.size() != kinds * layers || state.cross.empty() != (options_.query == Query::none)) {
    refuse("the state has " + std::to_string(state.hidden.size()) + " tensors, expected " +
           std::to_string(kinds * layers) + ", as begin gives them");
  }
  check_length(state.length + ids.shape(1));
  Encoded encoded;
  if (!state.cross.empty()) encoded = {state.cross[0].v, state.cross[0].k, {}};
  LayerStates states;
  for (size_t i = 0; i < layers; ++i) {
    states.push_back({state.hidden[kinds * i], {}});
    if (kinds == 2) states.back().c = state.hidden[kinds * i + 1];
  }
  const nn::AttentionCall call{AttentionRole::cross, kernels::Lengths{state.source_lengths}, state.length};
  Var logits = run(pass, ids, encoded, call, states);
  for (size_t i = 0; i < layers; ++i) {
    state.hidden[kinds * i] = states[i].h.value();
    if (kinds == 2) state.hidden[kinds * i + 1] = states[i].c.value();
  }
  state.length += ids.shape(1);
  return logits;
}

}  // namespace heed::models
