#pragma once
// The models that heed train makes, by name.
#include <span>
#include <string>

#include "heed/models/model.h"

namespace heed::train {

struct Preset {
  const char* name;
  models::Task task;
  const char* what;  // in a few words
};

std::span<const Preset> presets();
// Throws Error, with the one that may have been meant.
const Preset& preset_named(const std::string& name);
std::string preset_names();  // "transformer-tiny, transformer-small, ... or tagger"

// Tokens of the source, and those of the target or the tags, where they are others than the source's.
struct Vocabularies {
  int64_t source = 1, tags = 1;
};
// dropout below 0: the preset's.
models::ModelOptions model_options(const Preset&, const Vocabularies&, double dropout);

}  // namespace heed::train
