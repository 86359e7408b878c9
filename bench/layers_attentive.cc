// SPDX-License-Identifier: Apache-2.0
// The row `attentive` of heed bench layers: Bahdanau's decoder, a recurrence that looks at the source before each step.
#include <memory>

#include "bench/layers.h"
#include "heed/base/rng.h"
#include "heed/ops/attentive_recurrence.h"
#include "heed/ops/linear.h"

namespace heed::bench {

namespace {

struct Size {
  int64_t B, T, S, H;  // states, tokens, queries and source of one width

  // Products alone: the cell over token, context and state; query and keys; the context. Of the score, the sum over the
  // width; its tanhs, B T S H of them, are not counted.
  double flops() const {
    const auto b = static_cast<double>(B), t = static_cast<double>(T), s = static_cast<double>(S),
               h = static_cast<double>(H);
    return 2 * b * t * 3 * h * 3 * h + 2 * b * (t + s) * h * h + 4 * b * t * s * h;
  }
};

struct Decoder {
  Size n;
  std::vector<Tensor> values, gradients;
  Tensor dy;
  Workspace workspace;
  Tape tape;

  explicit Decoder(const Size& size) : n(size) {
    Rng rng(1);
    const auto draw = [&](const Shape& shape, float deviation) {
      Tensor drawn = Tensor::uninitialised(shape);
      for (float& x : drawn.span<float>()) x = deviation * rng.normal();
      return drawn;
    };
    const int64_t H = n.H;
    const float w = 0.04f;
    values = {draw({n.B, n.T, H}, 1), draw({n.B, n.S, H}, 1), draw({3 * H, 2 * H}, w), draw({3 * H, H}, w),
              draw({3 * H}, 0.1f),    draw({3 * H}, 0.1f),    draw({H, H}, w),         draw({H}, 0.1f),
              draw({H, H}, w),        draw({1, H}, w)};
    for (const Tensor& value : values) gradients.push_back(Tensor::zeros_like(value));
    dy = draw({n.B, n.T, H}, 1);
  }

  void run(bool both, Parallel& parallel) {
    const Context context{parallel, workspace, both ? &tape : nullptr};
    const auto use = [&](size_t i) { return both ? tape.leaf(values[i], gradients[i]) : Var(values[i]); };
    ops::AttentiveRecurrenceArguments a;
    const Var source = use(1);
    a.recurrence = {.x = use(0), .w_ih = use(2), .w_hh = use(3), .b_ih = use(4), .b_hh = use(5)};
    a.recurrence.options.cell = kernels::Cell::gru;
    a.w_query = use(6), a.b_query = use(7);
    a.keys = ops::linear(context, source, use(8));
    a.values = source;
    a.w = use(9);
    a.attention.scale = 1.0f;
    const Var h = ops::attentive_recurrence(context, a).h;
    if (!both) return;
    tape.backward(h, context, dy);
    tape.clear();
  }
};

}  // namespace

std::vector<LayerRow> attentive_rows() {
  const Size n{32, 32, 32, 512};
  std::vector<LayerRow> rows;
  for (const bool both : {false, true}) {
    rows.push_back({"attentive",
                    both ? "forward_backward" : "forward",
                    {{"B", n.B}, {"T", n.T}, {"S", n.S}, {"H", n.H}},
                    "f32, GRU, additive score",
                    [=](Parallel& parallel) {
                      const auto problem = std::make_shared<Decoder>(n);
                      return LayerProblem{.run = [problem, both, &parallel] { problem->run(both, parallel); },
                                          .flops = n.flops() * (both ? 3 : 1)};
                    }});
  }
  return rows;
}

}  // namespace heed::bench
