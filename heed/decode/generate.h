// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text, or token ids, from a language model: what comes after a prompt, or after nothing.
//
//   const decode::Generator generator("model");
//   std::puts(generator.generate("The cat", {.search = {.sample = true, .seed = 3}}).text.c_str());
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/decode/constraints.h"
#include "heed/decode/engine.h"
#include "heed/decode/search.h"

namespace heed::decode {

struct GenerateOptions {
  SearchOptions search{};
  Constraints constraints{};  // on every output; of its prefix nothing is taken: that is the prompt
  int64_t first{0};  // number of the first prompt: what is drawn for prompt i depends on the seed and first + i alone
  CallOptions call{};
};

// One continuation, with its prompt.
struct Generation {
  std::string text{};             // the prompt as it came, and what follows; empty where the model has no tokenizers
  std::vector<int32_t> tokens{};  // without begin and end
  double score = 0;               // log-probability after the length penalty
  double log_probability = 0;     // of all tokens, the prompt's included, and the end
  bool finished = true;           // false: cut at the longest that was allowed
};
using Generations = std::vector<Generation>;  // best first

// Several threads may use one at the same time.
class HEED_API Generator {
 public:
  // Throws Error for a model that does something else.
  explicit Generator(Engine engine);
  explicit Generator(const std::string& folder, int threads = 1) : Generator(Engine(folder, threads)) {}

  const Engine& engine() const { return engine_; }

  // The best continuation of one prompt, which may be empty.
  Generation generate(const std::string& prompt, const GenerateOptions& = {}) const;
  // Of many; prompts of one length are worked on together. Throws Error, with the number of the prompt, where one is
  // too long or no UTF-8, before anything is done; Cancelled where that was requested.
  std::vector<Generations> generate(std::span<const std::string> prompts, const GenerateOptions& = {},
                                    const Done<Generations>& done = {}) const;
  std::vector<Generations> generate_ids(std::span<const std::vector<int32_t>> prompts, const GenerateOptions& = {},
                                        const Done<Generations>& done = {}) const;

 private:
  // `texts` is empty, or has the text of each.
  std::vector<Generations> run(std::span<const std::vector<int32_t>> prompts, std::span<const std::string> texts,
                               const GenerateOptions&, const Done<Generations>& done) const;

  Engine engine_;
};

}  // namespace heed::decode
