// SPDX-License-Identifier: Apache-2.0
#include "heed/models/model.h"

#include <numeric>

#include "heed/base/allocator.h"
#include "heed/base/error.h"

namespace heed::models {
namespace {

constexpr const char* kLayersAlike = "layers of one width that all lead to the output, as a Transformer has";

// A Model of any family: Net is the family's class, made from its own options.
template <class Net, class Options>
class ModelOf : public Model {
 public:
  ModelOf(const Options& own, nn::Init init, const ParameterStoreOptions& store) : net_(own, init) {
    options_ = own;
    parameters_ = std::make_unique<ParameterStore>(net_, store);
  }
  void pack(DType weights, Parallel& parallel) override {
    visit_layers<nn::Linear>(net_, [&](nn::Linear& layer) {
      layer.pack(weights, parallel);
      // Recurrences read some of their matrices as they are.
      if (layer.packed && !parameters_->values() && std::is_same_v<Net, Transformer>) {
        parameters_->release(layer.weight);
        release_cached_memory();
      } else if (layer.packed && weights == DType::i8) {
        round_to(layer, parallel);
      }
    });
    visit_layers<nn::Embedding>(net_, [&](nn::Embedding& table) { table.pack(weights, parallel); });
  }
  Task task() const override { return task_of(options_); }
  int64_t vocabulary() const override { return own().vocabulary; }
  int64_t max_length() const override { return own().max_length; }
  std::vector<std::string> matrices() const override {
    std::vector<std::string> names;
    visit_layers<nn::Linear>(const_cast<Net&>(net_), [&](nn::Linear& layer) {  // visit() is one for reading and writing
      for (const ParameterStore::Entry& entry : parameters_->entries()) {
        if (entry.value && layer.weight.value && entry.value.raw() == layer.weight.value.raw()) {
          names.push_back(entry.name);
        }
      }
    });
    return names;
  }

 protected:
  const Options& own() const { return net_.options(); }
  [[noreturn]] void fail(const std::string& call, const std::string& expected) const {
    throw Error(options_.family_name() + ": " + call + " was called, expected a model with " + expected);
  }

  Net net_;

 private:
  // The weight becomes what its packing has rounded it to.
  static void round_to(nn::Linear& layer, Parallel& parallel) {
    std::vector<int32_t> all(static_cast<size_t>(layer.weight.value.shape(0)));
    std::iota(all.begin(), all.end(), 0);
    kernels::unpack_outputs(*layer.packed, all, layer.weight.value.view<float, 2>(), parallel);
  }
};

class TransformerModel final : public ModelOf<Transformer, TransformerOptions> {
 public:
  using ModelOf::ModelOf;

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens& target) const override {
    if (task() == Task::encode) fail("logits", "outputs");
    if (task() == Task::tag) return net_.tag(pass, source);
    const bool encodes = task() == Task::translate;
    return net_.decode(pass, target, encodes ? net_.encode(pass, source) : Var(), source);
  }
  Var states(nn::Pass& pass, const Tokens& text) const override {
    return task() == Task::language ? net_.decoder_states(pass, text, {}, {}) : net_.encode(pass, text);
  }
  Var readout(nn::Pass& pass, const Var& states) const override { return net_.readout(pass, states); }
  nn::State begin(nn::Pass& pass, const Tokens& source) const override { return net_.begin(pass, source); }
  Var step(nn::Pass& pass, const Tensor& ids, nn::State& state) const override { return net_.step(pass, ids, state); }
  nn::Linear output_subset(nn::Pass& pass, std::span<const int32_t> tokens) const override {
    return net_.output_subset(pass, tokens);
  }
  int64_t source_vocabulary() const override {
    return own().source_vocabulary > 0 && task() == Task::translate ? own().source_vocabulary : own().vocabulary;
  }
  int64_t outputs() const override { return own().kind == TransformerKind::encoder ? own().outputs : own().vocabulary; }
};

class RnnSeq2SeqModel final : public ModelOf<RnnSeq2Seq, RnnSeq2SeqOptions> {
 public:
  using ModelOf::ModelOf;

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens& target) const override {
    return net_.decode(pass, target, net_.encode(pass, source), source);
  }
  Var states(nn::Pass& pass, const Tokens& text) const override { return net_.encode(pass, text).states; }
  Var readout(nn::Pass&, const Var&) const override { fail("readout", kLayersAlike); }
  nn::State begin(nn::Pass& pass, const Tokens& source) const override { return net_.begin(pass, source); }
  Var step(nn::Pass& pass, const Tensor& ids, nn::State& state) const override { return net_.step(pass, ids, state); }
  nn::Linear output_subset(nn::Pass& pass, std::span<const int32_t> tokens) const override {
    return net_.output_subset(pass, tokens);
  }
  bool has_cross_attention() const override { return own().query != Query::none; }
  int64_t source_vocabulary() const override {
    return own().source_vocabulary > 0 ? own().source_vocabulary : own().vocabulary;
  }
};

class SelfAttentiveModel final : public ModelOf<SelfAttentive, SelfAttentiveOptions> {
 public:
  using ModelOf::ModelOf;

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens&) const override { return net_.logits(pass, source); }
  Var states(nn::Pass& pass, const Tokens& text) const override { return net_.states(pass, text); }
  Var readout(nn::Pass&, const Var&) const override { fail("readout", kLayersAlike); }
  nn::State begin(nn::Pass&, const Tokens&) const override { fail("begin", "a target"); }
  Var step(nn::Pass&, const Tensor&, nn::State&) const override { fail("step", "a target"); }
  int64_t outputs() const override { return own().outputs; }
};

std::unique_ptr<Model> make(const ModelOptions& options, nn::Init init, const ParameterStoreOptions& store) {
  struct Maker {
    std::unique_ptr<Model> operator()(const TransformerOptions& own) const {
      return std::make_unique<TransformerModel>(own, init, store);
    }
    std::unique_ptr<Model> operator()(const RnnSeq2SeqOptions& own) const {
      return std::make_unique<RnnSeq2SeqModel>(own, init, store);
    }
    std::unique_ptr<Model> operator()(const SelfAttentiveOptions& own) const {
      return std::make_unique<SelfAttentiveModel>(own, init, store);
    }
    nn::Init init;
    const ParameterStoreOptions& store;
  };
  return std::visit(Maker{init, store}, options.family);
}

// Positions are computed in tables that no parameter depends on, unless they are learned: one row is enough.
TransformerOptions without_tables(TransformerOptions o) {
  if (o.positions != Positions::learned) o.max_length = 1;
  return o;
}

template <class Net, class Options>
std::vector<ParameterShape> shapes_of(const Options& own) {
  Net net(own, nn::Init::none());
  std::vector<ParameterShape> shapes;
  visit_parameters(net, [&](const std::string& name, const Parameter& p) { shapes.push_back({name, p.shape()}); });
  return shapes;
}

}  // namespace

std::vector<ParameterShape> parameter_shapes(const ModelOptions& options) {
  struct Lister {
    std::vector<ParameterShape> operator()(const TransformerOptions& own) const {
      check_fields("transformer", own);  // max_length, too
      return shapes_of<Transformer>(without_tables(own));
    }
    std::vector<ParameterShape> operator()(const RnnSeq2SeqOptions& own) const { return shapes_of<RnnSeq2Seq>(own); }
    std::vector<ParameterShape> operator()(const SelfAttentiveOptions& own) const {
      return shapes_of<SelfAttentive>(own);
    }
  };
  return std::visit(Lister{}, options.family);
}

std::unique_ptr<Model> make_model(const ModelOptions& options, uint64_t seed, DType dtype) {
  Rng rng(seed, 0x6d6f64656c);
  return make(options, rng, {.dtype = dtype});
}

std::unique_ptr<Model> make_unfilled_model(const ModelOptions& options, const ParameterStoreOptions& store) {
  return make(options, nn::Init::none(), store);
}

}  // namespace heed::models
