// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/recurrent.h"

#include <string>

#include "heed/base/error.h"

namespace heed::nn {
namespace {

// Both directions side by side, or the one there is.
Var concat_directions(Pass& pass, const Var& forward, const Var& backward) {
  if (!backward) return forward;
  const Var both[] = {forward, backward};
  return ops::concat(pass, both);
}

// The half of a layer's states that one direction begins from.
RecurrentStates half_of(Pass& pass, const RecurrentStates& states, const RecurrentLayer& layer, bool backward) {
  if (!layer.backward.w_hh.value) return states;
  const int64_t half = layer.forward.w_hh.value.shape(1), begin = backward ? half : 0;
  RecurrentStates part;
  if (states.h) part.h = ops::columns(pass, states.h, begin, half);
  if (states.c) part.c = ops::columns(pass, states.c, begin, half);
  return part;
}

}  // namespace

void report_recurrent(Pass& pass, const std::string& path, const ops::RecurrentArguments& a,
                      const ops::RecurrentResult& result, int64_t position) {
  if (!pass.wants_recurrent()) return;
  pass.observer->recurrent({.path = path,
                            .cell = a.options.cell,
                            .reverse = a.options.reverse,
                            .position = position,
                            .rows = pass.rows_of(a.x.shape(0)),
                            .lengths = a.lengths,
                            .h = result.h.value(),
                            .c = result.trace.c,
                            .gates = result.trace.gates,
                            .h0 = a.h0.value(),
                            .c0 = a.c0.value()});
}

ops::RecurrentResult RecurrentDirection::run(Pass& pass, ops::RecurrentArguments a, int64_t position) const {
  a.trace = pass.wants_recurrent();
  ops::RecurrentResult result = ops::recurrent(pass, a);
  report_recurrent(pass, path, a, result, position);
  return result;
}

RecurrentDirection::RecurrentDirection(Cell cell, int64_t in, int64_t width, Init init) {
  const int64_t rows = kernels::gates_of(cell) * width;
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  w_ih = init.uniform({rows, in}, bound);
  w_hh = init.uniform({rows, width}, bound);
  b_ih = init.constant({rows}, 0);
  b_hh = init.constant({rows}, 0);
  if (cell == Cell::lstm && init.draws()) b_ih.value.slice(width, width).fill(1);
}

Recurrent::Recurrent(int64_t in, const RecurrentOptions& o, const std::string& path, Init init) : options(o) {
  check_fields("recurrent", o);
  if (o.bidirectional && o.width % 2 != 0) {
    throw Error("recurrent: width is " + std::to_string(o.width) + ", expected an even one for two directions");
  }
  for (int64_t i = 0; i < o.layers; ++i) {
    const int64_t width = o.bidirectional ? o.width / 2 : o.width, from = i == 0 ? in : o.width;
    RecurrentLayer layer;
    layer.forward = RecurrentDirection(o.cell, from, width, init);
    layer.forward.path = path + ".layers." + std::to_string(i) + ".forward";
    if (o.bidirectional) {
      layer.backward = RecurrentDirection(o.cell, from, width, init);
      layer.backward.path = path + ".layers." + std::to_string(i) + ".backward";
    }
    layers.push_back(layer);
  }
}

RecurrentOutput Recurrent::operator()(Pass& pass, const Var& x, const RecurrentCall& call) const {
  if (!call.begin.empty() && call.begin.size() != layers.size()) {
    throw Error("recurrent: states for " + std::to_string(call.begin.size()) + " layers came, expected " +
                std::to_string(layers.size()));
  }
  RecurrentOutput out{x, {}};
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) out.h = ops::dropout(pass, out.h, pass.next_dropout(options.dropout));
    const auto run = [&](const RecurrentDirection& direction, bool backward) {
      if (!direction.w_hh.value) return ops::RecurrentResult{};
      ops::RecurrentArguments a = direction.arguments(pass, out.h);
      if (!call.begin.empty()) {
        const RecurrentStates from = half_of(pass, call.begin[i], layers[i], backward);
        a.h0 = from.h, a.c0 = from.c;
      }
      a.lengths = call.lengths;
      a.options = {.cell = options.cell, .reverse = backward};
      return direction.run(pass, a, call.position);
    };
    const ops::RecurrentResult forward = run(layers[i].forward, false), backward = run(layers[i].backward, true);
    out.h = concat_directions(pass, forward.h, backward.h);
    out.last.push_back({concat_directions(pass, forward.last_h, backward.last_h), {}});
    if (options.cell == Cell::lstm) out.last.back().c = concat_directions(pass, forward.last_c, backward.last_c);
  }
  return out;
}

Conv1d::Conv1d(int64_t in, int64_t out, int64_t taps, Init init) {
  if (taps % 2 != 1) throw Error("conv1d: taps is " + std::to_string(taps) + ", expected an odd number");
  weight = init.uniform({out, taps * in}, std::sqrt(6.0 / static_cast<double>(taps * in + out)));
  bias = init.constant({out}, 0);
}

}  // namespace heed::nn
