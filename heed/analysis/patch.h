// SPDX-License-Identifier: Apache-2.0
#pragma once
// Patching: the outputs of some heads are taken from another sentence while the model reads this one. 'too tired' is
// read, but one head gives what it gave for 'too wide': what does the model say now?
// The two have the same number of tokens, at least where they are patched.
#include <cstdint>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/observer.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// A head of a layer or all of them, for some of the layer's queries or all.
struct PatchSite {
  std::string layer{};               // "encoder.1.self"
  int64_t head = -1;                 // from 0; -1: all
  std::vector<int64_t> positions{};  // of the queries; empty: all
};

// Keeps what the heads of every layer give: [B,T,Hq Dv] each, linear in the length.
class HEED_API HeadOutputs final : public nn::ObserverBeside {
 public:
  explicit HeadOutputs(nn::Observer* other = nullptr) : ObserverBeside(other) {}

  struct Layer {
    std::string path;
    int64_t heads;
    Tensor outputs;
  };

  Var head_outputs(const Context&, const std::string& path, int64_t heads, const Var& outputs) override;
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  std::vector<Layer> layers_;
};

// Gives the heads of `sites` the outputs that were kept. Borrows them.
class HEED_API Patch final : public nn::ObserverBeside {
 public:
  // Throws Error for a layer or head that is not among them; those whose contexts are fed to a recurrent cell are not.
  Patch(std::vector<PatchSite> sites, const HeadOutputs& kept, nn::Observer* other = nullptr);

  // Throws Error where the other sentence has another length.
  Var head_outputs(const Context&, const std::string& path, int64_t heads, const Var& outputs) override;

 private:
  std::vector<PatchSite> sites_;
  const HeadOutputs& kept_;
};

// The target of `into` with the outputs of `from`'s heads at the sites.
HEED_API double patched(const nn::Pass&, const Question& into, const Question& from,
                        const std::vector<PatchSite>& sites);

}  // namespace heed::analysis
