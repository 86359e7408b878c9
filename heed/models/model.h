// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model that is chosen at run time: what training, decoding and embedding need of any family.
// Not here: the families (transformer.h, rnn_seq2seq.h, self_attentive.h), which a program may also use by themselves;
// the folder that a model is kept in (folder/model_folder.h).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/models/options.h"
#include "heed/models/parameter_file.h"
#include "heed/models/stepwise.h"
#include "heed/nn/pass.h"

namespace heed::models {

// The interface of every family, with its options and its parameters.
class HEED_API Model : public Stepwise {
 public:
  const ModelOptions& options() const { return options_; }
  ParameterStore& parameters() { return *parameters_; }
  const ParameterStore& parameters() const { return *parameters_; }

  // For inference alone: the matrices of linear layers are put once into the order in which products read them, in
  // f32, bf16, f16 or int8, and their own memory is given back where the store is not flat. In int8, what reads a
  // matrix as it is (a recurrence) then reads it as it was rounded. Gradients, and saving, are then
  // no more. A model in f64 stays as it is. Not while another thread uses it.
  virtual void pack(DType weights, Parallel&) = 0;

  virtual Task task() const = 0;
  // Whether the target attends to the source: a recurrent model may do without.
  virtual bool has_cross_attention() const { return task() == Task::translate; }
  // Logits [B,T,V] of the next token after each prefix of the target (teacher forcing). A language model has no source.
  // A tagger's are [B,S,tags] of the tokens of the source, and those of a classifier [B,1,classes]; neither has a
  // target. Throws Error for Task::encode, which has no logits.
  virtual Var logits(nn::Pass&, const Tokens& source, const Tokens& target) const = 0;
  // Hidden states [B,S,width] of the tokens of a text, for embeddings: those of the encoder's last layer, or of a
  // language model's, before any output projection.
  virtual Var states(nn::Pass&, const Tokens& text) const = 0;

  // Logits [B,T,V] of hidden states after any layer that predicts (nn::HiddenEvent), as if it were the last. Throws
  // Error where layers have no states of one width: for all but Transformers.
  virtual Var readout(nn::Pass&, const Var& states) const = 0;

  virtual int64_t vocabulary() const = 0;                             // of the target, or of the only text
  virtual int64_t source_vocabulary() const { return vocabulary(); }  // the same where it is shared
  virtual int64_t outputs() const { return vocabulary(); }            // width of the logits; 0: it has none
  // The parameters that are matrices of linear layers: what pack() stores in another way. Not tables of embeddings.
  virtual std::vector<std::string> matrices() const = 0;

 protected:
  ModelOptions options_;
  std::unique_ptr<ParameterStore> parameters_;
};

// Random parameters and room for gradients, to be trained; throws Error for options that do not fit each other.
HEED_API std::unique_ptr<Model> make_model(const ModelOptions&, uint64_t seed, DType = DType::f32);
// The parameters that a model of these options has, before any memory is taken for them. Throws as make_model does.
HEED_API std::vector<ParameterShape> parameter_shapes(const ModelOptions&);
// Parameters that are yet to be loaded: nothing is drawn, and there are no gradients unless they are wanted.
HEED_API std::unique_ptr<Model> make_unfilled_model(const ModelOptions&,
                                                    const ParameterStoreOptions& = {.gradients = false});

}  // namespace heed::models
