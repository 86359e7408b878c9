// SPDX-License-Identifier: Apache-2.0
// ONNX's cases of RNN, GRU and LSTM, each through the twin and through the kernel on every instruction set of this
// machine. The operators run over time first and have other orders of gates: here they are brought into ours.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/kernels/attention/targets.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/reference/recurrent.h"
#include "tests/conformance/suite.h"

namespace heed::conformance {
namespace {

using kernels::Cell;

struct Operator {
  Cell cell;
  std::vector<int64_t> order;  // gate g of ours is gate order[g] of ONNX
  Signature signature;
};

Signature signature_of(const std::string& op, const std::vector<std::string>& more_inputs,
                       const std::vector<std::string>& more_outputs, const std::vector<std::string>& attributes) {
  Signature s{.op = op,
              .first_opset = 22,
              .last_opset = 22,
              .inputs = {"X", "W", "R", "B", "sequence_lens", "initial_h"},
              .outputs = {"Y", "Y_h"},
              .attributes = {"hidden_size", "layout"}};
  s.inputs.insert(s.inputs.end(), more_inputs.begin(), more_inputs.end());
  s.outputs.insert(s.outputs.end(), more_outputs.begin(), more_outputs.end());
  s.attributes.insert(s.attributes.end(), attributes.begin(), attributes.end());
  return s;
}

const Operator kRnn{Cell::rnn, {0}, signature_of("RNN", {}, {}, {})};
const Operator kGru{Cell::gru, {1, 0, 2}, signature_of("GRU", {}, {}, {"linear_before_reset"})};
const Operator kLstm{Cell::lstm, {0, 2, 3, 1}, signature_of("LSTM", {"initial_c", "P"}, {"Y_c"}, {})};

template <class T>
struct Node {
  const Operator& op;
  int64_t B, T_, I, H, GH;
  bool batch_first;
  std::vector<T> x, w, r, b_w, b_r, peepholes, h0, c0, h, last_h, last_c, saved;
  std::vector<int64_t> lengths;
  kernels::RecurrentOptions options;

  Node(const Case& c, const Operator& of) : op(of), options{.cell = of.cell} {
    const io::Shape &shape = input(c, 0).array.shape, &weights = input(c, 2).array.shape;
    if (weights.at(0) != 1) c.refuse("has more than one direction");
    batch_first = c.integer("layout").value_or(0) == 1;
    T_ = shape.at(batch_first ? 1 : 0), B = shape.at(batch_first ? 0 : 1), I = shape.at(2), H = weights.at(2);
    GH = kernels::gates_of(op.cell) * H;
    options.reset_before = c.integer("linear_before_reset").value_or(0) == 0;
    x = with_batch_first(numbers_of<T>(input(c, 0)));
    w = reordered(numbers_of<T>(input(c, 1)), I), r = reordered(numbers_of<T>(input(c, 2)), H);
    if (c.input(3)) {
      const std::vector<T> both = numbers_of<T>(*c.input(3));
      b_w = reordered({both.begin(), both.begin() + GH}, 1), b_r = reordered({both.begin() + GH, both.end()}, 1);
    }
    if (c.input(4)) {
      for (const int32_t length : c.input(4)->array.as<int32_t>()) lengths.push_back(length);
    }
    if (c.input(5)) h0 = numbers_of<T>(*c.input(5));
    if (c.input(6)) c0 = numbers_of<T>(*c.input(6));
    if (c.input(7)) {  // i, o, f; ours are i, f, o
      const std::vector<T> p = numbers_of<T>(*c.input(7));
      for (const int64_t gate : {0, 2, 1})
        peepholes.insert(peepholes.end(), p.begin() + gate * H, p.begin() + (gate + 1) * H);
    }
    h.resize(static_cast<size_t>(B * T_ * H)), last_h.resize(static_cast<size_t>(B * H)), last_c = last_h;
    saved.resize(static_cast<size_t>(B * T_ * kernels::saved_width(op.cell, H)));
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  kernels::RecurrentInputs<T> inputs() const {
    kernels::RecurrentInputs<T> in{
        .x = {x.data(), {B, T_, I}}, .w_ih = {w.data(), {GH, I}}, .w_hh = {r.data(), {GH, H}}};
    if (!b_w.empty()) in.b_ih = {b_w.data(), {GH}}, in.b_hh = {b_r.data(), {GH}};
    if (!peepholes.empty()) in.peepholes = {peepholes.data(), {3, H}};
    if (!h0.empty()) in.h0 = {h0.data(), {B, H}};
    if (!c0.empty()) in.c0 = {c0.data(), {B, H}};
    in.lengths = lengths;
    return in;
  }
  kernels::RecurrentOutputs<T> outputs() {
    kernels::RecurrentOutputs<T> out{.h = {h.data(), {B, T_, H}}, .last_h = {last_h.data(), {B, H}}};
    if (op.cell == Cell::lstm) out.last_c = {last_c.data(), {B, H}};
    out.saved = {saved.data(), {B * T_, kernels::saved_width(op.cell, H)}};
    return out;
  }

 private:
  const Tensor& input(const Case& c, size_t place) const {
    if (!c.input(place)) c.refuse("has no " + op.signature.inputs[place]);
    return *c.input(place);
  }
  std::vector<T> reordered(const std::vector<T>& from, int64_t width) const {
    std::vector<T> to;
    for (const int64_t gate : op.order) {
      to.insert(to.end(), from.begin() + gate * H * width, from.begin() + (gate + 1) * H * width);
    }
    return to;
  }
  std::vector<T> with_batch_first(const std::vector<T>& from) const {
    if (batch_first) return from;
    std::vector<T> to;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T_; ++t) to.insert(to.end(), &from[(t * B + b) * I], &from[(t * B + b) * I] + I);
    }
    return to;
  }
};

using Answer = std::vector<std::vector<double>>;  // Y, Y_h, Y_c

template <class T>
Answer answer_of(const Node<T>& node) {
  std::vector<double> y;  // [T,1,B,H], or [B,T,1,H]
  for (int64_t outer = 0; outer < (node.batch_first ? node.B : node.T_); ++outer) {
    for (int64_t inner = 0; inner < (node.batch_first ? node.T_ : node.B); ++inner) {
      const int64_t b = node.batch_first ? outer : inner, t = node.batch_first ? inner : outer;
      const auto from = node.h.begin() + (b * node.T_ + t) * node.H;
      y.insert(y.end(), from, from + node.H);
    }
  }
  return {y, {node.last_h.begin(), node.last_h.end()}, {node.last_c.begin(), node.last_c.end()}};
}

// States are below 1, a cell state below its number of steps. A step's sums have I + H terms, of sizes that add up to
// at most S; an error in the states before is felt by the sums as the largest row of R and the peepholes, and no
// squashing makes it larger.
double bound_of(const Node<double>& node, double unit) {
  double size = 0, felt = 0;
  for (int64_t j = 0; j < node.GH; ++j) {
    double row = 0, state = 0;
    for (int64_t i = 0; i < node.H; ++i) state += std::abs(node.r[j * node.H + i]);
    for (int64_t i = 0; i < node.I; ++i) {
      double largest = 0;
      for (size_t k = static_cast<size_t>(i); k < node.x.size(); k += node.I)
        largest = std::max(largest, std::abs(node.x[k]));
      row += std::abs(node.w[j * node.I + i]) * largest;
    }
    if (!node.b_w.empty()) row += std::abs(node.b_w[j]) + std::abs(node.b_r[j]);
    size = std::max(size, row + state), felt = std::max(felt, state);
  }
  for (const double p : node.peepholes) size += std::abs(p), felt += std::abs(p);
  double error = 0;
  for (int64_t t = 0; t < node.T_; ++t) {
    error = (felt + 2) * error + unit * (static_cast<double>(node.I + node.H + 12) * size + 20);
  }
  return error;
}

std::vector<Verdict> judge(const Operator& op, const Case& c) {
  c.require(op.signature);
  Node<double> twin(c, op);
  kernels::reference::recurrent_forward(twin.inputs(), twin.outputs(), twin.options);
  const auto verdict_of = [&](const std::string& way, const Answer& answer, double unit) {
    Verdict verdict{way};
    const double allowed = bound_of(twin, unit) + bound_of(twin, 0x1p-24);  // ours and theirs, which is in f32
    for (size_t place = 0; place < answer.size(); ++place) {
      if (!c.output(place)) continue;
      compare(op.signature.outputs[place], *c.output(place), answer[place],
              std::vector<double>(answer[place].size(), allowed), verdict);
    }
    return verdict;
  };
  std::vector<Verdict> verdicts{verdict_of("twin", answer_of(twin), 0x1p-53)};
  for (const std::string& target : kernels::simd_targets()) {
    kernels::use_simd_target(target);
    Node<float> node(c, op);
    Parallel parallel(1);
    Workspace workspace(kernels::recurrent_forward_bytes(node.inputs(), node.options));
    kernels::recurrent_forward(node.inputs(), node.outputs(), node.options, workspace, parallel);
    verdicts.push_back(verdict_of(target, answer_of(node), 0x1p-24));
  }
  kernels::use_simd_target("");
  return verdicts;
}

}  // namespace
}  // namespace heed::conformance

int main() {
  using namespace heed::conformance;
  const std::pair<const Operator*, Suite> suites[] = {{&kRnn, {"test_rnn_", 1, {}}},
                                                      {&kRnn, {"test_simple_rnn_", 3, {}}},
                                                      {&kGru, {"test_gru_", 4, {}}},
                                                      {&kLstm, {"test_lstm_", 4, {}}}};
  int worst = kPassed;
  for (auto [op, suite] : suites) {
    suite.judge = [op = op](const Case& c) { return judge(*op, c); };
    const int code = run(suite, std::getenv("HEED_DATA"), std::cout);
    if (code == kSkipped) return code;  // no data: all of them
    worst = std::max(worst, code);
  }
  return worst;
}
