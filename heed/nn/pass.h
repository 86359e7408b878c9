// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pass: what one forward pass needs beside its inputs. With a tape it can be differentiated; in training it draws
// dropout; an observer is shown attention and recurrent layers as they run. Layers take it as their first argument, and
// keep nothing of it.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heed/autograd/parameter.h"
#include "heed/autograd/tape.h"
#include "heed/base/error.h"
#include "heed/kernels/attention/dropout.h"
#include "heed/kernels/dropout.h"
#include "heed/nn/observer.h"

namespace heed::nn {

// A seed and the number of draws so far. The n-th draw depends on the seed alone: a pass that is run again drops the
// same elements.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t position = 0;
};

struct Linear;

// A Context, the random stream of dropout, and the observer.
struct Pass : Context {
  bool training = false;
  RandomStream random{};
  Observer* observer = nullptr;
  // The rows of the batch, for the observer. Borrowed; empty: row b is sentence b, node 0.
  std::span<const HypothesisRow> rows{};
  // Takes the place of a decoder's output layer: its rows of some tokens, whose logits alone are then computed.
  // Borrowed; null: all (models::Stepwise::output_subset).
  const Linear* output_subset = nullptr;
  // The dtype of KV caches that are made in this pass; none: the one that the pass computes in.
  std::optional<DType> cache_dtype{};
  bool frozen = false;  // parameters are constants: the tape is for gradients by something else

  // A parameter as a value of this pass: its gradient accumulates in parameter.gradient.
  Var use(const Parameter& parameter) const {
    if (!parameter.value) return {};
    return tape && parameter.gradient && !frozen ? tape->leaf(parameter.value, parameter.gradient)
                                                 : Var(parameter.value);
  }
  // `rows`, checked for a batch of B. Throws Error where there are not as many.
  std::span<const HypothesisRow> rows_of(int64_t B) const {
    if (rows.empty() || std::ssize(rows) == B) return rows;
    throw Error("pass: rows has " + std::to_string(rows.size()) + " entries, expected " + std::to_string(B) +
                ", one for each row of the batch");
  }
  bool wants_recurrent() const { return observer && observer->wants_recurrent(); }
  // The observer's factors for the heads of a layer, in the layer's dtype; empty: none. With a tape they are a leaf,
  // where the observer wants their gradient.
  Var head_gate(const std::string& path, int64_t heads, DType dtype) const {
    if (!observer) return {};
    Tensor gate = observer->head_gate(path, heads);
    if (gate && gate.dtype() != dtype) gate = gate.converted(dtype);
    const Tensor gradient = tape ? observer->head_gate_gradient(path, heads, dtype) : Tensor();
    if (!gradient) return gate;
    return tape->leaf(gate ? gate : Tensor::full({heads}, 1, dtype), gradient);
  }
  // What the observer makes of the heads' outputs, and of embeddings.
  Var head_outputs(const std::string& path, int64_t heads, const Var& outputs) const {
    return observer ? observer->head_outputs(*this, path, heads, outputs) : outputs;
  }
  Var embeddings(TextSide side, const Var& embedded) const {
    return observer ? observer->embeddings(*this, side, embedded) : embedded;
  }
  // Dropout with the next draws; off outside of training.
  kernels::ElementDropout next_dropout(float rate) {
    return training && rate > 0 ? kernels::ElementDropout{rate, random.seed, random.position++}
                                : kernels::ElementDropout{};
  }
  kernels::Dropout next_attention_dropout(float rate) {
    if (!training || rate <= 0) return {};
    // A seed of its own for each call, mixed so that neighbouring positions share nothing.
    const Block4 mixed = philox({static_cast<uint32_t>(random.position), static_cast<uint32_t>(random.position >> 32),
                                 0x61747465u, 0x6e74696fu},
                                random.seed);
    ++random.position;
    return {rate, mixed[0] | uint64_t{mixed[1]} << 32};
  }
};

}  // namespace heed::nn
