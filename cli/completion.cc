// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/outline.h"
#include "cli/output.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Prints a script that lets a shell finish commands, flags and their values.

cmake --install puts them where shells look. By hand:

  heed completion bash > ~/.local/share/bash-completion/completions/heed
  heed completion zsh > ~/.zfunc/_heed          (with fpath+=~/.zfunc before compinit)
  heed completion fish > ~/.config/fish/completions/heed.fish)";

using Outline = std::vector<CommandOutline>;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

// For any of the shells.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::vector<std::string> flag_names(const CommandOutline& command) {
  std::vector<std::string> names;
  for (const FlagOutline& flag : command.flags) {
    if (!flag.positional) names.push_back(flag.name);
  }
  return names;
}

// The command is what of the words so far is one; then flags by command, and values by command and flag.
std::string bash_script(const Outline& outline) {
  std::string commands, words, values;
  for (const CommandOutline& command : outline) {
    if (!command.path.empty()) commands += fmt::format("{}{}", commands.empty() ? "" : "|", in_quotes(command.path));
    words += fmt::format("    {}) commands={} flags={} ;;\n", in_quotes(command.path),
                         in_quotes(joined(command.commands)), in_quotes(joined(flag_names(command))));
    for (const FlagOutline& flag : command.flags) {
      if (flag.positional || flag.value.empty()) continue;
      const std::string choices = joined(flag.choices());
      const std::string reply = !choices.empty()                               ? "-W " + in_quotes(choices)
                                : flag.is_folder()                             ? "-d"
                                : flag.value == "FILE" || flag.value == "TEXT" ? "-f"
                                                                               : "-W ''";
      values += fmt::format("    {}) COMPREPLY=($(compgen {} -- \"$current\")); return ;;\n",
                            in_quotes(command.path + " " + flag.name), reply);
    }
  }
  return fmt::format(R"(# bash completion for heed: made by heed completion bash
_heed() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= commands= flags= word longer
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    longer=${{command:+$command }}$word
    case $longer in
    {}) command=$longer ;;
    esac
  done
  case "$command $previous" in
{}  esac
  case $command in
{}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _heed heed
)",
                     commands, values, words);
}

// A bracket inside of brackets.
std::string for_brackets(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_script(const Outline& outline) {
  std::string cases;
  for (const CommandOutline& command : outline) {
    if (command.path.empty()) continue;
    std::string arguments;
    for (const FlagOutline& flag : command.flags) {
      std::string spec = flag.positional ? "*" : fmt::format("{}[{}]", flag.name, for_brackets(flag.help));
      if (flag.positional || !flag.value.empty()) {
        const std::string choices = joined(flag.choices());
        spec += ":" + flag.name + ":" +
                (!choices.empty()   ? "(" + choices + ")"
                 : flag.is_folder() ? "_files -/"
                                    : "_files");
      }
      arguments += fmt::format(" \\\n        {}", in_quotes(spec));
    }
    if (!command.commands.empty())
      arguments += fmt::format(" \\\n        {}", in_quotes(fmt::format("*:command:({})", joined(command.commands))));
    // What stands inside another comes first in the list of cases: it is the longer one.
    cases = fmt::format("    {0}*) shift {1} words; (( CURRENT -= {1} )); _arguments{2} ;;\n",
                        in_quotes(command.path + " "), 1 + std::count(command.path.begin(), command.path.end(), ' '),
                        arguments) +
            cases;
  }
  std::string commands;
  for (const CommandOutline& command : outline) {
    if (command.path.empty() || command.path.find(' ') != command.path.npos) continue;
    commands += fmt::format("\n      {}", in_quotes(command.path + ":" + summary_of(command.help)));
  }
  return fmt::format(R"(#compdef heed
# zsh completion for heed: made by heed completion zsh
_heed() {{
  local -a commands
  if (( CURRENT == 2 )); then
    commands=({}
    )
    _describe command commands
    return
  fi
  case "$words[2] $words[3] " in
{}  esac
}}
_heed "$@"
)",
                     commands, cases);
}

std::string fish_script(const Outline& outline) {
  std::string script = "# fish completion for heed: made by heed completion fish\ncomplete -c heed -f\n";
  for (const CommandOutline& command : outline) {
    std::string when = "__fish_use_subcommand";
    if (!command.path.empty()) {
      when.clear();
      for (size_t begin = 0; begin < command.path.size();) {
        const size_t end = std::min(command.path.find(' ', begin), command.path.size());
        when += fmt::format("{}__fish_seen_subcommand_from {}", when.empty() ? "" : "; and ",
                            command.path.substr(begin, end - begin));
        begin = end + 1;
      }
    }
    for (const CommandOutline& inside : outline) {
      const std::string prefix = command.path.empty() ? "" : command.path + " ";
      if (inside.path.size() <= prefix.size() || !inside.path.starts_with(prefix)) continue;
      const std::string name = inside.path.substr(prefix.size());
      if (name.find(' ') != name.npos) continue;
      script += fmt::format("complete -c heed -n {} -a {} -d {}\n", in_quotes(when), name,
                            in_quotes(summary_of(inside.help)));
    }
    for (const FlagOutline& flag : command.flags) {
      if (flag.positional) {
        script += fmt::format("complete -c heed -n {} -F\n", in_quotes(when));
        continue;
      }
      const std::string choices = joined(flag.choices());
      const std::string value = flag.value.empty() ? ""
                                : !choices.empty() ? " -xa " + in_quotes(choices)
                                : flag.is_folder() ? " -xa '(__fish_complete_directories)'"
                                                   : " -rF";
      script += fmt::format("complete -c heed -n {} -l {} -d {}{}\n", in_quotes(when), flag.name.substr(2),
                            in_quotes(flag.help), value);
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("completion", kHelp);
  auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "Which shell")->type_name("bash|zsh|fish");
  app->callback([shell, &heed, &action] {
    action = [shell, &heed] {
      const Outline outline = outline_of(heed);
      if (*shell == "bash") return write_output(bash_script(outline));
      if (*shell == "zsh") return write_output(zsh_script(outline));
      if (*shell == "fish") return write_output(fish_script(outline));
      throw UsageError(shell->empty() ? "heed: the shell is missing, expected bash, zsh or fish"
                                      : "heed: the shell is '" + *shell + "', expected bash, zsh or fish");
    };
  });
}

}  // namespace heed::cli
