#pragma once
// Pass: what one forward pass needs beside its inputs. With a tape it can go back; in training it draws dropout; an
// observer is told of attention on the way. Layers take it first, and keep nothing of it.
#include <cstdint>
#include <optional>
#include <string_view>

#include "heed/autograd/parameter.h"
#include "heed/autograd/tape.h"
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
  // Caches of keys and values that are made in this pass store this; none: what the pass computes in.
  std::optional<DType> cache_dtype{};

  // A parameter as a value of this pass: its gradient goes where the parameter keeps it.
  Var use(const Parameter& parameter) const {
    if (!parameter.value) return {};
    return tape && parameter.gradient ? tape->leaf(parameter.value, parameter.gradient) : Var(parameter.value);
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
