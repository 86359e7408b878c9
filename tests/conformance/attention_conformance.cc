// SPDX-License-Identifier: Apache-2.0
// ONNX's cases of Attention, each through the twin and through the fused kernel on every instruction set of this
// machine.
//
// What a case expects was computed in double precision, and rounded once to the dtype of its outputs. A correct answer
// is within half an ulp of that dtype, and the rounding of the computations on both sides (attention_bounds.h).
// softmax_precision lets the softmax behind the expected values be computed in less than double; heed's is f32.
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/targets.h"
#include "heed/kernels/reference/attention.h"
#include "tests/conformance/attention_bounds.h"
#include "tests/conformance/attention_node.h"
#include "tests/conformance/suite.h"

namespace heed::conformance {
namespace {

using kernels::AttentionStage;

constexpr double kUnitF32 = 0x1p-24, kUnitF64 = 0x1p-53;

// By AttentionOutput, each as its file has it.
using Answer = std::map<AttentionOutput, std::vector<double>>;

template <class T>
std::vector<double> flattened(const View<const T, 4>& view) {
  std::vector<double> numbers;
  const auto [B, H, N, D] = view.shape();
  for (int64_t row = 0; row < B * H * N; ++row) {
    const T* from = view.at(row / (H * N), row / N % H, row % N);
    numbers.insert(numbers.end(), from, from + D);
  }
  return numbers;
}

// What no kernel writes to shows as NaN.
template <class T>
std::vector<T> unwritten(const Dims<4>& shape) {
  return std::vector<T>(static_cast<size_t>(element_count(shape)), std::numeric_limits<T>::quiet_NaN());
}

struct Twin {
  explicit Twin(const AttentionNode<double>& node) : pairs(node.pairs()) {
    std::vector<double>& out = answer[kY];
    for (const AttentionStage stage :
         {AttentionStage::raw, AttentionStage::capped, AttentionStage::masked, AttentionStage::weight}) {
      stages[stage] = unwritten<double>(pairs);
    }
    kernels::reference::attention_forward({.q = node.q, .k = node.k, .v = node.v, .bias = node.bias},
                                          {.out = node.out_in(out),
                                           .raw = at(AttentionStage::raw),
                                           .capped = at(AttentionStage::capped),
                                           .masked = at(AttentionStage::masked),
                                           .weights = at(AttentionStage::weight)},
                                          node.options);
    answer[kScores] = stages[node.stage()];
    answer[kPresentKey] = flattened(node.k);
    answer[kPresentValue] = flattened(node.v);
  }

  View<double, 4> at(AttentionStage stage) { return {stages[stage].data(), pairs}; }

  Dims<4> pairs;
  std::map<AttentionStage, std::vector<double>> stages;
  Answer answer;
};

// Scores come from the row observer, which is asked for all rows.
Answer run_fused(const AttentionNode<float>& node) {
  const auto [B, H, T, S] = node.pairs();
  const kernels::AttentionInputs inputs{.q = node.q, .k = node.k, .v = node.v, .bias = node.bias};
  std::vector<float> out, rows = unwritten<float>(node.pairs()), numbers = unwritten<float>({B, H, T, 2});
  const View<float, 4> stats(numbers.data(), {B, H, T, 2});
  Parallel parallel(1);
  Workspace workspace;
  kernels::attention_forward(inputs, {.out = node.out_in(out), .stats = stats}, node.options, workspace, parallel);

  std::vector<int64_t> queries(static_cast<size_t>(T));
  std::iota(queries.begin(), queries.end(), 0);
  kernels::attention_observe(inputs, stats,
                             {.queries = queries, .stage = node.stage(), .rows = {rows.data(), node.pairs()}},
                             node.options, workspace, parallel);
  return {{kY, {out.begin(), out.end()}},
          {kScores, {rows.begin(), rows.end()}},
          {kPresentKey, flattened(node.k)},
          {kPresentValue, flattened(node.v)}};
}

// Of the softmax behind the expected values; TensorProto's numbers for the types.
double expected_unit(const Case& c) {
  static const std::map<int64_t, double> units = {{1, kUnitF32}, {10, 0x1p-11}, {11, kUnitF64}, {16, 0x1p-8}};
  const int64_t precision = c.integer("softmax_precision").value_or(11);
  const auto unit = units.find(precision);
  if (unit == units.end()) {
    c.refuse("softmax_precision is " + std::to_string(precision) + ", expected 1, 10, 11 or 16");
  }
  return unit->second;
}

class Judge {
 public:
  Judge(const Case& c, const AttentionBounds& bounds, AttentionStage stage)
      : case_(c), bounds_(bounds), stage_(stage) {}

  Verdict operator()(const std::string& way, const Answer& answer, double unit) const {
    Verdict verdict{way};
    for (const auto& [place, numbers] : answer) {
      if (const Tensor* expected = case_.output(place)) {
        compare(kAttention.outputs[place], *expected, numbers, allowed(place, *expected, unit), verdict);
      }
    }
    return verdict;
  }

 private:
  std::vector<double> allowed(AttentionOutput place, const Tensor& expected, double unit) const {
    const std::vector<double> values = expected.array.as_doubles();
    if (place == kPresentKey || place == kPresentValue) return std::vector<double>(values.size());  // copies
    std::vector<double> sum = computing(place, unit);
    const std::vector<double> other = computing(place, expected_unit(case_));
    for (size_t i = 0; i < std::min(sum.size(), values.size()); ++i) {
      sum[i] += other[i] + (std::isfinite(values[i]) ? half_ulp(expected.dtype, values[i]) : 0);
    }
    return sum;
  }

  std::vector<double> computing(AttentionOutput place, double unit) const {
    return place == kY ? bounds_.out(unit) : bounds_.scores(stage_, unit);
  }

  const Case& case_;
  const AttentionBounds& bounds_;
  AttentionStage stage_;
};

std::vector<Verdict> judge(const Case& c) {
  const AttentionNode<double> exact(c);
  const AttentionNode<float> single(c);
  Twin twin(exact);
  const AttentionBounds bounds(exact, twin.at(AttentionStage::masked), twin.at(AttentionStage::weight));
  const Judge judged(c, bounds, exact.stage());

  std::vector<Verdict> verdicts{judged("twin", twin.answer, kUnitF64)};
  for (const std::string& target : kernels::simd_targets()) {
    kernels::use_simd_target(target);
    verdicts.push_back(judged(target, run_fused(single), kUnitF32));
  }
  kernels::use_simd_target("");
  return verdicts;
}

}  // namespace
}  // namespace heed::conformance

int main() {
  using namespace heed::conformance;
  return run({.prefix = "test_attention_", .at_least = 76, .judge = judge}, std::getenv("HEED_DATA"), std::cout);
}
