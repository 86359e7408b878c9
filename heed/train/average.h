// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parameters at the last few evaluations, on disk, and their mean: often a better model than any one of them.
#include <cstdint>
#include <string>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"

namespace heed::train {

class HEED_API Snapshots {
 public:
  // In `folder`, which is made when the first one comes; `keep` of them, 0: none.
  Snapshots(std::string folder, int64_t keep) : folder_(std::move(folder)), keep_(keep) {}

  void add(int64_t step, const ParameterStore&);
  // Leaves out what a run that was killed wrote after its last checkpoint.
  void cut_after(int64_t step) const;
  int64_t count() const;
  // Sets the parameters to the mean of all that are kept. Throws Error where a file is broken.
  void set_to_mean(const ParameterStore&) const;

 private:
  const std::string folder_;
  const int64_t keep_;
};

}  // namespace heed::train
