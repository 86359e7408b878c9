// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint: one safetensors file with the values of all parameters, what the optimizer remembers, and the place in
// the data and in the random stream, so that a run goes on to the same bits.
#include <cstdint>
#include <map>
#include <string>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/train/optimizer.h"

namespace heed::train {

// How far a run has come.
struct TrainingPlace {
  int64_t step = 0, epoch = 0, batch = 0;
  uint64_t random = 0;  // position in the stream of dropout
};

// The file is there whole or not at all. `notes` are the caller's own.
HEED_API void save_checkpoint(const std::string& path, const ParameterStore&, const Optimizer&, const TrainingPlace&,
                              const std::map<std::string, std::string>& notes);
// Gives the notes back. Throws Error where the file is broken, or is one of another model or another optimizer; nothing
// has been changed then.
HEED_API std::map<std::string, std::string> load_checkpoint(const std::string& path, const ParameterStore&,
                                                            const Optimizer&, TrainingPlace&);

}  // namespace heed::train
