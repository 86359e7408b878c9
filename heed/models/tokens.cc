// SPDX-License-Identifier: Apache-2.0
#include "heed/models/tokens.h"

#include <string>

#include "heed/base/error.h"

namespace heed::models {

void check_ids(const std::string& model, const std::string& name, const Tensor& ids) {
  if (!ids) throw Error(model + ": " + name + " is missing, expected token ids");
  if (ids.shape().rank() == 2 && ids.dtype() == DType::i32) return;
  throw Error(model + ": " + name + " has shape " + to_string(ids.shape()) + " in " + name_of(ids.dtype()) +
              ", expected token ids [B, tokens] in i32");
}

}  // namespace heed::models
