// SPDX-License-Identifier: Apache-2.0
#include "heed/train/ranks.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/io/config.h"
#include "heed/kernels/attention/targets.h"
#include "heed/train/run_options.h"

namespace heed::train {
namespace {

constexpr std::array<std::string_view, 9> kFiles{
    "data", "source", "target", "dev", "dev_source", "dev_target", "init", "tokenizer_model", "target_tokenizer_model"};

std::string hash_of(std::span<const std::byte> bytes, uint64_t hash = 0xCBF29CE484222325u) {  // FNV-1a
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3u;
  return std::to_string(hash);
}

// Two tokenizers would make other batches of the same text.
std::string hash_of(const data::Batch& batch) {
  return hash_of(std::as_bytes(std::span(batch.source))) + " " + hash_of(std::as_bytes(std::span(batch.target_out)));
}

}  // namespace

RunOptions options_for_ranks(const RunOptions& given, const dist::Communicator& communicator, Listener& listener) {
  if (communicator.size() == 1) return given;
  for (const std::string* path :
       {&given.data, &given.source, &given.target, &given.dev, &given.dev_source, &given.dev_target}) {
    if (text::is_standard_input(*path)) {
      throw Error("train: standard input was named with " + std::to_string(communicator.size()) +
                  " ranks, expected files that each of them can read");
    }
  }
  RunOptions options = given;
  if (options.train.sum_order == SumOrder::sequence) options.train.sum_order = SumOrder::tree;
  if (options.train.accumulate < communicator.size()) {
    throw Error("train: accumulate is " + std::to_string(options.train.accumulate) + " with " +
                std::to_string(communicator.size()) + " ranks, expected a batch for each of them, or more");
  }
  listener.told(std::to_string(communicator.size()) + " ranks, " +
                counted(options.train.accumulate, "batch", "batches") + " a step" +
                (options.train.sum_order == SumOrder::tree ? "; the result is that of any number of ranks" : ""));
  return options;
}

std::vector<dist::Fact> facts_of_run(const RunOptions& options, const models::ModelOptions& model,
                                     const std::map<std::string, std::string>& data_ids,
                                     const data::BatchSource& batches) {
  std::vector<dist::Fact> facts;
  for (const OptionText& one : texts_of(options)) {
    if (std::ranges::find(kFiles, one.path) == kFiles.end()) facts.push_back({one.name(), one.text});
  }
  for (const auto& [name, id] : data_ids) facts.push_back({"what " + name + " has", id});
  facts.push_back({"the model", io::to_json(model)});
  facts.push_back({"the first batch", hash_of(batches.at(0, 0))});
  facts.push_back({"the instruction set", kernels::simd_target()});
  return facts;
}

std::vector<dist::Fact> facts_of_parameters(const models::Model& model, int64_t steps_done) {
  const std::span<const float> values = model.parameters().values().span<const float>();
  return {{"the step", std::to_string(steps_done)}, {"the hash of the parameters", hash_of(std::as_bytes(values))}};
}

}  // namespace heed::train
