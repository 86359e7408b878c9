// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records, while a model runs, what its attention and recurrent layers do for one sentence: in one pass, or token by
// token under greedy and beam search. Rows are kept by the node of the search tree that they belong to; at the end
// those of a hypothesis are put together, as if it had been said in one pass.
//
//   trace::Recorder recorder(parallel);
//   pass.observer = &recorder;
//   const auto found = decode::search(pass, model, input, options)[0];
//   recorder.add_source(trace, "source");
//   recorder.add_target(trace, found[0].nodes, {.target = "target", .source = "source"});
//
// Texts above a number of tokens take memory linear in their length: maps, the strongest keys and statistics of rows in
// place of the rows. Not here: tokens, texts and what was chosen (record.h, which does all of it).
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/nn/observer.h"
#include "heed/trace/trace.h"

namespace heed::trace {

// Queries [begin, end) by their positions.
struct Rows {
  int64_t begin{0}, end{std::numeric_limits<int64_t>::max()};
};

// What is recorded.
struct RecorderOptions {
  std::vector<std::string> layers{};  // "decoder.0.cross"; empty: all
  std::vector<int64_t> heads{};       // of these layers; empty: all
  Rows source{}, target{};            // rows of the encoder, and steps of the decoder
  bool vectors{true};                 // Q, K, V and O
  bool states{true};                  // of recurrent layers, with their gates
  int64_t full{512};                  // tokens; of longer texts no whole rows are kept
  int64_t map{128};                   // cells of a map, at most, along each side
  int64_t top{8};                     // strongest keys of each row of a longer text
  std::vector<std::string> tiles{};   // heads of longer texts that keep Q and K: "decoder.0.self.1"
  nn::Observer* gates{nullptr};       // that head gates come from

  static void describe(RecorderOptions& o, auto&& field) {
    field("vectors", o.vectors, "queries, keys, values and outputs of heads");
    field("states", o.states, "states and gates of recurrent layers");
    field("full", o.full, "tokens; longer texts have maps in place of rows", Range::at_least(1));
    field("map", o.map, "cells of a map along each side", Range::within(1, 1024));
    field("top", o.top, "strongest keys of each row of a longer text", Range::within(1, 64));
  }
};

// The tolerance of weights that are computed from the Q and K of a Tile.
inline constexpr double kTileTolerance = 2e-3;

class HEED_API Recorder final : public nn::Observer {
 public:
  // `sentence` is the row of a batch; of the others nothing is kept. Throws Error for options that do not fit.
  explicit Recorder(Parallel& parallel, RecorderOptions options = {}, int64_t sentence = 0);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void attention(const nn::AttentionEvent&) override;
  bool wants_recurrent() const override;
  void recurrent(const nn::RecurrentEvent&) override;
  Tensor head_gate(const std::string& path, int64_t heads) override;

  // The ids of sequences, which are in the trace already.
  struct Names {
    std::string target{"target"}, source{"source"};
  };
  // What the encoder did. Throws Error, with the names of the layers, where a layer or head that was chosen is not
  // there.
  void add_source(Trace&, const std::string& source = "source") const;
  // What the decoder did for one hypothesis (decode::Hypothesis::nodes); after one pass over all its tokens, {0}.
  void add_target(Trace&, std::span<const int64_t> nodes, const Names&) const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

}  // namespace heed::trace
