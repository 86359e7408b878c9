// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heed/base/error.h"
#include "heed/base/rng.h"

namespace heed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A tensor that is perturbed: its numbers, their gradient by the tape, and its name in a report.
struct Varied {
  std::string name;
  Tensor numbers, gradient;
};

Tensor combination(const Shape& shape, uint64_t seed) {
  Rng rng(seed, 77);
  const Tensor t = Tensor::uninitialised(shape, DType::f64);
  for (double& x : t.span<double>()) x = static_cast<double>(rng.uniform(0.5f, 1.5f)) * (rng.below(2) ? 1 : -1);
  return t;
}

double combine(const Tensor& output, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < output.size(); ++i) sum += output.data<double>()[i] * weights.data<double>()[i];
  return sum;
}

// The error of one tensor, over the elements or directions that were tried.
struct Deviation {
  double error = 0, largest = 0;
  std::string where{};

  void add(double difference, double gradient, const std::string& place) {
    if (!std::isfinite(difference) || !std::isfinite(gradient)) {
      if (error < kInfinity) error = kInfinity, where = place;
      return;
    }
    largest = std::max({largest, std::abs(difference), std::abs(gradient)});
    const double off = std::abs(difference - gradient);
    if (off > error) error = off, where = place;
  }
};

// (f(x + step d) - f(x - step d)) / (2 step)
double difference(const std::function<double()>& evaluate, std::span<double> x, std::span<const double> d,
                  double step) {
  const std::vector<double> before(x.begin(), x.end());
  const auto at = [&](double distance) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = before[i] + distance * d[i];
    return evaluate();
  };
  const double above = at(step), below = at(-step);
  std::copy(before.begin(), before.end(), x.begin());
  return (above - below) / (2 * step);
}

Deviation over_elements(const Varied& varied, const std::function<double()>& evaluate, const GradcheckOptions& options,
                        Rng& rng) {
  Deviation deviation;
  const int64_t size = varied.numbers.size();
  const bool every = options.samples == 0 || options.samples >= size;
  const double one = 1;
  // Elements that are not tried count for the scale, too.
  if (varied.gradient) {
    for (const double g : varied.gradient.span<double>()) {
      if (std::isfinite(g)) deviation.largest = std::max(deviation.largest, std::abs(g));
    }
  }
  for (int64_t n = 0; n < (every ? size : options.samples); ++n) {
    const int64_t i = every ? n : static_cast<int64_t>(rng.below(static_cast<uint64_t>(size)));
    const std::span<double> x = varied.numbers.span<double>().subspan(static_cast<size_t>(i), 1);
    const double gradient = varied.gradient ? varied.gradient.data<double>()[i] : 0;
    deviation.add(difference(evaluate, x, {&one, 1}, options.step), gradient,
                  varied.name + "[" + std::to_string(i) + "]");
  }
  return deviation;
}

void normalise(std::span<double> d) {
  const double length = std::sqrt(std::inner_product(d.begin(), d.end(), d.begin(), 0.0));
  for (double& x : d) x /= length > 0 ? length : 1;
}

// Along the gradient the derivative is far above the rounding of f; the random direction finds what the gradient lacks.
Deviation over_directions(const Varied& varied, const std::function<double()>& evaluate,
                          const GradcheckOptions& options, Rng& rng) {
  Deviation deviation;
  const std::vector<double> gradient =
      varied.gradient ? varied.gradient.to_doubles() : std::vector<double>(static_cast<size_t>(varied.numbers.size()));
  for (int64_t n = 0; n < options.directions; ++n) {
    std::vector<double> along = gradient, d(gradient.size());
    for (double& x : along) x *= static_cast<double>(rng.uniform(0.5f, 1.5f));
    for (double& x : d) x = static_cast<double>(rng.normal());
    normalise(along);
    normalise(d);
    for (size_t i = 0; i < d.size(); ++i) d[i] += along[i];
    normalise(d);
    deviation.add(difference(evaluate, varied.numbers.span<double>(), d, options.step),
                  std::inner_product(d.begin(), d.end(), gradient.begin(), 0.0), varied.name);
  }
  return deviation;
}

GradcheckResult compare(const std::vector<Varied>& all, const std::function<double()>& evaluate,
                        const GradcheckOptions& options) {
  GradcheckResult result;
  Rng rng(options.seed, 78);
  std::vector<Deviation> deviations;
  for (const Varied& varied : all) {
    deviations.push_back((options.directions ? over_directions : over_elements)(varied, evaluate, options, rng));
    result.largest = std::max(result.largest, deviations.back().largest);
  }
  for (size_t n = 0; n < all.size(); ++n) {
    const double measure = std::max(deviations[n].largest, result.largest / 1000);
    const double relative = measure > 0 ? deviations[n].error / measure : deviations[n].error;
    if (relative > result.error) {
      result.error = relative;
      result.where = deviations[n].where;
    }
  }
  return result;
}

void check_double(const std::string& name, const Tensor& numbers) {
  if (numbers && numbers.dtype() == DType::f64) return;
  throw Error("gradcheck: " + name + " is " + (numbers ? std::string("in ") + name_of(numbers.dtype()) : "empty") +
              ", expected f64");
}

}  // namespace

GradcheckResult gradcheck(const std::function<Var(Context&, std::span<const Var>)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) check_double("input " + std::to_string(i), inputs[i]);
  Parallel parallel(1);
  Workspace workspace;
  std::vector<Varied> all;
  Tensor weights;
  {
    Tape tape;
    Context context{parallel, workspace, &tape};
    std::vector<Var> leaves;
    leaves.reserve(inputs.size());
    for (const Tensor& input : inputs) leaves.push_back(tape.leaf(input));
    const Var output = f(context, leaves);
    check_double("the output", output.value());
    weights = combination(output.shape(), options.seed);
    tape.backward(output, context, weights);
    for (size_t i = 0; i < inputs.size(); ++i) {
      all.push_back({"input " + std::to_string(i), inputs[i], tape.gradient(leaves[i])});
    }
  }
  Context context{parallel, workspace};
  const std::vector<Var> constants(inputs.begin(), inputs.end());
  return compare(
      all, [&] { return combine(f(context, constants).value(), weights); }, options);
}

GradcheckResult gradcheck(const std::function<Var(Context&)>& f, const ParameterStore& parameters,
                          const GradcheckOptions& options) {
  check_double("the parameter store", parameters.values());
  Parallel parallel(1);
  Workspace workspace;
  parameters.clear_gradients();
  Tensor weights;
  {
    Tape tape;
    Context context{parallel, workspace, &tape};
    const Var output = f(context);
    check_double("the output", output.value());
    weights = combination(output.shape(), options.seed);
    tape.backward(output, context, weights);
  }
  std::vector<Varied> all;
  for (const auto& entry : parameters.entries()) all.push_back({entry.name, entry.value, entry.gradient.clone()});
  Context context{parallel, workspace};
  return compare(
      all, [&] { return combine(f(context).value(), weights); }, options);
}

}  // namespace heed
