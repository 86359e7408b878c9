// SPDX-License-Identifier: Apache-2.0
// ONNX's cases of LayerNormalization, RMSNormalization, Softmax, LogSoftmax, Gelu and RotaryEmbedding, each through the
// twin and through the kernel on every instruction set of this machine.
//
// What these cases expect was computed in f32. So a correct answer is within the rounding of two computations: ours, in
// double or in f32, and theirs. The bounds count roundings as the tests of the kernels do.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/base/parallel.h"
#include "heed/kernels/activation.h"
#include "heed/kernels/attention/targets.h"
#include "heed/kernels/norm.h"
#include "heed/kernels/reference/activation.h"
#include "heed/kernels/reference/norm.h"
#include "heed/kernels/reference/rope.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/rope.h"
#include "heed/kernels/softmax.h"
#include "tests/conformance/suite.h"

namespace heed::conformance {
namespace {

constexpr double kUnitF32 = 0x1p-24, kUnitF64 = 0x1p-53;

using Answer = std::map<size_t, std::vector<double>>;  // by the place of an output

template <class T>
std::vector<double> to_doubles(const std::vector<T>& numbers) {
  return {numbers.begin(), numbers.end()};
}

const Tensor& required(const Case& c, size_t place, const Signature& signature) {
  if (!c.input(place)) c.refuse("has no " + signature.inputs[place]);
  return *c.input(place);
}

int64_t axis_of(const Case& c, const io::Shape& shape) {
  const int64_t rank = std::ssize(shape), axis = c.integer("axis").value_or(-1);
  if (axis < -rank || axis >= rank) c.refuse("axis is " + std::to_string(axis) + ", expected one of the input's");
  return axis < 0 ? axis + rank : axis;
}

int64_t product(const io::Shape& shape, int64_t begin, int64_t end) {
  return std::accumulate(shape.begin() + begin, shape.begin() + end, int64_t{1}, std::multiplies<>());
}

// What an operator is here: how a case of it is computed in T, and how wrong that may be in a given unit of rounding.
struct Operator {
  Signature signature;
  Suite suite;
  std::function<Answer(const Case&)> twin, kernel;
  std::function<Answer(const Case&, double unit)> bounds;
};

// ---- Normalisation: over all dimensions from `axis` on.

const Signature kLayerNorm = {.op = "LayerNormalization",
                              .first_opset = 17,
                              .last_opset = 17,
                              .inputs = {"X", "Scale", "B"},
                              .outputs = {"Y", "Mean", "InvStdDev"},
                              .attributes = {"axis", "epsilon", "stash_type"}};
const Signature kRmsNorm = {.op = "RMSNormalization",
                            .first_opset = 23,
                            .last_opset = 23,
                            .inputs = {"X", "scale"},
                            .outputs = {"Y"},
                            .attributes = {"axis", "epsilon", "stash_type"}};

template <class T>
struct NormNode {
  bool centred;
  std::vector<T> x, weight, bias;
  kernels::NormInputs<T> in;

  explicit NormNode(const Case& c) : centred(c.op == kLayerNorm.op) {
    const Signature& signature = centred ? kLayerNorm : kRmsNorm;
    const io::Shape& shape = required(c, 0, signature).array.shape;
    const int64_t axis = axis_of(c, shape), rank = std::ssize(shape), width = product(shape, axis, rank);
    x = numbers_of<T>(*c.input(0));
    weight = numbers_of<T>(required(c, 1, signature));
    if (c.input(2)) bias = numbers_of<T>(*c.input(2));
    if (std::ssize(weight) != width) c.refuse("Scale has " + std::to_string(weight.size()) + " elements");
    in = {.x = {x.data(), {product(shape, 0, axis), width}}, .weight = {weight.data(), {width}}};
    if (!bias.empty()) in.bias = {bias.data(), {width}};
    in.eps = c.number("epsilon").value_or(1e-5);
  }
  NormNode(const NormNode&) = delete;
  NormNode& operator=(const NormNode&) = delete;
};

template <class T>
Answer run_norm(const Case& c) {
  const NormNode<T> node(c);
  const Dims<2> shape = node.in.x.shape();
  std::vector<T> y(node.x.size()), mean(shape[0]), rstd(shape[0]);
  kernels::NormOutputs<T> out{.y = {y.data(), shape}, .rstd = {rstd.data(), {shape[0]}}};
  if (node.centred) out.mean = {mean.data(), {shape[0]}};
  if constexpr (std::is_same_v<T, double>) {
    (node.centred ? kernels::reference::layer_norm_forward : kernels::reference::rms_norm_forward)(node.in, out);
  } else {
    Parallel parallel(1);
    (node.centred ? kernels::layer_norm_forward : kernels::rms_norm_forward)(node.in, out, parallel);
  }
  Answer answer{{0, to_doubles(y)}};
  if (node.centred) answer[1] = to_doubles(mean), answer[2] = to_doubles(rstd);
  return answer;
}

// W numbers a row. The mean is wrong by m = (W + 2) u mean|x|, the variance by W + 8 roundings and m^2, rstd by no more
// than that relatively and four roundings, y by all of it and four roundings.
Answer norm_bounds(const Case& c, double unit) {
  const NormNode<double> node(c);
  const Answer exact = run_norm<double>(c);
  const auto [rows, width] = node.in.x.shape();
  const auto W = static_cast<double>(width);
  Answer bounds{{0, {}}, {1, {}}, {2, {}}};
  for (int64_t r = 0; r < rows; ++r) {
    double size = 0, mean = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i) size += std::abs(node.in.x(r, i)) / W, mean += node.in.x(r, i) / W;
    if (!node.centred) mean = 0;
    for (int64_t i = 0; i < width; ++i) squares += std::pow(node.in.x(r, i) - mean, 2) / W;
    const double m = node.centred ? (W + 2) * unit * size : 0, rstd = 1 / std::sqrt(squares + node.in.eps);
    const double relative = ((W + 8) * unit * squares + m * m) / (squares + node.in.eps) + 4 * unit;
    bounds[1].push_back(m);
    bounds[2].push_back(relative * rstd);
    for (int64_t i = 0; i < width; ++i) {
      const double n = std::abs(node.in.x(r, i) - mean) * rstd, weight = std::abs(node.in.weight(i));
      const double bias = node.in.bias ? std::abs(node.in.bias(i)) : 0;
      bounds[0].push_back(weight * (1.01 * m * rstd + n * (relative + 4 * unit)) + 2 * unit * (n * weight + bias));
    }
  }
  return bounds;
}

// ---- Softmax and its logarithm: over the dimension `axis`, which is brought to the end.

Signature softmax_signature(const std::string& op) {
  return {.op = op,
          .first_opset = 13,
          .last_opset = 13,
          .inputs = {"input"},
          .outputs = {"output"},
          .attributes = {"axis"}};
}

// x [outer, A, inner] with its middle and last dimension swapped.
template <class T>
std::vector<T> swapped(const std::vector<T>& x, int64_t outer, int64_t A, int64_t inner) {
  std::vector<T> y;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t a = 0; a < A; ++a) y.push_back(x[static_cast<size_t>((o * A + a) * inner + i)]);
    }
  }
  return y;
}

// calls body(x, y, shape) with x as rows, and gives y in the order of the node.
template <class T>
std::vector<T> over_axis(const Case& c, const auto& body) {
  const io::Shape& shape = required(c, 0, softmax_signature(c.op)).array.shape;
  const int64_t axis = axis_of(c, shape), outer = product(shape, 0, axis), A = shape[axis];
  const int64_t inner = product(shape, axis + 1, std::ssize(shape));
  const std::vector<T> x = swapped(numbers_of<T>(*c.input(0)), outer, A, inner);
  std::vector<T> y(x.size());
  body(x, y, Dims<2>{outer * inner, A});
  return swapped(y, outer, inner, A);
}

template <class T>
Answer run_softmax(const Case& c) {
  const bool log = c.op == "LogSoftmax";
  return {{0, to_doubles(over_axis<T>(c, [&](const std::vector<T>& x, std::vector<T>& y, const Dims<2>& shape) {
             const View<const T, 2> from(x.data(), shape);
             const View<T, 2> to(y.data(), shape);
             if constexpr (std::is_same_v<T, double>) {
               (log ? kernels::reference::log_softmax_forward : kernels::reference::softmax_forward)(from, to);
             } else {
               Parallel parallel(1);
               (log ? kernels::log_softmax_forward : kernels::softmax_forward)(from, to, parallel);
             }
           }))}};
}

// e^(x - max) is wrong by u (|x - max| + 4) of itself, their sum by the weighted mean of that and W u.
Answer softmax_bounds(const Case& c, double unit) {
  const bool log = c.op == "LogSoftmax";
  return {{0, over_axis<double>(c, [&](const std::vector<double>& x, std::vector<double>& bound, const Dims<2>& shape) {
             const auto W = static_cast<double>(shape[1]);
             for (int64_t r = 0; r < shape[0]; ++r) {
               const double* row = x.data() + r * shape[1];
               const double max = *std::max_element(row, row + shape[1]);
               double sum = 0, distance = 0;
               for (int64_t i = 0; i < shape[1]; ++i) sum += std::exp(row[i] - max);
               for (int64_t i = 0; i < shape[1]; ++i) distance += std::exp(row[i] - max) / sum * (max - row[i]);
               for (int64_t i = 0; i < shape[1]; ++i) {
                 const double below = max - row[i], y = std::exp(-below) / sum;
                 bound[r * shape[1] + i] = log ? unit * (4 * below + distance + W + 12 + 6 * std::log(sum))
                                               : unit * y * (below + distance + W + 12) + 0x1p-125;
               }
             }
           })}};
}

// ---- Gelu

const Signature kGelu = {.op = "Gelu",
                         .first_opset = 20,
                         .last_opset = 20,
                         .inputs = {"X"},
                         .outputs = {"Y"},
                         .attributes = {"approximate"}};

kernels::Activation gelu_of(const Case& c) {
  const std::string approximate = c.text("approximate").value_or("none");
  if (approximate != "none" && approximate != "tanh")
    c.refuse("approximate is " + approximate + ", expected none or tanh");
  return approximate == "none" ? kernels::Activation::gelu : kernels::Activation::gelu_tanh;
}

template <class T>
Answer run_gelu(const Case& c) {
  const std::vector<T> x = numbers_of<T>(required(c, 0, kGelu));
  std::vector<T> y(x.size());
  if constexpr (std::is_same_v<T, double>) {
    const Dims<2> shape{1, std::ssize(x)};
    kernels::reference::activation_forward(gelu_of(c), {x.data(), shape}, {y.data(), shape});
  } else {
    kernels::activate(gelu_of(c), x, y);
  }
  return {{0, to_doubles(y)}};
}

// Phi(x) is right to (x^2/2 + 20) u of Phi(-|x|) and u of itself; the gate of the tanh form to (10 + 7 |u|) u of
// itself.
Answer gelu_bounds(const Case& c, double unit) {
  Answer bounds;
  for (const double x : numbers_of<double>(required(c, 0, kGelu))) {
    const double size = std::abs(x), tail = std::erfc(size * std::sqrt(0.5)) / 2,
                 y = kernels::reference::activate(gelu_of(c), x);
    const double u = 1.6 * (size + 0.045 * size * size * size);
    bounds[0].push_back(unit * (gelu_of(c) == kernels::Activation::gelu ? size * tail * (x * x / 2 + 20) + 3 * size
                                                                        : std::abs(y) * (12 + 7 * u)));
  }
  return bounds;
}

// ---- RotaryEmbedding

const Signature kRope = {.op = "RotaryEmbedding",
                         .first_opset = 23,
                         .last_opset = 23,
                         .inputs = {"X", "cos_cache", "sin_cache", "position_ids"},
                         .outputs = {"Y"},
                         .attributes = {"interleaved", "num_heads", "rotary_embedding_dim"}};

template <class T>
struct RopeNode {
  std::vector<T> x, cos, sin;
  std::vector<int32_t> positions;
  kernels::RopeTables<T> tables;
  Dims<4> shape{};    // [B,H,T,D]
  bool flat = false;  // the case has [B,T,H*D]

  explicit RopeNode(const Case& c)
      : x(numbers_of<T>(required(c, 0, kRope))),
        cos(numbers_of<T>(required(c, 1, kRope))),
        sin(numbers_of<T>(required(c, 2, kRope))) {
    const io::Shape& given = c.input(0)->array.shape;
    flat = given.size() == 3;
    if (flat) {
      const auto heads = c.integer("num_heads");
      if (!heads) c.refuse("has an input of 3 dimensions and no num_heads");
      shape = {given[0], *heads, given[1], given[2] / *heads};
    } else {
      shape = {given[0], given[1], given[2], given[3]};
    }
    set_positions(c);
    const int64_t half = c.input(1)->array.shape.back(), rotary = c.integer("rotary_embedding_dim").value_or(0);
    if (2 * half != (rotary ? rotary : shape[3])) c.refuse("cos_cache does not fit rotary_embedding_dim");
    const Dims<2> table{std::ssize(cos) / half, half};
    tables = {
        .cos = {cos.data(), table}, .sin = {sin.data(), table}, .positions = {positions.data(), {shape[0], shape[2]}}};
    if (c.integer("interleaved").value_or(0) != 0) tables.pairs = kernels::RopePairs::interleaved;
  }
  RopeNode(const RopeNode&) = delete;
  RopeNode& operator=(const RopeNode&) = delete;

  template <class U>
  View<U, 4> view(U* data) const {
    if (!flat) return {data, shape};
    return View<U, 4>(data, {shape[0], shape[2], shape[1], shape[3]}).transposed(1, 2);
  }

 private:
  // Without position_ids the caches are [B,T,R/2]: a row a token.
  void set_positions(const Case& c) {
    if (const Tensor* ids = c.input(3)) {
      for (const int64_t id : ids->array.template as<int64_t>()) positions.push_back(static_cast<int32_t>(id));
    } else {
      positions.resize(static_cast<size_t>(shape[0] * shape[2]));
      std::iota(positions.begin(), positions.end(), 0);
    }
    if (std::ssize(positions) != shape[0] * shape[2]) c.refuse("position_ids does not fit the input");
  }
};

template <class T>
Answer run_rope(const Case& c) {
  const RopeNode<T> node(c);
  std::vector<T> y(node.x.size(), std::numeric_limits<T>::quiet_NaN());
  if constexpr (std::is_same_v<T, double>) {
    kernels::reference::rope_forward(node.tables, node.view(node.x.data()), node.view(y.data()));
  } else {
    Parallel parallel(1);
    kernels::rope_forward(node.tables, node.view(node.x.data()), node.view(y.data()), parallel);
  }
  return {{0, to_doubles(y)}};
}

// Two products and a sum of numbers that are at most the largest of the input times the largest of the caches.
Answer rope_bounds(const Case& c, double unit) {
  const RopeNode<double> node(c);
  const auto largest = [](const std::vector<double>& of) {
    return std::abs(
        *std::max_element(of.begin(), of.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  };
  const double bound = 4 * unit * 2 * largest(node.x) * std::max(largest(node.cos), largest(node.sin));
  return {{0, std::vector<double>(node.x.size(), bound)}};
}

// ---- All of them

std::vector<Verdict> judge(const Operator& op, const Case& c) {
  c.require(op.signature);
  const Answer theirs = op.bounds(c, kUnitF32);
  const auto verdict_of = [&](const std::string& way, const Answer& answer, double unit) {
    Verdict verdict{way};
    const Answer ours = op.bounds(c, unit);
    for (const auto& [place, numbers] : answer) {
      const Tensor* expected = c.output(place);
      if (!expected) continue;
      std::vector<double> allowed = theirs.at(place);
      for (size_t i = 0; i < allowed.size(); ++i) allowed[i] += ours.at(place)[i];
      compare(op.signature.outputs[place], *expected, numbers, allowed, verdict);
    }
    return verdict;
  };
  std::vector<Verdict> verdicts{verdict_of("twin", op.twin(c), kUnitF64)};
  for (const std::string& target : kernels::simd_targets()) {
    kernels::use_simd_target(target);
    verdicts.push_back(verdict_of(target, op.kernel(c), kUnitF32));
  }
  kernels::use_simd_target("");
  return verdicts;
}

std::vector<Operator> all_operators() {
  return {
      {kLayerNorm, {"test_layer_normalization_", 19, {}}, run_norm<double>, run_norm<float>, norm_bounds},
      {kRmsNorm, {"test_rms_normalization_", 19, {}}, run_norm<double>, run_norm<float>, norm_bounds},
      {softmax_signature("Softmax"), {"test_softmax_", 7, {}}, run_softmax<double>, run_softmax<float>, softmax_bounds},
      {softmax_signature("LogSoftmax"),
       {"test_logsoftmax_", 7, {}},
       run_softmax<double>,
       run_softmax<float>,
       softmax_bounds},
      {kGelu, {"test_gelu_", 4, {}}, run_gelu<double>, run_gelu<float>, gelu_bounds},
      {kRope, {"test_rotary_embedding", 8, {}}, run_rope<double>, run_rope<float>, rope_bounds},
  };
}

}  // namespace
}  // namespace heed::conformance

int main() {
  using namespace heed::conformance;
  int worst = kPassed;
  std::vector<Operator> operators = all_operators();
  for (Operator& op : operators) {
    op.suite.judge = [&op](const Case& c) { return judge(op, c); };
    const int code = run(op.suite, std::getenv("HEED_DATA"), std::cout);
    if (code == kSkipped) return code;  // no data: all of them
    worst = std::max(worst, code);
  }
  return worst;
}
