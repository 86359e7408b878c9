// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/engine.h"

#include <utility>

#include "heed/base/error.h"
#include "heed/folder/model_folder.h"

namespace heed::decode {

Engine::Engine(const std::string& folder, int threads) : Engine(folder::open(folder, {.threads = threads}), threads) {}

Engine::Engine(data::TextModel model, int threads) : Engine(std::move(model), std::make_shared<Parallel>(threads)) {}

Engine::Engine(data::TextModel model, std::shared_ptr<Parallel> parallel)
    : model_(std::move(model)), parallel_(std::move(parallel)) {}

Engine::Engine(data::TextModel model, Parallel& borrowed)
    : Engine(std::move(model), std::shared_ptr<Parallel>(std::shared_ptr<void>(), &borrowed)) {}

std::vector<std::vector<int32_t>> Engine::encode(std::span<const std::string> texts) const {
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    try {
      all.push_back(model_.encode(texts[i]));
    } catch (const Error& error) {
      throw Error("sentence " + std::to_string(i) + ": " + error.what());
    }
  }
  return all;
}

void Engine::check_sources(std::span<const std::vector<int32_t>> sources) const {
  const int64_t known = model().source_vocabulary();
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string place = "sentence " + std::to_string(i) + ": ";
    for (const int32_t id : sources[i]) {
      if (id >= 0 && id < known) continue;
      throw Error(place + "an id is " + std::to_string(id) + ", expected 0 to " + std::to_string(known - 1));
    }
    try {
      model_.check_length(std::ssize(sources[i]));
    } catch (const Error& error) {
      throw Error(place + error.what());
    }
  }
}

void for_each_group(std::span<const int64_t> lengths, const CallOptions& call,
                    const std::function<void(std::span<const size_t> items)>& batch) {
  for (const std::vector<size_t>& group : data::group_by_length(lengths, call.batch)) {
    check_cancel(call.cancel);
    batch(group);
  }
}

std::vector<int64_t> lengths_of(std::span<const std::vector<int32_t>> sequences) {
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& one : sequences) lengths.push_back(std::ssize(one));
  return lengths;
}

std::vector<std::vector<int32_t>> gathered(std::span<const std::vector<int32_t>> all, std::span<const size_t> items) {
  std::vector<std::vector<int32_t>> some;
  for (const size_t item : items) some.push_back(all[item]);
  return some;
}

}  // namespace heed::decode
