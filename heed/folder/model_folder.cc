// SPDX-License-Identifier: Apache-2.0
#include "heed/folder/model_folder.h"

#include <filesystem>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/file.h"

namespace heed::folder {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const text::Tokenizer> load(const std::string& path) {
  check_regular(path);
  return text::load_tokenizer(path);
}

// Whether something has this name: also what cannot be opened, which whoever opens it will say.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// What the matrices of linear layers are in.
enum class Weights : uint8_t { f32, int8 };
constexpr auto enum_names(Weights) {
  return std::to_array<EnumName<Weights>>({{"f32", Weights::f32}, {"int8", Weights::int8}});
}

// config.json. Of a model in f32 it has the options of the model alone.
struct Config {
  models::ModelOptions model{};
  Weights weights{Weights::f32};

  static void describe(Config& o, auto&& field) {
    models::ModelOptions::describe(o.model, field);
    field("weights", o.weights, "what the matrices of linear layers are in");
  }
};

std::vector<models::ParameterShape> shapes_of(const models::ModelOptions& options, const Layout& layout) {
  try {
    return models::parameter_shapes(options);
  } catch (const Error& error) {  // options that do not fit each other
    throw Error(layout.config() + ": " + error.what());
  }
}

}  // namespace

std::string Layout::file(const char* name) const { return (fs::path(folder_) / name).string(); }

namespace {

Config read_config(const std::string& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw Error("model folder '" + folder + "' is not there, expected one with config.json and model.safetensors");
  }
  Config config;
  check_regular(Layout(folder).config());
  io::read_config(Layout(folder).config(), config);
  return config;
}

// What the options say is compared with the file before memory is taken for it.
void check_shapes(const models::ModelOptions& options, const models::ParameterFile& file, const Layout& layout) {
  file.check(shapes_of(options, layout), {.expected_by = layout.config()});
}

std::unique_ptr<models::Model> loaded(const std::string& folder, const ParameterStoreOptions& store) {
  const Layout layout(folder);
  const models::ModelOptions options = store.gradients ? checked_model_options(folder) : open_model_options(folder);
  const models::ParameterFile file(layout.parameters());
  check_shapes(options, file, layout);
  try {
    std::unique_ptr<models::Model> model = models::make_unfilled_model(options, store);
    file.load(model->parameters(), {.expected_by = layout.config()});
    return model;
  } catch (const std::bad_alloc&) {
    throw Error(layout.parameters() + ": out of memory, the model does not fit");
  }
}

}  // namespace

models::ModelOptions open_model_options(const std::string& folder) { return read_config(folder).model; }

models::ModelOptions checked_model_options(const std::string& folder) {
  const Layout layout(folder);
  const auto [options, weights] = read_config(folder);
  if (weights == Weights::int8) {
    throw Error(layout.config() + ": weights are int8, for inference alone; expected f32 to train");
  }
  check_shapes(options, models::ParameterFile(layout.parameters()), layout);
  return options;
}

std::unique_ptr<models::Model> open_model(const std::string& folder, DType dtype, bool gradients) {
  return loaded(folder, {.dtype = dtype, .gradients = gradients});
}

data::Tokenizers open_tokenizers(const std::string& folder, models::Task task) {
  const Layout layout(folder);
  if (!is_there(layout.tokenizer())) return {};
  const auto source = load(layout.tokenizer());
  if (task == models::Task::tag) return {source, load(layout.tags())};
  if (is_there(layout.target_tokenizer())) return {source, load(layout.target_tokenizer())};
  return data::Tokenizers::shared(source);
}

data::TextModel open(const std::string& folder, const OpenOptions& options) {
  const bool pack = options.pack && options.dtype == DType::f32;
  std::unique_ptr<models::Model> model = loaded(folder, {.dtype = options.dtype, .gradients = false, .flat = !pack});
  if (pack) {
    Parallel parallel(options.threads);
    const bool int8 = options.weights == DType::f32 && read_config(folder).weights == Weights::int8;
    model->pack(int8 ? DType::i8 : options.weights, parallel);
  }
  data::Tokenizers tokenizers = open_tokenizers(folder, model->task());
  return data::TextModel(std::move(model), std::move(tokenizers), folder);
}

void create(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw Error("cannot make folder '" + folder + "': " + error.message());
}

void save(const std::string& folder, const models::Model& model, const data::Tokenizers& tokenizers) {
  create(folder);
  if (tokenizers.source) save_tokenizers(folder, tokenizers, model.task());
  models::save_parameters(model.parameters(), Layout(folder).parameters());
  io::write_config(Layout(folder).config(), model.options());
}

void save_int8(const std::string& from, const std::string& to) {
  const std::unique_ptr<models::Model> model = open_model(from);
  const data::Tokenizers tokenizers = open_tokenizers(from, model->task());
  create(to);
  std::error_code ignored;
  if (fs::equivalent(from, to, ignored)) throw Error("folder '" + to + "' is the model's own, expected another one");
  if (tokenizers.source) save_tokenizers(to, tokenizers, model->task());
  const Layout source(from), target(to);
  models::save_parameters(model->parameters(), target.parameters(), model->matrices());
  io::write_config(target.config(), Config{.model = model->options(), .weights = Weights::int8});
  for (const auto& [file, copy] :
       {std::pair(source.shortlist(), target.shortlist()), std::pair(source.card(), target.card())}) {
    if (!is_there(file)) continue;
    check_regular(file);
    write_file_atomically(copy, MappedFile(file).bytes());
  }
}

void save_tokenizers(const std::string& folder, const data::Tokenizers& tokenizers, models::Task task) {
  const Layout layout(folder);
  tokenizers.source->save(layout.tokenizer());
  if (task == models::Task::tag) {
    tokenizers.target->save(layout.tags());
  } else if (!tokenizers.are_shared()) {
    tokenizers.target->save(layout.target_tokenizer());
  } else {
    std::error_code ignored;  // one that stood here before would be taken for this model's
    fs::remove(layout.target_tokenizer(), ignored);
  }
}

void save_card(const std::string& folder, const std::string& markdown) {
  write_file_atomically(Layout(folder).card(), std::as_bytes(std::span(markdown)));
}

data::Shortlist open_shortlist(const std::string& folder, const data::TextModel& model) {
  const std::string path = Layout(folder).shortlist();
  check_regular(path);
  data::Shortlist shortlist = data::Shortlist::read(path);
  shortlist.expect_made_for(model, path);
  return shortlist;
}

bool has_shortlist(const std::string& folder) { return is_there(Layout(folder).shortlist()); }

void save_shortlist(const std::string& folder, const data::Shortlist& shortlist) {
  shortlist.save(Layout(folder).shortlist());
}

bool has_training(const std::string& folder) {
  check_regular(Layout(folder).training());
  return is_there(Layout(folder).training());
}

void remove_unfinished(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().find(kUnfinished) != std::string::npos) fs::remove(entry.path(), ignored);
  }
}

}  // namespace heed::folder
