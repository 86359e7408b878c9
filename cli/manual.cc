// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/outline.h"
#include "cli/output.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Prints the manual page in roff.

cmake --install puts it where man looks. To read it at once:

  heed man | man -l -)";

// As text: a backslash, a minus sign, and a point or quote that begins a line mean something to roff.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else {
      if (c == '-') result += '\\';
      result += c;
    }
  }
  return result;
}

// Paragraphs are filled; what is indented stays as it is.
void write_help(std::ostream& out, const std::string& help) {
  std::istringstream lines(help);
  bool example = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with("  ");
    if (indented != example && !line.empty()) {
      out << (indented ? ".nf\n" : ".fi\n");
      example = indented;
    }
    if (line.empty()) {
      out << ".PP\n";
    } else {
      out << roff(line) << '\n';
    }
  }
  if (example) out << ".fi\n";
}

void write_flags(std::ostream& out, const CommandOutline& command) {
  for (const FlagOutline& flag : command.flags) {
    out << ".TP\n\\fB" << roff(flag.name) << "\\fR";
    if (!flag.value.empty()) out << " \\fI" << roff(flag.value) << "\\fR";
    out << '\n' << roff(flag.help);
    if (!flag.usual.empty()) out << " [" << roff(flag.usual) << "]";
    out << '\n';
  }
}

std::string page(const std::vector<CommandOutline>& outline) {
  std::ostringstream out;
  out << ".TH HEED 1 \"\" \"heed " HEED_VERSION
         "\"\n.SH NAME\nheed \\- attention for CPUs: train, translate, look inside\n"
      << ".SH SYNOPSIS\n.B heed\n.I command\n[flags]\n.SH DESCRIPTION\n";
  out << "An error is one line that says what was wrong, where, and what was expected. Exit code 2 is a wrong command "
         "line, 1 is anything else that failed.\n.SH COMMANDS\n";
  for (const CommandOutline& command : outline) {
    if (command.path.empty()) continue;
    out << ".SS heed " << roff(command.path) << '\n';
    write_help(out, command.help);
    write_flags(out, command);
  }
  return out.str();
}

}  // namespace

void add_manual(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("man", kHelp);
  app->callback([&heed, &action] { action = [&heed] { write_output(page(outline_of(heed))); }; });
}

}  // namespace heed::cli
