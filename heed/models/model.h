#pragma once
// A model that is chosen at run time: what training, decoding and embedding need of any family.
// Not here: the families (transformer.h, rnn_seq2seq.h, self_attentive.h), which a program may also use by themselves;
// the folder that a model is kept in (folder/model_folder.h).
#include <cstdint>
#include <memory>
#include <string>

#include "heed/autograd/parameter.h"
#include "heed/base/export.h"
#include "heed/models/options.h"
#include "heed/models/parameter_file.h"
#include "heed/models/stepwise.h"
#include "heed/nn/pass.h"

namespace heed::models {

class HEED_API Model : public Stepwise {
 public:
  const ModelOptions& options() const { return options_; }
  ParameterStore& parameters() { return *parameters_; }
  const ParameterStore& parameters() const { return *parameters_; }

  virtual Task task() const = 0;
  // Whether the target looks at the source: a recurrent model may do without.
  virtual bool has_cross_attention() const { return task() == Task::translate; }
  // Logits [B,T,V] of what comes after each prefix of the target. A language model has no source. A tagger's are
  // [B,S,tags] of the tokens of the source, and those of a classifier [B,1,classes]; neither has a target. Throws Error
  // for Task::encode, which has none.
  virtual Var logits(nn::Pass&, const Tokens& source, const Tokens& target) const = 0;
  // States [B,S,width] of the tokens of a text, which embeddings are made of: the encoder's last ones, before any
  // output projection; those of a language model where there is no encoder.
  virtual Var states(nn::Pass&, const Tokens& text) const = 0;

  virtual int64_t vocabulary() const = 0;                             // of the target, or of the only text
  virtual int64_t source_vocabulary() const { return vocabulary(); }  // the same where it is shared
  virtual int64_t outputs() const { return vocabulary(); }            // numbers in a row of logits; 0: it has none

 protected:
  ModelOptions options_;
  std::unique_ptr<ParameterStore> parameters_;
};

// Random parameters and room for gradients, to be trained; throws Error for options that do not fit each other.
HEED_API std::unique_ptr<Model> make_model(const ModelOptions&, uint64_t seed, DType = DType::f32);
// Parameters that are yet to be loaded: nothing is drawn, and there are no gradients unless they are wanted.
HEED_API std::unique_ptr<Model> make_unfilled_model(const ModelOptions&,
                                                    const ParameterStoreOptions& = {.gradients = false});

}  // namespace heed::models
