// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results as JSON, an object a line: what --json of several commands shares.
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "heed/text/tokenizer.h"

namespace heed::cli {

using Json = nlohmann::ordered_json;

// On one line, with its end. Bytes that are no UTF-8, as a file's name may have, are replaced.
inline std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// In place of the result of a line that was skipped.
inline std::string json_error(const std::string& error) { return json_line({{"error", error}}); }

// The tokens themselves: "▁cat".
inline Json json_pieces(const text::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

// A hypothesis of a search: a decode::Translation or Generation.
template <class Hypothesis>
Json json_hypothesis(const Hypothesis& one, const text::Tokenizer& tokenizer) {
  return {{"text", one.text},
          {"score", one.score},
          {"log_probability", one.log_probability},
          {"finished", one.finished},
          {"tokens", json_pieces(tokenizer, one.tokens)}};
}

}  // namespace heed::cli
