// SPDX-License-Identifier: Apache-2.0
#pragma once
// Heads that are scaled or switched off while a model runs.
//
//   analysis::Gates gates({analysis::parse_gate("encoder.1.self.2=0")});
//   pass.observer = &gates;
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/models/model.h"
#include "heed/nn/observer.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// A factor for the output of one head of a layer, or of all its heads.
struct HeadGate {
  std::string layer;  // "encoder.1.self"
  int64_t head = -1;  // from 0; -1: all
  double factor = 0;  // 0: off
};

// "encoder.1.self.2=0.5", or "encoder.1.self=0" for all heads of the layer. Throws Error.
HEED_API HeadGate parse_gate(const std::string& text);

// A layer, and one of its heads or all.
struct HeadName {
  std::string layer{};  // "encoder.1.self"
  int64_t head = -1;    // from 0; -1: all
};
// "encoder.1.self.2", or "encoder.1.self" for all heads of the layer. Throws Error for a head below 0.
HEED_API HeadName parse_head(const std::string& text);

// Heads with several factors have their product. A head's factor also multiplies what the observer beside it gives.
class HEED_API Gates : public nn::ObserverBeside {
 public:
  explicit Gates(std::vector<HeadGate> gates = {}, nn::Observer* other = nullptr);

  // Throws Error if the layer has no such head.
  Tensor head_gate(const std::string& path, int64_t heads) override;

 private:
  std::vector<HeadGate> gates_;
};

// An attention layer and how many heads it has.
struct AttentionLayer {
  std::string path{};
  int64_t heads = 0;
};
// Those of a model, in the order in which they run: found by a pass over one token.
HEED_API std::vector<AttentionLayer> attention_layers(const nn::Pass&, const models::Model&);
// Throws Error where the model has no such layer or head.
HEED_API void check_gates(const nn::Pass&, const models::Model&, std::span<const HeadGate>);

// Throws Error, with the names that were seen, where `layer` is not among them.
HEED_API void check_layer(const std::string& layer, std::span<const std::string> seen);
// Throws Error where a layer of so many heads does not have this one; -1 is all of them.
HEED_API void check_head(const std::string& layer, int64_t head, int64_t heads);

}  // namespace heed::analysis
