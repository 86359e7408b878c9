// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pages of web/dist as the build found them (make_shells.cmake writes their bytes into a source), and how data get
// into them.
#include <string>
#include <string_view>

namespace heed::page {

std::string_view trace_shell();   // web/dist/page.html: traces, see heed/trace/page.h
std::string_view report_shell();  // web/dist/plot.html: reports, see heed/page/report.h

// The shell with JSON text at its place for data. '<' is written as an escape: JSON has it in strings alone, so no text
// of a user can end the script that it stands in.
std::string filled(std::string_view shell, std::string_view json);

}  // namespace heed::page
