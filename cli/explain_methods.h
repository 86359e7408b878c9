// SPDX-License-Identifier: Apache-2.0
#pragma once
// The methods of heed explain: each computes, and shows its result as text and as JSON.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/json.h"
#include "heed/analysis/align.h"
#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/word_links.h"
#include "heed/base/describe.h"
#include "heed/nn/pass.h"

namespace heed::cli {

enum class Method : uint8_t { weights, values, gradients, heads, rollout, integrated, leave_out, lens };
constexpr auto enum_names(Method) {
  return std::to_array<EnumName<Method>>({{"weights", Method::weights},
                                          {"values", Method::values},
                                          {"gradients", Method::gradients},
                                          {"heads", Method::heads},
                                          {"rollout", Method::rollout},
                                          {"integrated", Method::integrated},
                                          {"leave-out", Method::leave_out},
                                          {"lens", Method::lens}});
}

struct ExplainOptions {
  Method method{Method::weights};
  int64_t measure{10};
  analysis::IntegratedGradientsOptions integrated{};

  static void describe(ExplainOptions& o, auto&& field) {
    field("method", o.method, "what is computed");
    field("measure", o.measure, "of ranked heads, how many are switched off in turn", Range::within(0, 100000));
    analysis::IntegratedGradientsOptions::describe(o.integrated, field);
  }
};

// For a terminal, and fields for the sentence's JSON object.
struct Shown {
  std::string text{};
  Json json = Json::object();

  Shown& operator+=(const Shown& more) {
    text += more.text;
    json.update(more.json);
    return *this;
  }
};

// What is asked, in words; empty: not asked.
struct Asked {
  std::string from{}, word{}, head{}, of{}, against{};
  std::string patch_from{};          // another sentence
  std::vector<std::string> patch{};  // the heads and layers that are patched together; none: each alone
};

class Explainer {
 public:
  // Borrows all of it. `top` is how many words of a list are shown.
  Explainer(const nn::Pass& pass, const data::TextModel& model, const analysis::Reading& reading,
            const ExplainOptions& options, size_t top)
      : pass_(pass), model_(model), reading_(reading), options_(options), top_(top) {}

  // What each of `words` looks at: `run` calls its argument with each, in order; weights are of words of a side.
  using EachLook = std::function<void(size_t word, const analysis::ByWord&)>;
  Shown looks(const std::vector<std::string>& words, nn::TextSide side, bool map,
              const std::function<void(const EachLook&)>& run) const;
  // Of a tagger's or language model's own words.
  Shown own_looks(const analysis::AlignOptions&, bool map) const;
  // From one word, in every head or in one.
  Shown links(const Asked&, const analysis::Question&) const;
  // The heads, from a word or all of them.
  Shown ranked(const Asked&, const analysis::Question&) const;
  // With the outputs of heads taken from another sentence.
  Shown patched(const Asked&, const analysis::Question&) const;
  // The number that is explained; `gated`: the pass has gates, whose effect is told.
  Shown number(const analysis::Question&, bool gated) const;
  // The method that was chosen, for what is asked.
  Shown answer(const Asked&, bool gated) const;

 private:
  std::vector<std::string> names(nn::TextSide) const;
  Shown rollout(const analysis::Question&) const;
  Shown integrated(const analysis::Question&) const;
  Shown left_out(const analysis::Question&) const;
  Shown lens(const analysis::Question&) const;
  Shown by_words(const std::vector<double>& source, const std::vector<double>& target) const;
  std::string describe(const analysis::Target&, const analysis::Question&) const;

  const nn::Pass& pass_;
  const data::TextModel& model_;
  const analysis::Reading& reading_;
  const ExplainOptions& options_;
  size_t top_;
};

}  // namespace heed::cli
