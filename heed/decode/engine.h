// SPDX-License-Identifier: Apache-2.0
#pragma once
// An opened model and the threads that it runs on: what a Translator, Generator, Tagger, Embedder or Scorer is made of.
// Cheap to copy; several objects may share one, and several threads may call them at the same time. Calls on one
// Engine of several threads take turns where they work in parallel: for calls side by side, give each an Engine of one
// thread over the same model.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/cancel.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/data/groups.h"
#include "heed/data/text_model.h"
#include "heed/nn/pass.h"

namespace heed::decode {

// What every call can be given.
struct CallOptions {
  data::GroupOptions batch{};
  const Cancel* cancel{nullptr};    // the call then throws Cancelled
  nn::Observer* observer{nullptr};  // told of everything that the model does
  // That caches of keys and values are stored in: bf16 and f16 take half the memory; none: what the model computes in.
  std::optional<DType> cache{};
};

// Told of item i as soon as its result is known; items may be finished in any order. Never by two threads at the same
// time, but not always by the calling one.
template <class Result>
using Done = std::function<void(size_t item, const Result&)>;

class HEED_API Engine {
 public:
  // Opens a folder. Threads 0: as many as the machine has.
  explicit Engine(const std::string& folder, int threads = 1);
  explicit Engine(data::TextModel model, int threads = 1);
  Engine(data::TextModel model, std::shared_ptr<Parallel> parallel);
  Engine(data::TextModel model, Parallel& borrowed);

  const data::TextModel& text_model() const { return model_; }
  const models::Model& model() const { return model_.model(); }
  Parallel& parallel() const { return *parallel_; }

  // Ids of each text. Throws Error, with the number of the text, where one is too long or no UTF-8.
  std::vector<std::vector<int32_t>> encode(std::span<const std::string> texts) const;
  // Throws Error, with the number, where one is too long or has an id that the model does not know.
  void check_sources(std::span<const std::vector<int32_t>> sources) const;

 private:
  data::TextModel model_;
  std::shared_ptr<Parallel> parallel_;
};

// A pass of inference, with scratch of its own.
class InferencePass {
 public:
  InferencePass(const Engine& engine, const CallOptions& call) : pass_{{engine.parallel(), workspace_}} {
    pass_.observer = call.observer;
    pass_.cache_dtype = call.cache;
  }
  InferencePass(const InferencePass&) = delete;
  InferencePass& operator=(const InferencePass&) = delete;
  operator nn::Pass&() { return pass_; }  // NOLINT(google-explicit-constructor)

 private:
  Workspace workspace_;
  nn::Pass pass_;
};

// Runs `batch(items)` for groups of items of about the same length, and looks at `cancel` before each.
HEED_API void for_each_group(std::span<const int64_t> lengths, const CallOptions&,
                             const std::function<void(std::span<const size_t> items)>& batch);

HEED_API std::vector<int64_t> lengths_of(std::span<const std::vector<int32_t>> sequences);
// Those of a list that have these numbers.
HEED_API std::vector<std::vector<int32_t>> gathered(std::span<const std::vector<int32_t>> all,
                                                    std::span<const size_t> items);

}  // namespace heed::decode
