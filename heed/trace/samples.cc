// SPDX-License-Identifier: Apache-2.0
// Writes a trace of every family into a folder, short and long: what the schema is tested with, and what the fuzz
// target begins from. trace_samples <folder>
#include <cstdio>

#include "heed/base/error.h"
#include "heed/trace/effects.h"
#include "heed/trace/record.h"
#include "heed/trace/testing.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

Trace sample(const testing::Family& family, bool is_long) {
  constexpr uint64_t kSeed = 1;  // fixed seed: the same files each time
  const decode::Engine engine(testing::text_model(family.options, kSeed));
  RecordOptions options{.search = {.beam = 2, .nbest = 2, .max_length = 4}};
  if (is_long) {
    const bool blocks = family.options.is<models::SelfAttentiveOptions>();
    const bool language = engine.text_model().task() == models::Task::language;
    options.recorder = {.full = 6, .map = 4, .top = 3};
    if (!family.options.is<models::RnnSeq2SeqOptions>()) {
      options.recorder.tiles = {blocks ? "blocks.0.self.0" : language ? "decoder.0.self.1" : "encoder.0.self.1"};
    }
  }
  Trace it = record(engine, is_long ? "a b c d e a b c d e, a b" : "a Gato c, e", options);
  if (!is_long) add_effects(it, engine, {.measured = 1, .integrated = 2, .rollout = true});
  return it;
}

}  // namespace
}  // namespace heed::trace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("trace_samples: expected a folder\n", stderr);
    return 2;
  }
  try {
    for (const auto& family : heed::trace::testing::families()) {
      for (const bool is_long : {false, true}) {
        const std::string path = std::string(argv[1]) + "/" + family.name + (is_long ? "-long" : "") + ".json";
        heed::trace::save(path, heed::trace::sample(family, is_long));
      }
    }
  } catch (const heed::Error& error) {
    std::fprintf(stderr, "trace_samples: %s\n", error.what());
    return 1;
  }
}
