#include "heed/folder/model_folder.h"

#include <filesystem>
#include <span>

#include "heed/base/error.h"
#include "heed/base/file.h"

namespace heed::folder {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const text::Tokenizer> load(const std::string& path) { return text::load_tokenizer(path); }

}  // namespace

std::string Layout::file(const char* name) const { return (fs::path(folder_) / name).string(); }

std::unique_ptr<models::Model> open_model(const std::string& folder, DType dtype, bool gradients) {
  const Layout layout(folder);
  if (!fs::is_directory(folder)) {
    throw Error("model folder '" + folder + "' is not there, expected one with config.json and model.safetensors");
  }
  models::ModelOptions options;
  io::read_config(layout.config(), options);
  std::unique_ptr<models::Model> model;
  try {
    model = models::make_unfilled_model(options, {.dtype = dtype, .gradients = gradients});
  } catch (const Error& error) {  // options that do not fit each other
    throw Error(layout.config() + ": " + error.what());
  }
  models::load_parameters(layout.parameters(), model->parameters());
  return model;
}

data::Tokenizers open_tokenizers(const std::string& folder, models::Task task) {
  const Layout layout(folder);
  if (!fs::exists(layout.tokenizer())) return {};
  const auto source = load(layout.tokenizer());
  if (task == models::Task::tag) return {source, load(layout.tags())};
  if (fs::exists(layout.target_tokenizer())) return {source, load(layout.target_tokenizer())};
  return data::Tokenizers::shared(source);
}

data::TextModel open(const std::string& folder, DType dtype) {
  std::shared_ptr<const models::Model> model = open_model(folder, dtype);
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

bool has_training(const std::string& folder) { return fs::exists(Layout(folder).training()); }

void remove_unfinished(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().find(kUnfinished) != std::string::npos) fs::remove(entry.path(), ignored);
  }
}

}  // namespace heed::folder
