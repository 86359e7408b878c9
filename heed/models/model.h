#pragma once
// A model that is chosen at run time: what training and decoding need of any sequence-to-sequence model or language
// model, and the folder it is kept in (config.json, model.safetensors; tokenizers stand beside, see text/).
#include <memory>
#include <string>

#include "heed/autograd/parameter.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/rnn_seq2seq.h"
#include "heed/models/self_attentive.h"
#include "heed/models/transformer.h"
#include "heed/nn/pass.h"
#include "heed/nn/state.h"

namespace heed::models {

enum class Family : uint8_t { transformer, rnn_seq2seq, self_attentive };

constexpr auto enum_names(Family) {
  return std::to_array<EnumName<Family>>({{"transformer", Family::transformer},
                                          {"rnn_seq2seq", Family::rnn_seq2seq},
                                          {"self_attentive", Family::self_attentive}});
}

// What a model's logits are of: the next token of a target, or of a text; each token of the source; the whole source.
enum class Task : uint8_t { translate, language, tag, classify };

// What config.json holds: the family, and its options alone.
struct ModelOptions {
  Family family{Family::transformer};
  TransformerOptions transformer{};
  RnnSeq2SeqOptions rnn_seq2seq{};
  SelfAttentiveOptions self_attentive{};

  static void describe(ModelOptions& o, auto&& field) {
    field("family", o.family, "which kind of model");
    if (o.family == Family::transformer) field("transformer", o.transformer, "options of a Transformer");
    if (o.family == Family::rnn_seq2seq) {
      field("rnn_seq2seq", o.rnn_seq2seq, "options of a recurrent encoder and decoder");
    }
    if (o.family == Family::self_attentive) {
      field("self_attentive", o.self_attentive, "options of layers whose states attend to each other");
    }
  }
};

class HEED_API Model {
 public:
  virtual ~Model() = default;

  const ModelOptions& options() const { return options_; }
  ParameterStore& parameters() { return *parameters_; }
  const ParameterStore& parameters() const { return *parameters_; }

  virtual Task task() const = 0;
  // Whether the target looks at the source: a recurrent model may do without.
  virtual bool has_cross_attention() const { return task() == Task::translate; }
  // Logits [B,T,V] of what comes after each prefix of the target. A language model has no source. A tagger's are
  // [B,S,tags] of the tokens of the source, and those of a classifier [B,1,classes]; neither has a target.
  virtual Var logits(nn::Pass&, const Tokens& source, const Tokens& target) const = 0;
  // Token by token; throws Error where there is no target.
  virtual nn::State begin(nn::Pass&, const Tokens& source) const = 0;
  virtual Var step(nn::Pass&, const Tensor& ids, nn::State&) const = 0;
  virtual int64_t vocabulary() const = 0;
  // The longest source or target it can take.
  virtual int64_t max_length() const = 0;

 protected:
  ModelOptions options_;
  std::unique_ptr<ParameterStore> parameters_;
};

// Random parameters; throws Error for options that do not fit each other.
HEED_API std::unique_ptr<Model> make_model(const ModelOptions&, uint64_t seed, DType = DType::f32);

// Both files are there whole or not at all; the folder is made if it is missing.
HEED_API void save_model(const Model&, const std::string& folder);
// Throws Error where a file is missing or broken, or a tensor is missing, left over or of another shape.
HEED_API std::unique_ptr<Model> load_model(const std::string& folder);
// The parameters alone, from a safetensors file.
HEED_API void load_parameters(const std::string& path, const ParameterStore&);
HEED_API void save_parameters(const ParameterStore&, const std::string& path);

}  // namespace heed::models
