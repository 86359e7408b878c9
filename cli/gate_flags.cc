// SPDX-License-Identifier: Apache-2.0
#include "cli/gate_flags.h"

#include <CLI/CLI.hpp>

#include "cli/action.h"
#include "heed/base/error.h"

namespace heed::cli {

void GateFlags::add(CLI::App& app) {
  app.add_option("--gate", texts_,
                 "Scale the output of a head, encoder.0.self.2=0.5, or of all heads of a layer, encoder.0.self=0; 0 "
                 "switches off; may be given several times")
      ->type_name("LAYER.HEAD=FACTOR")
      ->expected(1)
      ->allow_extra_args(false)  // what follows is a file
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void GateFlags::apply(const decode::Engine& engine, decode::CallOptions& call) {
  if (texts_.empty()) return;
  std::vector<analysis::HeadGate> gates;
  for (const std::string& text : texts_) {
    try {
      gates.push_back(analysis::parse_gate(text));
    } catch (const Error& error) {
      throw UsageError(std::string("heed: --gate: ") + error.what());
    }
  }
  decode::InferencePass pass(engine, {});
  try {
    analysis::check_gates(pass, engine.model(), gates);
  } catch (const Error& error) {
    throw Error(std::string("--gate: ") + error.what());
  }
  call.observer = &gates_.emplace(std::move(gates));
}

}  // namespace heed::cli
