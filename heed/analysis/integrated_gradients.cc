// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/integrated_gradients.h"

#include <string>

#include "heed/base/error.h"
#include "heed/ops/elementwise.h"

namespace heed::analysis {
namespace {

// Multiplies embeddings by a factor, and keeps the result as a leaf of the tape, where there is one.
class ScaledEmbeddings final : public nn::ObserverBeside {
 public:
  ScaledEmbeddings(double factor, nn::Observer* other) : ObserverBeside(other), factor_(factor) {}

  struct Side {
    nn::TextSide side;
    Tensor embedded;  // [1,T,E], not scaled
    Var scaled;
  };

  Var embeddings(const Context& context, nn::TextSide side, const Var& embedded) override {
    const Tensor whole = ObserverBeside::embeddings(context, side, embedded).value();
    Context plain = context;
    plain.tape = nullptr;
    const Tensor scaled = ops::scale(plain, whole, factor_).value();
    Var leaf = context.tape ? context.tape->leaf(scaled) : Var(scaled);
    sides_.push_back({side, whole, leaf});
    return leaf;
  }
  const std::vector<Side>& sides() const { return sides_; }

 private:
  double factor_;
  std::vector<Side> sides_;
};

// Adds x_i . gradient_i / steps of each token i.
template <class T>
void add_products(const Tensor& x, const Tensor& gradient, double steps, std::vector<double>& to) {
  const int64_t E = x.shape(2);
  for (int64_t i = 0; i < x.size(); ++i) {
    to[static_cast<size_t>(i / E)] += double{x.data<T>()[i]} * double{gradient.data<T>()[i]} / steps;
  }
}

}  // namespace

IntegratedGradients integrated_gradients(const nn::Pass& pass, const Question& question,
                                         const IntegratedGradientsOptions& options) {
  check_fields("integrated gradients", options);
  const auto tokens = [&](nn::TextSide side) { return static_cast<size_t>(question.tokens(side)); };
  IntegratedGradients result{std::vector<double>(tokens(nn::TextSide::source)),
                             std::vector<double>(tokens(nn::TextSide::target))};
  nn::Pass own = pass;
  ScaledEmbeddings none(0, pass.observer);
  own.observer = &none;
  result.value = question.measure(pass), result.baseline = question.measure(own);
  const auto steps = static_cast<double>(options.steps);
  for (int64_t step = 0; step < options.steps; ++step) {
    Tape tape;
    ScaledEmbeddings scaled((static_cast<double>(step) + 0.5) / steps, pass.observer);
    own.tape = &tape;
    own.frozen = true;
    own.observer = &scaled;
    tape.backward(question.value(own), own);
    for (const ScaledEmbeddings::Side& side : scaled.sides()) {
      const Tensor gradient = tape.gradient(side.scaled);
      if (!gradient) continue;  // nothing reached it
      std::vector<double>& to = side.side == nn::TextSide::source ? result.source : result.target;
      with_float("integrated gradients", gradient.dtype(),
                 [&](auto type) { add_products<decltype(type)>(side.embedded, gradient, steps, to); });
    }
  }
  for (const auto* side : {&result.source, &result.target}) {
    for (const double share : *side) result.completeness_error += share;
  }
  result.completeness_error -= result.value - result.baseline;
  return result;
}

}  // namespace heed::analysis
