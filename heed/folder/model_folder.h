// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model folder: what belongs to it, under which names, and by which rules it is opened and saved. Nothing else in
// heed knows its file names.
//
//   config.json, model.safetensors   the model; for inference alone where config.json says "weights": "int8"
//   tokenizer                        how text becomes tokens; of the source, where the target has one of its own
//   target_tokenizer                 of the target, where it has
//   tags                             of a tagger: its tags
//   shortlist.safetensors            of a model that translates, where one was made: data/shortlist.h
//   README.md                        the card: data, options, scores
//   train.json                       the options of the training run, and what it needs to go on:
//   checkpoint.safetensors, snapshots/, log.jsonl, curve.html
//   train.lock                       only while a run writes to the folder (lock.h)
//
// Every file is there whole or not at all, and a regular one. A folder without tokenizers works over token ids.
#include <memory>
#include <string>

#include "heed/base/export.h"
#include "heed/data/shortlist.h"
#include "heed/data/text_model.h"
#include "heed/io/config.h"
#include "heed/models/model.h"

namespace heed::folder {

// The paths of a folder's files, whether they exist or not.
class HEED_API Layout {
 public:
  explicit Layout(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string config() const { return file("config.json"); }
  std::string parameters() const { return file("model.safetensors"); }
  std::string tokenizer() const { return file("tokenizer"); }
  std::string target_tokenizer() const { return file("target_tokenizer"); }
  std::string tags() const { return file("tags"); }
  std::string shortlist() const { return file("shortlist.safetensors"); }
  std::string card() const { return file("README.md"); }
  std::string training() const { return file("train.json"); }
  std::string checkpoint() const { return file("checkpoint.safetensors"); }
  std::string snapshots() const { return file("snapshots"); }
  std::string log() const { return file("log.jsonl"); }
  std::string curve() const { return file("curve.html"); }
  std::string lock() const { return file("train.lock"); }

 private:
  std::string file(const char* name) const;
  std::string folder_;
};

struct OpenOptions {
  DType dtype{DType::f32};  // to compute in: f32 or f64
  // That the matrices of linear layers are stored in: bf16, f16, i8; or f32: as the folder has them, f32 or i8.
  DType weights{DType::f32};
  int threads{1};   // to prepare them with
  bool pack{true};  // false: slower, but what runs can be differentiated by what comes in (analysis)
};

// A model to be used, with its tokenizers, where the folder has them: no gradients of parameters, and weights
// packed once for all that will read them (Model::pack). Throws Error where something is missing or broken, or the
// parts do not belong together.
HEED_API data::TextModel open(const std::string& folder, const OpenOptions& = {});
// What config.json says.
HEED_API models::ModelOptions open_model_options(const std::string& folder);
// The same of a model to train, after it was compared with the shapes in model.safetensors: to be asked before memory
// is taken for it. Throws Error where the weights are in int8, too.
HEED_API models::ModelOptions checked_model_options(const std::string& folder);
// The model alone. With gradients it can be trained on.
HEED_API std::unique_ptr<models::Model> open_model(const std::string& folder, DType = DType::f32,
                                                   bool gradients = false);
HEED_API data::Tokenizers open_tokenizers(const std::string& folder, models::Task);

// The folder is made if it is missing; other files in it are left alone.
HEED_API void save(const std::string& folder, const models::Model&, const data::Tokenizers& = {});
// The folder `from` with the matrices of linear layers in int8, as OpenOptions{.weights = DType::i8} rounds them: what
// opens it gets the same model. Tokenizers, shortlist and card come along. Throws Error where `to` is `from`.
HEED_API void save_int8(const std::string& from, const std::string& to);
HEED_API void save_tokenizers(const std::string& folder, const data::Tokenizers&, models::Task);
HEED_API void save_card(const std::string& folder, const std::string& markdown);

// Of a model that was opened from the folder. Throws Error where there is none, or it is broken or another model's.
HEED_API data::Shortlist open_shortlist(const std::string& folder, const data::TextModel&);
HEED_API bool has_shortlist(const std::string& folder);
HEED_API void save_shortlist(const std::string& folder, const data::Shortlist&);

// The options of the training run, whatever their type. False where the folder has none.
HEED_API bool has_training(const std::string& folder);
template <Described T>
void save_training(const std::string& folder, const T& options) {
  io::write_config(Layout(folder).training(), options);
}
template <Described T>
bool read_training(const std::string& folder, T& options) {
  if (!has_training(folder)) return false;
  io::read_config(Layout(folder).training(), options);
  return true;
}

// Makes the folder; throws Error where that cannot be.
HEED_API void create(const std::string& folder);
// Files that a killed process was writing: they will never get their names.
HEED_API void remove_unfinished(const std::string& folder);

}  // namespace heed::folder
