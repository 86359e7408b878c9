#pragma once
// A trained model as commands open it: the model and the tokenizer that belongs to it.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/models/model.h"
#include "heed/text/tokenizer.h"
#include "heed/train/run.h"

namespace heed::cli {

struct ModelFolder {
  std::string folder;
  std::unique_ptr<models::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer, tags;  // tags: of a tagger alone
  train::RunOptions trained;  // what it was trained with; the usual options where the folder does not tell

  // The text as ids; throws Error, with `place`, where it is longer than the model can take.
  std::vector<int32_t> encode(const std::string& text, const std::string& place) const;
  // Throws Error, with the command to use instead, where the model does something else.
  void expect(models::Task) const;
};

// `flag` is what was to name the folder. Throws Error where it is not there or broken, or its parts do not belong
// together.
ModelFolder open_model(const std::string& folder, const std::string& flag = "--model");

}  // namespace heed::cli
