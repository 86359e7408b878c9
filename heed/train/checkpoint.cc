// SPDX-License-Identifier: Apache-2.0
#include "heed/train/checkpoint.h"

#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/io/safetensors.h"
#include "heed/io/tensor.h"

namespace heed::train {
namespace {

constexpr const char* kOptimizer = "optimizer";

// The numbers of a checkpoint, and where they belong.
std::vector<Optimizer::Buffer> buffers_of(const ParameterStore& parameters, const Optimizer& optimizer) {
  std::vector<Optimizer::Buffer> all{{"values", parameters.values()}};
  for (Optimizer::Buffer& buffer : optimizer.buffers()) all.push_back(std::move(buffer));
  return all;
}

void check_buffer(const io::SafetensorsFile& file, const std::string& path, const Optimizer::Buffer& to) {
  const io::TensorEntry& from = file.at(to.name);
  if (from.type == io::ElementType::f32 && from.bytes.size() == to.numbers.bytes()) return;
  throw Error(path + ": '" + to.name + "' has " + std::to_string(from.bytes.size()) + " bytes, expected " +
              std::to_string(to.numbers.bytes()) + " as this model has");
}

int64_t number_in(const io::SafetensorsFile& file, const std::string& path, const char* name) {
  const auto found = file.metadata().find(name);
  int64_t value = 0;
  const char* end = found == file.metadata().end() ? nullptr : found->second.data() + found->second.size();
  if (!end || std::from_chars(found->second.data(), end, value).ptr != end || value < 0) {
    throw Error(path + ": metadata '" + name + "' is missing or no number, expected a checkpoint of a training run");
  }
  return value;
}

}  // namespace

void save_checkpoint(const std::string& path, const ParameterStore& parameters, const Optimizer& optimizer,
                     const TrainingPlace& place, const std::map<std::string, std::string>& notes) {
  std::map<std::string, std::string> metadata = notes;
  metadata["step"] = std::to_string(place.step);
  metadata["epoch"] = std::to_string(place.epoch);
  metadata["batch"] = std::to_string(place.batch);
  metadata["random"] = std::to_string(place.random);
  metadata[kOptimizer] = optimizer.name();
  std::vector<io::TensorEntry> entries;
  for (const Optimizer::Buffer& buffer : buffers_of(parameters, optimizer)) {
    entries.push_back(io::entry_of(buffer.name, buffer.numbers));
  }
  io::write_safetensors(path, std::move(entries), metadata);
}

std::map<std::string, std::string> load_checkpoint(const std::string& path, const ParameterStore& parameters,
                                                   const Optimizer& optimizer, TrainingPlace& place) {
  const io::SafetensorsFile file(path);
  const TrainingPlace found{number_in(file, path, "step"), number_in(file, path, "epoch"),
                            number_in(file, path, "batch"), static_cast<uint64_t>(number_in(file, path, "random"))};
  const auto name = file.metadata().find(kOptimizer);  // files of before it was named are AdamW's
  const std::string saved = name == file.metadata().end() ? "adamw" : name->second;
  if (saved != optimizer.name()) {
    throw Error(path + ": is of optimizer '" + saved + "', expected '" + optimizer.name() + "'");
  }
  const std::vector<Optimizer::Buffer> buffers = buffers_of(parameters, optimizer);
  for (const Optimizer::Buffer& buffer : buffers) check_buffer(file, path, buffer);
  for (const Optimizer::Buffer& buffer : buffers) {
    std::memcpy(buffer.numbers.raw(), file.at(buffer.name).bytes.data(), buffer.numbers.bytes());
  }
  place = found;
  return file.metadata();
}

}  // namespace heed::train
