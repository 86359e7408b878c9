// SPDX-License-Identifier: Apache-2.0
#include "cli/outline.h"

#include <CLI/CLI.hpp>

namespace heed::cli {
namespace {

FlagOutline outline_of(const CLI::Option& option) {
  FlagOutline flag{
      .name = option.get_positional() ? option.get_name(true, false) : "--" + option.get_lnames().front(),
      .value = option.get_items_expected_max() == 0 || option.get_type_size() == 0 ? "" : option.get_type_name(),
      .help = option.get_description(),
      .usual = option.get_default_str(),
      .positional = option.get_positional()};
  if (flag.usual == "\"\"" || flag.value.empty()) flag.usual.clear();
  return flag;
}

void add_commands(const CLI::App& app, const std::string& path, std::vector<CommandOutline>& all) {
  CommandOutline outline{.path = path, .help = app.get_description(), .flags = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || !option->get_lnames().empty()) outline.flags.push_back(outline_of(*option));
  }
  const auto inside = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : inside) outline.commands.push_back(command->get_name());
  all.push_back(std::move(outline));
  for (const CLI::App* command : inside) {
    add_commands(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), all);
  }
}

}  // namespace

std::vector<std::string> FlagOutline::choices() const {
  std::vector<std::string> words;
  if (value.find('|') == value.npos) return words;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find('|', begin), value.size());
    words.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string summary_of(const std::string& help) {
  std::string line;
  for (const char c : help.substr(0, help.find("\n\n"))) line += c == '\n' ? ' ' : c;
  const size_t end = std::min(line.find(". "), line.find(": "));
  if (end != line.npos) line.resize(end);
  while (line.ends_with('.')) line.pop_back();
  return line;
}

std::vector<CommandOutline> outline_of(const CLI::App& heed) {
  std::vector<CommandOutline> all;
  add_commands(heed, "", all);
  return all;
}

}  // namespace heed::cli
