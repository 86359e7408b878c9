// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two observers of attention: one records the weights of all layers of a role, one switches a head off.
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/nn/observer.h"

namespace heed::analysis {

// Switches one head of one layer off: its output is zero.
class HEED_API HeadSwitch : public nn::Observer {
 public:
  HeadSwitch() = default;  // all heads are on
  // "encoder.0.self.2": head 2 of that layer. Throws Error where there is no number at the end.
  explicit HeadSwitch(const std::string& layer_and_head);

  // Throws Error if the layer has no such head.
  Tensor head_gate(const std::string& path, int64_t heads) override;
  // After a pass: throws Error, with the names of the layers, if there was no such layer.
  void check_found() const;

 private:
  std::string layer_;
  int64_t head_ = -1;
  std::vector<std::string> seen_;
};

// Records the weights [B,Hq,T,S] of every layer of a role: for sentences, not for long texts.
class HEED_API WeightRecorder final : public nn::Observer {
 public:
  struct Layer {
    std::string path;
    Tensor weights;  // [B,Hq,T,S] in f32, whatever the model runs in; where tokens came one at a time, T of them
  };

  // Head gates come from `switched`, such as a HeadSwitch.
  WeightRecorder(nn::AttentionRole role, Parallel& parallel, nn::Observer* switched = nullptr)
      : role_(role), parallel_(parallel), switched_(switched) {}

  void attention(const nn::AttentionEvent&) override;
  Tensor head_gate(const std::string& path, int64_t heads) override {
    return switched_ ? switched_->head_gate(path, heads) : Tensor();
  }
  const std::vector<Layer>& layers() const { return layers_; }  // in the order in which they ran

 private:
  const nn::AttentionRole role_;
  Parallel& parallel_;
  nn::Observer* switched_;
  Workspace workspace_;
  std::vector<Layer> layers_;
};

}  // namespace heed::analysis
