// SPDX-License-Identifier: Apache-2.0
#include "heed/io/config.h"

#include <array>
#include <string>

#include "fuzz/check.h"

namespace heed::fuzz {
namespace {

enum class Norm { pre, post };
constexpr auto enum_names(Norm) { return std::to_array<EnumName<Norm>>({{"pre", Norm::pre}, {"post", Norm::post}}); }

struct AttentionOptions {
  int64_t heads = 8;
  float dropout = 0.1f;

  static void describe(AttentionOptions& o, auto&& field) {
    field("heads", o.heads, "attention heads", Range::at_least(1));
    field("dropout", o.dropout, "share of weights that is dropped", Range::from_below(0, 1));
  }
};

// A field of every kind.
struct Options {
  int64_t layers = 6;
  AttentionOptions attention = {};
  double rate = 1e-3;
  bool tied = true;
  std::string title = "model";
  Norm norm = Norm::post;

  static void describe(Options& o, auto&& field) {
    field("layers", o.layers, "encoder layers");
    field("attention", o.attention, "each attention layer");
    field("rate", o.rate, "learning rate", Range::above(0));
    field("tied", o.tied, "input and output embeddings are one");
    field("title", o.title, "what the model card is headed with");
    field("norm", o.norm, "where the normalisation stands");
  }
};

void read(std::span<const std::byte> text) {
  Options options, again;
  io::from_json(text_of(text), options, "input");
  check_fields("options", options);
  const std::string written = io::to_json(options);
  io::from_json(written, again, "written");
  require(io::to_json(again) == written, "what is written is read");
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heed::fuzz::try_to_read({reinterpret_cast<const char*>(data), size}, heed::fuzz::read);
  return 0;
}
