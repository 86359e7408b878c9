#include "heed/models/model.h"

#include <cstring>
#include <filesystem>

#include "heed/base/error.h"
#include "heed/io/config.h"
#include "heed/io/safetensors.h"

namespace heed::models {
namespace {

// What the families have in common: layers of type Net, made from options of their own.
template <class Net>
class ModelOf : public Model {
 public:
  ModelOf(const ModelOptions& all, const auto& own, uint64_t seed, DType dtype)
      : rng_(seed, 0x6d6f64656c), net_(own, rng_) {
    options_ = all;
    parameters_ = std::make_unique<ParameterStore>(net_, dtype);
  }
  int64_t vocabulary() const override { return net_.options().vocabulary; }
  int64_t max_length() const override { return net_.options().max_length; }

 protected:
  Rng rng_;
  Net net_;
};

class TransformerModel final : public ModelOf<Transformer> {
 public:
  TransformerModel(const ModelOptions& options, uint64_t seed, DType dtype)
      : ModelOf(options, options.transformer, seed, dtype) {}

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens& target) const override {
    if (task() == Task::tag) return net_.encode(pass, source);
    const bool encodes = task() == Task::translate;
    return net_.decode(pass, target, encodes ? net_.encode(pass, source) : Var(), source);
  }
  nn::State begin(nn::Pass& pass, const Tokens& source) const override { return net_.begin(pass, source); }
  Var step(nn::Pass& pass, const Tensor& ids, nn::State& state) const override { return net_.step(pass, ids, state); }
  Task task() const override {
    const TransformerKind kind = net_.options().kind;
    return kind == TransformerKind::encoder_decoder ? Task::translate
           : kind == TransformerKind::decoder       ? Task::language
                                                    : Task::tag;
  }
};

class RnnSeq2SeqModel final : public ModelOf<RnnSeq2Seq> {
 public:
  RnnSeq2SeqModel(const ModelOptions& options, uint64_t seed, DType dtype)
      : ModelOf(options, options.rnn_seq2seq, seed, dtype) {}

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens& target) const override {
    return net_.decode(pass, target, net_.encode(pass, source), source);
  }
  nn::State begin(nn::Pass& pass, const Tokens& source) const override { return net_.begin(pass, source); }
  Var step(nn::Pass& pass, const Tensor& ids, nn::State& state) const override { return net_.step(pass, ids, state); }
  Task task() const override { return Task::translate; }
  bool has_cross_attention() const override { return net_.options().query != Query::none; }
};

class SelfAttentiveModel final : public ModelOf<SelfAttentive> {
 public:
  SelfAttentiveModel(const ModelOptions& options, uint64_t seed, DType dtype)
      : ModelOf(options, options.self_attentive, seed, dtype) {}

  Var logits(nn::Pass& pass, const Tokens& source, const Tokens&) const override { return net_.logits(pass, source); }
  nn::State begin(nn::Pass&, const Tokens&) const override { refuse("begin"); }
  Var step(nn::Pass&, const Tensor&, nn::State&) const override { refuse("step"); }
  Task task() const override { return net_.options().head == SelfAttentiveHead::tags ? Task::tag : Task::classify; }

 private:
  [[noreturn]] static void refuse(const std::string& call) {
    throw Error("self_attentive: " + call + " was called, expected a model with a target");
  }
};

std::string file_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

constexpr const char* kConfig = "config.json";
constexpr const char* kParameters = "model.safetensors";

}  // namespace

std::unique_ptr<Model> make_model(const ModelOptions& options, uint64_t seed, DType dtype) {
  switch (options.family) {
    case Family::transformer:
      return std::make_unique<TransformerModel>(options, seed, dtype);
    case Family::rnn_seq2seq:
      return std::make_unique<RnnSeq2SeqModel>(options, seed, dtype);
    case Family::self_attentive:
      return std::make_unique<SelfAttentiveModel>(options, seed, dtype);
  }
  throw Error("model: unknown family");
}

void save_parameters(const ParameterStore& parameters, const std::string& path) {
  std::vector<io::TensorEntry> entries;
  for (const auto& entry : parameters.entries()) {
    io::Shape shape;
    for (size_t i = 0; i < entry.value.shape().rank(); ++i) shape.push_back(entry.value.shape(static_cast<int>(i)));
    const io::ElementType type = entry.value.dtype() == DType::f64 ? io::ElementType::f64 : io::ElementType::f32;
    entries.push_back({entry.name, type, shape, {entry.value.raw(), entry.value.bytes()}});
  }
  io::write_safetensors(path, std::move(entries), {{"format", "heed"}});
}

void load_parameters(const std::string& path, const ParameterStore& parameters) {
  const io::SafetensorsFile file(path);
  if (file.tensors().size() != parameters.entries().size()) {
    for (const auto& tensor : file.tensors()) {
      if (!parameters.find(tensor.name)) {
        throw Error(path + ": tensor '" + tensor.name + "' is not one of this model's");
      }
    }
  }
  for (const auto& entry : parameters.entries()) {
    const io::TensorEntry& from = file.at(entry.name);
    bool same = from.shape.size() == entry.value.shape().rank();
    for (size_t i = 0; same && i < from.shape.size(); ++i)
      same = from.shape[i] == entry.value.shape(static_cast<int>(i));
    if (!same || from.type != io::ElementType::f32 || entry.value.dtype() != DType::f32) {
      throw Error(path + ": tensor '" + entry.name + "' is " + io::name_of(from.type) + " " +
                  io::to_string(from.shape) + ", expected " + io::name_of(io::ElementType::f32) + " " +
                  to_string(entry.value.shape()));
    }
    std::memcpy(entry.value.raw(), from.bytes.data(), from.bytes.size());
  }
}

void save_model(const Model& model, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error("cannot make folder '" + folder + "': " + error.message());
  save_parameters(model.parameters(), file_in(folder, kParameters));
  io::write_config(file_in(folder, kConfig), model.options());
}

std::unique_ptr<Model> load_model(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error("model folder '" + folder + "' is not there, expected a folder that heed train made");
  }
  ModelOptions options;
  io::read_config(file_in(folder, kConfig), options);
  std::unique_ptr<Model> model;
  try {
    model = make_model(options, 0);
  } catch (const Error& error) {  // options that do not fit each other
    throw Error(file_in(folder, kConfig) + ": " + error.what());
  }
  load_parameters(file_in(folder, kParameters), model->parameters());
  return model;
}

}  // namespace heed::models
