// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that have a name: a table of options, in which only the sizes of vocabularies are left open.
//
//   const ModelOptions options = model_options(preset_named("transformer-tiny"), {.source = tokenizer->size()});
#include <span>
#include <string>

#include "heed/base/export.h"
#include "heed/models/options.h"

namespace heed::models {

// A name, the options that it stands for, and the task of such a model.
struct Preset {
  const char* name;
  const char* what;  // in a few words
  ModelOptions options;
  Task task;

  Preset(const char* its_name, const char* its_words, const ModelOptions& its_options)
      : name(its_name), what(its_words), options(its_options), task(task_of(its_options)) {}
};

HEED_API std::span<const Preset> presets();
// Throws Error, with the one that may have been meant.
HEED_API const Preset& preset_named(const std::string& name);
HEED_API std::string preset_names();  // "transformer-tiny, transformer-small, ... or tagger"

struct Vocabularies {
  int64_t source{1};  // tokens of the source, and of the target where it has no vocabulary of its own
  int64_t tags{1};    // of a tagger
  int64_t target{0};  // 0: shared with the source
};
HEED_API void set_vocabularies(ModelOptions&, const Vocabularies&);
HEED_API void set_dropout(ModelOptions&, double dropout);
// dropout below 0: the preset's.
HEED_API ModelOptions model_options(const Preset&, const Vocabularies&, double dropout = -1);

}  // namespace heed::models
