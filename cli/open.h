// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model folder as commands open it: the errors say what a user of the command line should do.
#include <cstdint>
#include <string>

#include "heed/base/describe.h"
#include "heed/decode/engine.h"

namespace heed::cli {

enum class NumberFormat : uint8_t { f32, bf16, f16 };
constexpr auto enum_names(NumberFormat) {
  return std::to_array<EnumName<NumberFormat>>(
      {{"f32", NumberFormat::f32}, {"bf16", NumberFormat::bf16}, {"f16", NumberFormat::f16}});
}

// What numbers are stored in while a model runs; it computes in f32.
struct StorageOptions {
  NumberFormat weights{NumberFormat::f32}, cache{NumberFormat::f32};

  static void describe(StorageOptions& o, auto&& field) {
    field("weights", o.weights, "what weights are stored in; 16 bits take half the memory, and round them");
    field("cache", o.cache, "what keys and values are stored in");
  }
};

DType dtype_of(NumberFormat format);

// A model that works on text. Throws UsageError where no folder is named, Error where it is broken or has no tokenizer.
decode::Engine open_engine(const std::string& folder, int threads, const StorageOptions& = {});
// The same for a model of one task; the message names the command for what the model does.
decode::Engine open_engine(const std::string& folder, int threads, models::Task task, const StorageOptions& = {});

// A model to look into: what runs can be differentiated (folder::OpenOptions::pack).
decode::Engine open_for_analysis(const std::string& folder, int threads);

}  // namespace heed::cli
