// SPDX-License-Identifier: Apache-2.0
// The rows `encoder` of heed bench layers: one layer of a Transformer's encoder, as a training step runs it.
#include <memory>

#include "bench/layers.h"
#include "heed/models/presets.h"

namespace heed::bench {

namespace {

struct Size {
  int64_t B, T;
  models::TransformerOptions layer;

  // Products alone. Attention's backward counts four of them, as for any layer twice those of forward, though the
  // kernel also makes the scores again.
  double forward_flops() const {
    const double tokens = static_cast<double>(B * T), width = static_cast<double>(layer.width);
    const double linear = 2 * tokens * width * (4 * width + 2 * static_cast<double>(layer.inner));
    return linear + 4 * tokens * static_cast<double>(T) * width;
  }
};

struct EncoderLayer {
  Size n;
  Rng rng{1};
  models::TransformerLayer layer;
  ParameterStore parameters;
  Tensor x, dx, dy;
  Workspace workspace;
  Tape tape;
  nn::RandomStream random{2};

  explicit EncoderLayer(const Size& size) : n(size), layer(n.layer, "encoder.0", false, rng), parameters(layer) {
    x = nn::normal({n.B, n.T, n.layer.width}, 1, rng);
    dy = nn::normal({n.B, n.T, n.layer.width}, 1, rng);
    dx = Tensor::zeros_like(x);
  }
  void run(bool both, Parallel& parallel) {
    nn::Pass pass{{parallel, workspace, both ? &tape : nullptr}};
    pass.training = both;
    pass.random = random;
    const Var y = layer(pass, both ? tape.leaf(x, dx) : Var(x), {});
    random = pass.random;
    if (!both) return;
    tape.backward(y, pass, dy);
    tape.clear();
  }
};

}  // namespace

std::vector<LayerRow> encoder_rows() {
  Size n{16, 64, models::preset_named("transformer-base").options.as<models::TransformerOptions>()};
  n.layer.dropout = 0.1f;
  std::vector<LayerRow> rows;
  for (const bool both : {false, true}) {
    rows.push_back({"encoder",
                    both ? "forward_backward" : "forward",
                    {{"B", n.B}, {"T", n.T}, {"width", n.layer.width}, {"inner", n.layer.inner}},
                    both ? "f32, dropout 0.1" : "f32",
                    [=](Parallel& parallel) {
                      const auto problem = std::make_shared<EncoderLayer>(n);
                      return LayerProblem{.run = [problem, both, &parallel] { problem->run(both, parallel); },
                                          .flops = n.forward_flops() * (both ? 3 : 1)};
                    }});
  }
  return rows;
}

}  // namespace heed::bench
