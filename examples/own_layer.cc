// SPDX-License-Identifier: Apache-2.0
// A layer of one's own, with a backward of its own: Snake, an activation for what is periodic (Ziyin et al. 2020),
//
//   y = x + sin(a x)^2 / a          with one a for each column, learned
//
// The op computes its output at once and records its backward function. The gradient check in f64 says whether that is
// right.
#include <cmath>
#include <cstdio>

#include "heed/autograd/gradcheck.h"
#include "heed/nn/layers.h"

namespace {

using namespace heed;

// x [...,E], a [E].
Var snake(const Context& context, const Var& x, const Var& a) {
  const int64_t E = a.shape(0);
  const Tensor y = Tensor::like(x.value());
  with_float("snake", x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T *from = x.value().data<T>(), *rate = a.value().data<T>();
    for (int64_t i = 0; i < y.size(); ++i) {
      const T sine = std::sin(rate[i % E] * from[i]);
      y.data<T>()[i] = from[i] + sine * sine / rate[i % E];
    }
  });
  // Tensors are handles: to keep them copies no numbers.
  return record(context, {x, a}, y, [kept_x = x.value(), kept_a = a.value(), E](const Backward& backward) {
    // dx += dy (1 + sin 2ax),   da += sum dy (x sin(2ax) / a - sin(ax)^2 / a^2)
    const Tensor& dy = backward.of(0);
    const Tensor dx = backward.to(0), da = backward.to(1);  // empty where not wanted
    with_float("snake", dy.dtype(), [&](auto tag) {
      using T = decltype(tag);
      for (int64_t i = 0; i < dy.size(); ++i) {
        const T g = dy.data<T>()[i], value = kept_x.data<T>()[i], rate = kept_a.data<T>()[i % E];
        const T sine = std::sin(rate * value), twice = std::sin(2 * rate * value);
        if (dx) dx.data<T>()[i] += g * (1 + twice);
        if (da) da.data<T>()[i % E] += g * (value * twice - sine * sine / rate) / rate;
      }
    });
  });
}

struct SnakeLayer {
  nn::Linear linear;
  Parameter rate;  // [O]

  SnakeLayer(int64_t in, int64_t out, Rng& rng)
      : linear(in, out, rng), rate{.value = Tensor::full({out}, 1.5), .decay = false} {}
  Var operator()(nn::Pass& pass, const Var& x) const { return snake(pass, linear(pass, x), pass.use(rate)); }
  void visit(auto&& each) { each("linear", linear), each("rate", rate); }
};

}  // namespace

int main() {
  Rng rng(1);
  SnakeLayer layer(5, 3, rng);
  const ParameterStore parameters(layer, DType::f64);
  const Tensor x = nn::normal({2, 4, 5}, 1, rng).converted(DType::f64);
  const GradcheckResult result = gradcheck(
      [&](Context& context) {
        nn::Pass pass{context};
        return layer(pass, x);
      },
      parameters);
  std::printf("largest gradient %.3g, largest error of it %.1e, at %s\n", result.largest, result.error,
              result.where.c_str());
  return result.error <= 1e-7 ? 0 : 1;
}
