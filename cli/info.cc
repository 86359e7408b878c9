// SPDX-License-Identifier: Apache-2.0
#include "cli/info.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/action.h"
#include "cli/output.h"
#include "heed/base/error.h"
#include "heed/folder/model_folder.h"
#include "heed/io/config.h"
#include "heed/io/safetensors.h"
#include "heed/train/run.h"

namespace heed::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(Shows what a model folder holds: the model and its options, its parameters part by part, the tokenizer, and how far
training came. Example:

  heed info model)";

// "encoder.0.self.q.weight" is of the part "encoder.0", "embedding.weight" of "embedding".
std::string part_of(const std::string& name) {
  const size_t first = name.find('.');
  if (first == name.npos) return name;
  const size_t second = name.find('.', first + 1);
  const bool numbered = second != name.npos && name.find_first_not_of("0123456789", first + 1) == second;
  return name.substr(0, numbered ? second : first);
}

Json parameters_of(const ParameterStore& parameters) {
  Json parts = Json::object();
  for (const auto& entry : parameters.entries()) {
    const std::string part = part_of(entry.name);
    parts[part] = parts.value(part, int64_t{0}) + entry.value.size();
  }
  return {{"all", parameters.count()}, {"parts", parts}};
}

Json sizes_of(const std::string& folder) {
  std::map<std::string, int64_t> files;
  int64_t all = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size());
    files[fs::relative(entry.path(), folder).string()] = bytes;
    all += bytes;
  }
  return {{"all", all}, {"files", files}};
}

std::string name_of(text::TokenizerKind kind) {
  for (const auto& one : enum_names(kind)) {
    if (one.value == kind) return std::string(one.name);
  }
  return "?";
}

// What the last checkpoint says; nothing where there is none.
Json training_of(const std::string& folder) {
  const std::string path = folder::Layout(folder).checkpoint();
  train::RunOptions options;
  if (!fs::exists(path) || !folder::read_training(folder, options)) return nullptr;
  const auto notes = io::SafetensorsFile(path).metadata();
  Json json{{"preset", options.preset}, {"data", options.data}, {"dev", options.dev}, {"seed", options.seed}};
  const auto add = [&](const char* name, const char* note) {
    const auto found = notes.find(note);
    if (found != notes.end()) json[name] = Json::parse(found->second, nullptr, false);
  };
  add("steps", "step");
  add("epochs", "epoch");
  add("best_step", "best_step");
  add("dev_loss", "best_loss");
  add("dev_accuracy", "best_accuracy");
  return json;
}

// The leaves of an object, a line each; what is inside another has its name before it.
void print_leaves(const Json& json, const std::string& prefix = "") {
  for (const auto& [name, value] : json.items()) {
    if (value.is_object()) {
      print_leaves(value, prefix + name + ".");
    } else {
      print("  {:<30} {}\n", prefix + name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

void print_info(const std::string& folder, const Json& info) {
  print("{}\n\nmodel\n", folder);
  print_leaves(info["model"]);
  print("\nparameters{:>32}\n", info["parameters"]["all"].get<int64_t>());
  for (const auto& [part, count] : info["parameters"]["parts"].items()) {
    print("  {:<30}{:>10}\n", part, count.get<int64_t>());
  }
  print("\nbytes on disk{:>29}\n", info["bytes"]["all"].get<int64_t>());
  for (const auto& [file, bytes] : info["bytes"]["files"].items()) {
    print("  {:<30}{:>10}\n", file, bytes.get<int64_t>());
  }
  print("\ntokenizer\n");
  if (info["tokenizer"].is_null()) print("  there is none: the model works over token ids\n");
  print_leaves(info["tokenizer"]);
  print("\ntraining\n");
  if (info["training"].is_null()) print("  there is no checkpoint that would tell\n");
  print_leaves(info["training"]);
}

Json tokenizer_of(const text::Tokenizer& tokenizer) {
  return {{"kind", name_of(tokenizer.kind())}, {"tokens", tokenizer.size()}};
}

// Nothing, for a folder that works over ids alone.
Json tokenizers_of(const data::TextModel& model) {
  if (!model.has_tokenizers()) return nullptr;
  Json json = tokenizer_of(model.source());
  const bool tags = model.task() == models::Task::tag;
  if (!model.tokenizers().are_shared()) json[tags ? "tags" : "target"] = tokenizer_of(model.target());
  return json;
}

void show(const std::string& folder, bool json) {
  if (folder.empty()) throw UsageError("heed: the folder is missing, expected one that heed train made");
  const data::TextModel opened = folder::open(folder);
  const Json info{{"model", Json::parse(io::to_json(opened.model().options()))},
                  {"parameters", parameters_of(opened.model().parameters())},
                  {"bytes", sizes_of(folder)},
                  {"tokenizer", tokenizers_of(opened)},
                  {"training", training_of(folder)}};
  if (json) {
    print("{}\n", info.dump(2));
  } else {
    print_info(folder, info);
  }
}

}  // namespace

void add_info(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("info", kHelp);
  auto folder = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  auto named = std::make_shared<std::string>();
  app->add_option("folder", *folder, "Folder of the model")->type_name("DIR");
  app->add_option("--model", *named, "The same, as other commands have it")->type_name("DIR");
  app->add_flag("--json", *json, "One JSON object on standard output");
  app->callback([folder, named, json, &action] {
    action = [folder, named, json] {
      if (!folder->empty() && !named->empty())
        throw UsageError("heed: --model and a folder came, expected one of them");
      show(folder->empty() ? *named : *folder, *json);
    };
  });
}

}  // namespace heed::cli
