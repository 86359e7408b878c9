// SPDX-License-Identifier: Apache-2.0
#include "cli/open.h"

#include <fmt/format.h>

#include "cli/action.h"
#include "heed/base/error.h"
#include "heed/folder/model_folder.h"

namespace heed::cli {
namespace {

const char* command_for(models::Task task) {
  switch (task) {
    case models::Task::translate:
      return "heed translate";
    case models::Task::language:
      return "heed generate";
    case models::Task::tag:
      return "heed tag";
    case models::Task::classify:
      return "a program of your own";
    case models::Task::encode:
      return "heed embed";
  }
  return "heed info";
}

decode::Engine opened(const std::string& folder, const folder::OpenOptions& options) {
  if (folder.empty()) throw UsageError("heed: --model is missing, expected a folder that heed train made");
  decode::Engine engine(folder::open(folder, options), options.threads);
  engine.text_model().source();  // throws
  return engine;
}

}  // namespace

DType dtype_of(NumberFormat format) {
  return format == NumberFormat::bf16 ? DType::bf16 : format == NumberFormat::f16 ? DType::f16 : DType::f32;
}

DType dtype_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::bf16:
      return DType::bf16;
    case WeightFormat::f16:
      return DType::f16;
    case WeightFormat::int8:
      return DType::i8;
    case WeightFormat::f32:
      break;
  }
  return DType::f32;
}

decode::Engine open_engine(const std::string& folder, int threads, const StorageOptions& storage) {
  return opened(folder, {.weights = dtype_of(storage.weights), .threads = threads});
}

decode::Engine open_for_analysis(const std::string& folder, int threads) {
  return opened(folder, {.threads = threads, .pack = false});
}

decode::Engine open_engine(const std::string& folder, int threads, models::Task task, const StorageOptions& storage) {
  decode::Engine engine = open_engine(folder, threads, storage);
  try {
    engine.text_model().expect(task);
  } catch (const Error& error) {
    throw Error(fmt::format("{}; see {}", error.what(), command_for(engine.text_model().task())));
  }
  return engine;
}

}  // namespace heed::cli
