// SPDX-License-Identifier: Apache-2.0
#pragma once
// An observer that records the attention weights of all layers of a role: for sentences, not for long texts.
// Not here: heads that are scaled or switched off (gates.h).
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/nn/observer.h"

namespace heed::analysis {

// Records the weights [B,Hq,T,S] of every layer of a role.
class HEED_API WeightRecorder final : public nn::ObserverBeside {
 public:
  struct Layer {
    std::string path;
    Tensor weights;  // [B,Hq,T,S] in f32, whatever the model runs in; where tokens came one at a time, T of them
  };

  WeightRecorder(nn::AttentionRole role, Parallel& parallel, nn::Observer* other = nullptr)
      : ObserverBeside(other), role_(role), parallel_(parallel) {}

  void attention(const nn::AttentionEvent&) override;
  const std::vector<Layer>& layers() const { return layers_; }  // in the order in which they ran

 private:
  const nn::AttentionRole role_;
  Parallel& parallel_;
  Workspace workspace_;
  std::vector<Layer> layers_;
};

}  // namespace heed::analysis
