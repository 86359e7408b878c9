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

enum class WeightFormat : uint8_t { f32, bf16, f16, int8 };
constexpr auto enum_names(WeightFormat) {
  return std::to_array<EnumName<WeightFormat>>({{"f32", WeightFormat::f32},
                                                {"bf16", WeightFormat::bf16},
                                                {"f16", WeightFormat::f16},
                                                {"int8", WeightFormat::int8}});
}

// What numbers are stored in while a model runs; it computes in f32, and products of int8 weights in integers.
struct StorageOptions {
  WeightFormat weights{WeightFormat::f32};
  NumberFormat cache{NumberFormat::f32};

  static void describe(StorageOptions& o, auto&& field) {
    field("weights", o.weights,
          "what weights are stored in: 16 bits take half the memory, int8 a quarter and is fastest; both round them. A "
          "folder with int8 weights stays so");
    field("cache", o.cache, "what keys and values are stored in");
  }
};

DType dtype_of(NumberFormat format);
DType dtype_of(WeightFormat format);

// A model that works on text. Throws UsageError where no folder is named, Error where it is broken or has no tokenizer.
decode::Engine open_engine(const std::string& folder, int threads, const StorageOptions& = {});
// The same for a model of one task; the message names the command for what the model does.
decode::Engine open_engine(const std::string& folder, int threads, models::Task task, const StorageOptions& = {});

// A model to look into: what runs can be differentiated (folder::OpenOptions::pack).
decode::Engine open_for_analysis(const std::string& folder, int threads);

}  // namespace heed::cli
