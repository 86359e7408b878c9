#pragma once
// Pass: what one forward pass needs beside its inputs. With a tape it can go back; in training it draws dropout; an
// observer is told of attention and of recurrent layers on the way. Layers take it first, and keep nothing of it.
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

// The n-th draw of a pass is the same for the same seed: a pass can be done again, and drops the same.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t position = 0;
};

struct Pass : Context {
  bool training = false;
  RandomStream random{};
  Observer* observer = nullptr;
  // Of the batch, told to the observer. Borrowed; empty: row b is sentence b, node 0.
  std::span<const HypothesisRow> rows{};
  // Caches of keys and values that are made in this pass store this; none: what the pass computes in.
  std::optional<DType> cache_dtype{};

  // A parameter as a value of this pass: its gradient goes where the parameter keeps it.
  Var use(const Parameter& parameter) const {
    if (!parameter.value) return {};
    return tape && parameter.gradient ? tape->leaf(parameter.value, parameter.gradient) : Var(parameter.value);
  }
  // `rows`, of a batch of B. Throws Error where there are not as many.
  std::span<const HypothesisRow> rows_of(int64_t B) const {
    if (rows.empty() || std::ssize(rows) == B) return rows;
    throw Error("pass: rows has " + std::to_string(rows.size()) + " entries, expected " + std::to_string(B) +
                ", one for each row of the batch");
  }
  bool wants_recurrent() const { return observer && observer->wants_recurrent(); }
  // What the observer says of the heads of a layer, in the dtype that it computes in; empty: nothing.
  Tensor head_gate(const std::string& path, int64_t heads, DType dtype) const {
    Tensor gate = observer ? observer->head_gate(path, heads) : Tensor();
    return gate && gate.dtype() != dtype ? gate.converted(dtype) : gate;
  }
  // The next draws, or none at all outside of training.
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
