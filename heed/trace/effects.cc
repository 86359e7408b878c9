// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/effects.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/analysis/heads.h"
#include "heed/analysis/integrated_gradients.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/links.h"
#include "heed/analysis/rollout.h"
#include "heed/base/error.h"

namespace heed::trace {
namespace {

// The best hypothesis of a trace, as a question's input and output.
class Effects {
 public:
  Effects(Trace& trace, const decode::Engine& engine, const EffectOptions& options)
      : trace_(trace), model_(engine.text_model()), options_(options), pass_(engine, call_) {
    const bool tags = model_.task() == models::Task::tag, translates = model_.task() == models::Task::translate;
    if (!tags && !translates && model_.task() != models::Task::language) {
      throw Error("effects: the model neither translates, tags nor goes on with a text, expected one that does");
    }
    read_ = tags || translates ? "source" : trace.output.seq;
    if (tags || translates) pair_.source = ids_of(trace.sequence("source"));
    if (tags) {
      for (const Step& step : trace.output.steps) pair_.target.push_back(static_cast<int32_t>(step.id));
    } else {
      pair_.target = ids_of(trace.sequence(trace.output.seq));
    }
    find_words();
  }

  // What one row costs: passes, a backward one counted as a forward one, times the tokens that each reads.
  int64_t tokens() const {
    int64_t heads = 0;
    for (const Attention& one : trace_.attn) heads += layer_of(one.path) == &one ? std::ssize(one.heads) : 0;
    const int64_t passes = std::ssize(words_) + 8 + 2 * std::min(options_.measured, heads) + 2 * options_.integrated +
                           (options_.rollout ? 1 : 0);
    return passes * (std::ssize(pair_.source) + std::ssize(pair_.target) + 1);
  }

  void add(const Step& step, std::optional<int32_t> against) {
    const analysis::Question question(
        model_.model(), pair_, {.position = step.row, .token = static_cast<int32_t>(step.id), .against = against},
        model_.special());
    Effect effect{.seq = trace_.output.seq, .row = step.row, .name = "log p(" + shown(step.id) + ")"};
    if (against) {
      effect.name += " - log p(" + shown(*against) + ")";
      effect.against = *against;
    }
    effect.value = question.measure(pass_);
    add_left_out(effect, question);
    if (!trace_.attn.empty()) {
      add_heads(effect, question);
      add_links(effect, question);
    }
    if (options_.integrated > 0) add_integrated(effect, question);
    if (options_.rollout && model_.model().options().is<models::TransformerOptions>()) {
      const analysis::Rollout found = analysis::rollout(pass_, question, question.output_side(), step.row);
      effect.rollout = TokenShares{keep(found.source, "rollout/source"), keep(found.target, "rollout/target")};
    }
    trace_.effects.push_back(std::move(effect));
  }

 private:
  std::string shown(int64_t id) const {
    const auto token = static_cast<int32_t>(id);
    const std::string text = model_.target().decode(std::span(&token, 1));
    return text.empty() ? std::string(model_.target().piece(token)) : text;
  }

  // Without what is no text: begin and end.
  static std::vector<int32_t> ids_of(const Sequence& sequence) {
    std::vector<int32_t> ids;
    for (const Token& token : sequence.tokens) {
      if (!token.special) ids.push_back(static_cast<int32_t>(token.id));
    }
    return ids;
  }

  // Tokens of the text that is read, by word; a token that belongs to none is one of its own.
  void find_words() {
    const std::vector<Token>& tokens = trace_.sequence(read_).tokens;
    int64_t position = 0;
    for (int64_t i = 0; i < std::ssize(tokens); ++i) {
      const Token& token = tokens[static_cast<size_t>(i)];
      if (token.special) continue;
      const bool goes_on = !words_.empty() && i > 0 && token.word && !tokens[static_cast<size_t>(i) - 1].special &&
                           tokens[static_cast<size_t>(i) - 1].word == token.word;
      if (goes_on) {
        words_.back().push_back(position);
        spans_.back().end = i + 1;
      } else {
        words_.push_back({position});
        spans_.push_back({read_, i, i + 1});
      }
      ++position;
    }
  }

  void add_left_out(Effect& effect, const analysis::Question& question) {
    const auto changes = analysis::leave_out(pass_, question, words_);
    for (size_t i = 0; i < changes.size(); ++i) {
      const bool later = read_ == effect.seq && spans_[i].begin > effect.row;  // of a language model's own text
      if (!later) effect.left_out.push_back({spans_[i], changes[i]});
    }
  }

  void add_heads(Effect& effect, const analysis::Question& question) {
    for (const analysis::HeadValue& one : analysis::head_gradients(pass_, question)) {
      if (layer_of(one.layer)) effect.heads.push_back({one.layer, one.head, one.value});
    }
    std::ranges::sort(effect.heads, std::ranges::greater{},
                      [](const HeadEffect& one) { return std::abs(one.gradient); });
    for (HeadEffect& one :
         std::span(effect.heads).first(std::min<size_t>(effect.heads.size(), static_cast<size_t>(options_.measured)))) {
      one.off = analysis::effect_of(pass_, question, {{one.path, one.head, 0}});
    }
  }

  const Attention* layer_of(const std::string& path) const {
    for (const Attention& one : trace_.attn) {
      if (one.path == path) return &one;
    }
    return nullptr;
  }

  // None where all contexts go into a recurrent cell: there are no gradients of single links.
  std::vector<analysis::HeadLinks> gradient_links(const analysis::Question& question,
                                                  const analysis::Queries& queries) {
    try {
      return analysis::gradient_links(pass_, question, queries);
    } catch (const Error&) {
      return {};
    }
  }

  // From the query of the row to all keys, in the layers of its side.
  void add_links(Effect& effect, const analysis::Question& question) {
    const bool source = question.output_side() == nn::TextSide::source;
    const analysis::Queries queries =
        source ? analysis::Queries{.source = {effect.row}} : analysis::Queries{.target = {effect.row}};
    add_links(effect, analysis::value_links(pass_, question, queries), &LinkEffects::values, "values");
    add_links(effect, gradient_links(question, queries), &LinkEffects::gradients, "gradients");
  }
  void add_links(Effect& effect, const std::vector<analysis::HeadLinks>& links, Ref LinkEffects::*to,
                 const char* name) {
    for (const Attention& layer : trace_.attn) {
      if (layer.q.seq != effect.seq || &layer != layer_of(layer.path)) continue;
      const auto S = static_cast<size_t>(layer.k.size());
      std::vector<double> all;
      for (const int64_t head : layer.heads) {
        const auto found = std::ranges::find_if(
            links, [&](const analysis::HeadLinks& one) { return one.layer == layer.path && one.head == head; });
        if (found == links.end() || found->links.size() < S) break;
        all.insert(all.end(), found->links.begin(), found->links.begin() + static_cast<ptrdiff_t>(S));
      }
      if (all.size() != layer.heads.size() * S) continue;
      auto entry = std::ranges::find(effect.links, layer.path, &LinkEffects::path);
      if (entry == effect.links.end()) entry = effect.links.insert(entry, {.path = layer.path});
      (*entry).*to = keep(all, layer.path + "/" + name, {std::ssize(layer.heads), layer.k.size()});
    }
  }

  void add_integrated(Effect& effect, const analysis::Question& question) {
    const auto found = analysis::integrated_gradients(pass_, question, {.steps = options_.integrated});
    effect.integrated = TokenShares{keep(found.source, "integrated/source"), keep(found.target, "integrated/target"),
                                    found.baseline, found.completeness_error};
  }

  // A tensor of the effect that is being made. Absent where there are no numbers.
  Ref keep(const std::vector<double>& values, const std::string& name, std::vector<int64_t> shape = {}) {
    if (values.empty()) return {};
    if (shape.empty()) shape = {std::ssize(values)};
    const std::vector<float> narrow(values.begin(), values.end());
    Ref ref{"effects." + std::to_string(trace_.effects.size()) + "/" + name};
    trace_.tensors[ref.name] = Array::f32(std::move(shape), narrow);
    return ref;
  }

  Trace& trace_;
  const data::TextModel& model_;
  const EffectOptions& options_;
  const decode::CallOptions call_{};
  decode::InferencePass pass_;
  std::string read_;  // the sequence whose words are left out
  data::TokenPair pair_;
  std::vector<std::vector<int64_t>> words_;  // positions in the pair
  std::vector<Span> spans_;                  // the same words in the sequence
};

}  // namespace

void add_effects(Trace& trace, const decode::Engine& engine, const EffectOptions& options) {
  Effects effects(trace, engine, options);
  std::vector<const Step*> steps;
  for (const Step& step : trace.output.steps) {
    if (!step.forced) steps.push_back(&step);
  }
  const int64_t fit = options.most_tokens / effects.tokens(), left = std::ssize(steps) - fit;
  if (left > 0) {
    trace.capture.dropped.push_back("effects of " + std::to_string(left) + " choices: passes over " +
                                    std::to_string(effects.tokens()) + " tokens for each");
    steps.resize(static_cast<size_t>(std::max<int64_t>(0, fit)));
  }
  for (const Step* step : steps) effects.add(*step, {});
  trace.check();
}

void add_contrast(Trace& trace, const decode::Engine& engine, int64_t row, int32_t against,
                  const EffectOptions& options) {
  const auto step = std::ranges::find(trace.output.steps, row, &Step::row);
  if (step == trace.output.steps.end()) {
    throw Error("effects: row is " + std::to_string(row) + ", expected one in which something was chosen");
  }
  Effects(trace, engine, options).add(*step, against);
  trace.check();
}

}  // namespace heed::trace
