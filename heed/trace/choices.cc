// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/base/error.h"
#include "heed/kernels/select.h"

namespace heed::trace {
namespace {

Choice choice_of(std::span<const float> row, int64_t wanted, std::span<const int32_t> tokens) {
  std::vector<kernels::Ranked> best(static_cast<size_t>(wanted));
  const kernels::RowSelection found = kernels::select_largest(row, best);
  best.resize(static_cast<size_t>(found.found));
  Choice choice;
  for (const kernels::Ranked& one : best) choice.best.emplace_back(one.index, double{found.log_probability(one.value)});
  for (const int32_t token : tokens) choice.of[token] = double{found.log_probability(row[static_cast<size_t>(token)])};
  return choice;
}

Choice choice_of(std::span<const double> row, int64_t wanted, std::span<const int32_t> tokens) {
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const double x : row) sum += std::exp(x - max);
  const double log_sum = std::log(sum);
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(wanted, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    const double x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  const auto log_probability = [&](int32_t token) { return row[static_cast<size_t>(token)] - max - log_sum; };
  Choice choice;
  for (auto token = order.begin(); token != end; ++token) choice.best.emplace_back(*token, log_probability(*token));
  for (const int32_t token : tokens) choice.of[token] = log_probability(token);
  return choice;
}

}  // namespace

Choice choice_of(const Tensor& logits, int64_t row, int64_t wanted, std::span<const int32_t> tokens) {
  return with_float("trace", logits.dtype(), [&](auto type) {
    using T = decltype(type);
    const int64_t V = logits.shape(-1);
    return choice_of(std::span<const T>(logits.data<T>() + row * V, static_cast<size_t>(V)), wanted, tokens);
  });
}

Var Choices::step(nn::Pass& pass, const Tensor& ids, nn::State& state) const {
  look(ids.span<int32_t>());
  newest_.clear();
  for (const nn::HypothesisRow& row : pass.rows) newest_.push_back(row.node);
  if (newest_.empty()) newest_.push_back(0);
  const Var logits = model_.step(pass, ids, state);
  ids_ = ids, logits_ = logits.value(), dtype_ = logits_.dtype();
  return logits;
}

void Choices::look(std::span<const int32_t> next) const {
  if (!logits_) return;
  std::vector<int32_t> tokens(next.begin(), next.end());
  tokens.push_back(end_);
  const int64_t n = logits_.shape(1);
  for (int64_t b = 0; b < std::ssize(newest_); ++b) {
    std::vector<Choice>& own = nodes_[newest_[static_cast<size_t>(b)]];
    const std::span<const int32_t> read(ids_.data<int32_t>() + b * n, static_cast<size_t>(n));
    for (int64_t t = 0; t < n; ++t) {
      const bool last = t + 1 == n;
      own.push_back(choice_of(logits_, b * n + t, wanted_,
                              last ? std::span<const int32_t>(tokens) : read.subspan(static_cast<size_t>(t) + 1, 1)));
    }
  }
  logits_ = Tensor();
}

void Choices::finish(std::span<const decode::Hypothesis> found) {
  std::vector<int32_t> last;
  for (const decode::Hypothesis& one : found) {
    if (!one.tokens.empty()) last.push_back(one.tokens.back());
  }
  look(last);
}

const Choice& Choices::at(int64_t node, int64_t query) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) throw Error("trace: node " + std::to_string(node) + " of the search did not run");
  return query < 0 ? found->second.back() : found->second.at(static_cast<size_t>(query));
}

}  // namespace heed::trace
