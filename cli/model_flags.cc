// SPDX-License-Identifier: Apache-2.0
#include "cli/model_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "cli/action.h"
#include "heed/io/config.h"
#include "heed/models/presets.h"

namespace heed::cli {
namespace {

// Fields that are not for flags: sizes come from the tokenizers, and what the model is for from the preset.
const std::set<std::string, std::less<>> kNotFlags = {"vocabulary", "source_vocabulary", "outputs",   "kind",
                                                      "head",       "dropout",           "max_length"};

// Shows a family's fields to another visitor, each name once: that of the family before those of a struct in it.
class EachOnce final : public FieldVisitor {
 public:
  EachOnce(FieldVisitor& visitor, std::set<std::string, std::less<>>& seen) : visitor_(visitor), seen_(seen) {}
  void field(const FieldInfo& info, int64_t& value) override { pass(info, value); }
  void field(const FieldInfo& info, float& value) override { pass(info, value); }
  void field(const FieldInfo& info, double& value) override { pass(info, value); }
  void field(const FieldInfo& info, bool& value) override { pass(info, value); }
  void field(const FieldInfo& info, std::string& value) override { pass(info, value); }
  void field(const FieldInfo& info, Choice& value) override { pass(info, value); }
  void begin_struct(const FieldInfo&) override { ++depth_; }
  void end_struct() override { --depth_; }

 private:
  void pass(const FieldInfo& info, auto& value) {
    constexpr std::string_view kOfBoth =
        "score";  // of an encoder's blocks, and of the decoder: the flag is the decoder's
    if (kNotFlags.contains(info.name) || (depth_ > 0 && info.name == kOfBoth)) return;
    if (seen_.emplace(info.name).second) visitor_.field(info, value);
  }
  FieldVisitor& visitor_;
  std::set<std::string, std::less<>>& seen_;
  int depth_ = 0;
};

void show(models::ModelOptions& options, FieldVisitor& visitor, std::set<std::string, std::less<>>& seen) {
  EachOnce each(visitor, seen);
  std::visit([&](auto& own) { visit_fields(own, each); }, options.family);
}

std::string flag_named(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

}  // namespace

void ModelFlags::add(CLI::App& app) {
  app.option_defaults()->group("The model");
  app.add_option("--config", config_,
                 "A model of your own: JSON as in a model folder's config.json, in place of a preset")
      ->type_name("FILE");
  std::set<std::string, std::less<>> seen;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string name : option->get_lnames()) {
      std::replace(name.begin(), name.end(), '-', '_');
      seen.insert(name);
    }
  }
  // Options that show all fields of their family.
  std::vector<models::ModelOptions> families = {
      models::TransformerOptions{},
      models::RnnSeq2SeqOptions{.encoder = models::Encoder::self_attentive, .input_feeding = true},
      models::SelfAttentiveOptions{}};
  flags_.add(app, [&](FieldVisitor& visitor) {
    for (models::ModelOptions& family : families) show(family, visitor, seen);
  });
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "The model") option->default_str("");  // it is the preset's
  }
  app.option_defaults()->group("Options");
}

std::vector<std::string> ModelFlags::given() const {
  std::vector<std::string> all = flags_.given();
  if (!config_.empty()) all.insert(all.begin(), "--config");
  return all;
}

void ModelFlags::apply(train::RunOptions& options, const std::vector<std::string>& others, bool resumed) const {
  const std::vector<std::string> own = given();
  const auto came = [&](const char* flag) { return std::find(others.begin(), others.end(), flag) != others.end(); };
  if (resumed && !own.empty()) {
    throw UsageError("heed: " + own.front() + " came with --resume, expected none: the model is as it was");
  }
  if (!options.init.empty()) {
    std::vector<std::string> wrong = own;
    for (const char* flag : {"--preset", "--tokenizer", "--vocabulary", "--lowercase", "--separate-vocabularies",
                             "--tokenizer-model", "--target-tokenizer-model"}) {
      if (came(flag)) wrong.emplace_back(flag);
    }
    if (wrong.empty()) return;
    throw UsageError("heed: " + wrong.front() + " came with --init, expected none: model and tokenizers are those of " +
                     options.init);
  }
  if (!options.tokenizer_model.empty() && !resumed) {
    for (const char* flag : {"--tokenizer", "--vocabulary"}) {
      if (!came(flag)) continue;
      throw UsageError("heed: " + std::string(flag) + " came with --tokenizer-model, expected none: it is that of " +
                       options.tokenizer_model);
    }
  }
  if (own.empty()) return;
  if (!config_.empty() && came("--preset")) throw UsageError("heed: --config and --preset came, expected one of them");
  models::ModelOptions model;
  if (config_.empty()) {
    model = models::preset_named(options.preset).options;
  } else {
    io::read_config(config_, model);
  }
  std::set<std::string, std::less<>> seen;
  flags_.apply([&](FieldVisitor& visitor) { show(model, visitor, seen); });
  for (const std::string& flag : flags_.given()) {
    const bool known =
        std::any_of(seen.begin(), seen.end(), [&](const auto& name) { return flag_named(name) == flag; });
    if (known) continue;
    throw UsageError("heed: " + flag + " is no option of " +
                     (config_.empty() ? "preset " + options.preset : "the model of " + config_) +
                     ", which is of family " + model.family_name());
  }
  options.model = model;
}

}  // namespace heed::cli
