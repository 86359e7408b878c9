// SPDX-License-Identifier: Apache-2.0
#pragma once
// Patching: the outputs of some heads are taken from another sentence while the model reads this one. 'too tired' is
// read, but one head gives what it gave for 'too wide': what does the model say now?
// The two have the same number of tokens, at least where they are patched.
#include <cstdint>
#include <string>
#include <vector>

#include "heed/analysis/heads.h"
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

// The same question of another sentence, which the model is made to say the same about. Throws Error where it has
// another number of tokens.
HEED_API Question question_of(const Question&, data::TokenPair other);

// What patching does to a target, measured: once the outputs of both sentences are known, one pass for each site.
class HEED_API Patching {
 public:
  // Borrows the questions.
  Patching(const nn::Pass&, const Question& into, const Question& from);

  double own() const { return own_; }      // the target as it is
  double other() const { return other_; }  // that of the other sentence
  // The target with the heads of all these sites patched. Throws Error as Patch does.
  double value(const std::vector<PatchSite>& sites) const;
  // That of each head that can be patched, alone, in the order in which the layers run; of all heads of a layer
  // together, with -1 for the head.
  std::vector<HeadValue> heads() const;
  std::vector<HeadValue> layers() const;

 private:
  nn::Pass pass_;
  const Question& into_;
  HeadOutputs kept_;
  double own_ = 0, other_ = 0;
};

}  // namespace heed::analysis
