// SPDX-License-Identifier: Apache-2.0
#include "cli/explain_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/explain_text.h"
#include "heed/analysis/leave_out.h"
#include "heed/analysis/lens.h"
#include "heed/analysis/patch.h"
#include "heed/analysis/rollout.h"
#include "heed/base/error.h"

namespace heed::cli {
namespace {

using nn::TextSide;

// Of longer texts, rows of weights are told by their strongest words alone: whole ones would be as many as words,
// squared.
constexpr size_t kWholeRows = 500;

constexpr const char* name_of(TextSide side) { return side == TextSide::source ? "source" : "target"; }
// Of what is no word: the end of a source, the begin of a target.
constexpr const char* rest_of(TextSide side) { return side == TextSide::source ? "end" : "begin"; }

std::optional<std::string> optional(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::vector<double> with_rest(const analysis::ByWord& one) {
  std::vector<double> all = one.words;
  all.push_back(one.rest);
  return all;
}

// A token as it is read, without the marks that a tokenizer has for spaces; of what is no text, its name.
std::string token_text(const text::Tokenizer& tokenizer, int32_t id) {
  const std::string text = tokenizer.decode(std::span(&id, 1));
  return text.empty() ? std::string(tokenizer.piece(id)) : text;
}

// What was patched, and the number that is explained, with it.
struct PatchedRow {
  std::string layer{};
  int64_t head = -1;  // -1: all of the layer
  double value = 0;
};

Shown shown_of(const std::string& sentence, const analysis::Patching& patching, const std::vector<PatchedRow>& rows) {
  const double own = patching.own(), way = patching.other() - own;
  Shown shown;
  shown.json["patched_from"] = Json{{"text", sentence}, {"value", patching.other()}};
  shown.text = fmt::format("of '{}' it is {:.4f}; with what heads gave there\n{:<20} {:>9} {:>9} {:>6}\n", sentence,
                           patching.other(), "patched", "then", "change", "way");
  Json& list = shown.json["patched"] = Json::array();
  for (const PatchedRow& row : rows) {
    const double change = row.value - own;
    Json& entry = list.emplace_back(Json{{"layer", row.layer}, {"value", row.value}, {"change", change}});
    if (row.head >= 0) entry["head"] = row.head;
    const std::string name = row.head < 0 ? row.layer : fmt::format("{}.{}", row.layer, row.head);
    const std::string share = way != 0 ? fmt::format("{:.0f} %", std::round(100 * change / way) + 0.0) : "";
    shown.text += fmt::format("{:<20} {:>+9.4f} {:>+9.4f} {:>6}\n", name, row.value, change, share);
  }
  return shown;
}

std::string full_name(const analysis::WordLinks& one) { return fmt::format("{}.{}", one.layer, one.head); }

}  // namespace

std::vector<std::string> Explainer::names(TextSide side) const {
  std::vector<std::string> all = reading_.words(side);
  all.push_back(fmt::format("({})", rest_of(side)));
  return all;
}

Shown Explainer::looks(const std::vector<std::string>& words, TextSide side, bool map,
                       const std::function<void(const EachLook&)>& run) const {
  const std::vector<std::string> named = names(side);
  const bool all = named.size() <= kWholeRows;
  if (map && !all) {
    throw Error(fmt::format("--map has {} columns, expected at most {}", named.size(), kWholeRows));
  }
  Shown shown;
  shown.json[fmt::format("{}_words", name_of(side))] = reading_.words(side);
  Json& list = shown.json["looks"] = Json::array();
  size_t width = 0;
  for (const std::string& word : words) width = std::max(width, columns(word));
  std::vector<std::vector<double>> rows;
  run([&](size_t i, const analysis::ByWord& look) {
    const std::vector<double> row = with_rest(look);
    Json& entry = list.emplace_back(Json{{"word", words[i]}});
    if (all) {
      entry["weights"] = look.words;
      entry[rest_of(side)] = look.rest;
    } else {
      entry["strongest"] = Json::array();
      for (const size_t at : order_by_size(row, top_))
        entry["strongest"].push_back({{"word", at}, {"weight", row[at]}});
    }
    if (map) rows.push_back(row);
    shown.text += fmt::format("  {}  looks at  {}\n", padded(words[i], width), strongest(named, row, top_));
  });
  if (map) shown.text += "\n" + heat_map(words, named, rows);
  return shown;
}

Shown Explainer::own_looks(const analysis::AlignOptions& align, bool map) const {
  const TextSide side = model_.task() == models::Task::language ? TextSide::target : TextSide::source;
  const analysis::Question question(model_.model(), reading_.pair(), {.position = 0}, model_.special());
  return looks(reading_.words(side), side, map,
               [&](const EachLook& each) { analysis::words_looked_at(pass_, reading_, question, align, each); });
}

Shown Explainer::links(const Asked& asked, const analysis::Question& question) const {
  using analysis::LinkMethod;
  const LinkMethod method = options_.method == Method::values      ? LinkMethod::values
                            : options_.method == Method::gradients ? LinkMethod::gradients
                                                                   : LinkMethod::weights;
  const analysis::WordPlace place = reading_.find(asked.word);
  std::vector<analysis::WordLinks> all = analysis::word_links(pass_, reading_, question, place, method);
  if (all.empty()) throw Error(fmt::format("no head looks from '{}', expected a word that one looks from", asked.word));
  if (!asked.head.empty()) {
    const auto chosen =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return full_name(one) == asked.head; });
    if (chosen == all.end()) {
      throw Error(
          fmt::format("--head is '{}', expected {} to {}", asked.head, full_name(all.front()), full_name(all.back())));
    }
    all = {*chosen};
  }
  Shown shown;
  for (const TextSide side : {TextSide::source, TextSide::target}) {
    if (!reading_.words(side).empty()) shown.json[fmt::format("{}_words", name_of(side))] = reading_.words(side);
  }
  shown.json["word"] = asked.word;
  Json& list = shown.json["looks"] = Json::array();
  const char* number = method == LinkMethod::weights  ? "weights"
                       : method == LinkMethod::values ? "values"
                                                      : "gradients";
  shown.text = asked.head.empty() ? fmt::format("'{}' looks at\n", asked.word)
                                  : fmt::format("'{}' looks at ({})\n", asked.word, asked.head);
  for (const analysis::WordLinks& one : all) {
    Json& look = list.emplace_back(Json{{"layer", one.layer}, {"head", one.head}});
    if (!reading_.words(TextSide::target).empty()) look["keys"] = name_of(one.keys);
    look[number] = one.links.words;
    look[rest_of(one.keys)] = one.links.rest;
    const std::vector<double> values = with_rest(one.links);
    shown.text += asked.head.empty()
                      ? fmt::format("  {}  {}\n", full_name(one), strongest(names(one.keys), values, top_))
                      : bars(names(one.keys), values, method != LinkMethod::weights);
  }
  return shown;
}

Shown Explainer::ranked(const Asked& asked, const analysis::Question& question) const {
  const bool from_word = !asked.from.empty();
  const auto from = from_word ? std::optional(reading_.find(asked.from)) : std::nullopt;
  const auto heads = analysis::rank_heads(pass_, reading_, question, from, static_cast<size_t>(options_.measure));
  Shown shown;
  if (from_word) shown.json["from"] = asked.from;
  shown.text = fmt::format("{:<20} {:>9} {:>9}{}\n", from_word ? "from '" + asked.from + "'" : "head", "gradient",
                           "off", from_word ? "  looks at" : "");
  Json& list = shown.json["heads"] = Json::array();
  for (const analysis::RankedHead& one : heads) {
    const std::string off = one.off ? fmt::format("{:+.4f}", *one.off) : "";
    Json& entry =
        list.emplace_back(Json{{"layer", one.weights.layer}, {"head", one.weights.head}, {"gradient", one.gradient}});
    if (one.off) entry["off"] = *one.off;
    shown.text += fmt::format("{:<20} {:>+9.4f} {:>9}", full_name(one.weights), one.gradient, off);
    if (from_word) {
      entry["keys"] = name_of(one.weights.keys);
      entry["weights"] = one.weights.links.words;
      entry[rest_of(one.weights.keys)] = one.weights.links.rest;
      shown.text += "  " + strongest(names(one.weights.keys), with_rest(one.weights.links), top_);
    }
    shown.text += "\n";
  }
  return shown;
}

Shown Explainer::patched(const Asked& asked, const analysis::Question& question) const {
  const analysis::Question other = analysis::question_of(question, reading_.with_text(asked.patch_from));
  const analysis::Patching patching(pass_, question, other);
  std::vector<PatchedRow> rows;
  if (asked.patch.empty()) {
    for (const analysis::HeadValue& one : patching.heads()) rows.push_back({one.layer, one.head, one.value});
    std::stable_sort(rows.begin(), rows.end(), [&](const PatchedRow& a, const PatchedRow& b) {
      return std::abs(a.value - patching.own()) > std::abs(b.value - patching.own());
    });
    for (const analysis::HeadValue& one : patching.layers()) rows.push_back({one.layer, -1, one.value});
    if (rows.empty()) throw Error("no head of the model can be patched, expected attention with outputs of its own");
  } else {
    std::vector<analysis::PatchSite> sites;
    for (const std::string& text : asked.patch) {
      const analysis::HeadName name = analysis::parse_head(text);
      sites.push_back({.layer = name.layer, .head = name.head});
    }
    rows.push_back({fmt::format("{}", fmt::join(asked.patch, " ")), -1, patching.value(sites)});
  }
  return shown_of(asked.patch_from, patching, rows);
}

Shown Explainer::by_words(const std::vector<double>& source, const std::vector<double>& target) const {
  Shown shown;
  for (const auto& [side, tokens] : {std::pair{TextSide::source, &source}, {TextSide::target, &target}}) {
    if (tokens->empty()) continue;
    const analysis::ByWord words = reading_.by_word(side, *tokens);
    shown.json[fmt::format("{}_words", name_of(side))] = reading_.words(side);
    shown.json[fmt::format("{}_shares", name_of(side))] = words.words;
    shown.json[fmt::format("{}_{}", name_of(side), rest_of(side))] = words.rest;
    shown.text += fmt::format("{}\n{}", name_of(side), bars(names(side), with_rest(words), true));
  }
  return shown;
}

Shown Explainer::rollout(const analysis::Question& question) const {
  if (!question.target().position) {
    throw Error("rollout begins at one token, expected the word of the output that it is for (--of)");
  }
  const auto shares = analysis::rollout(pass_, question, question.output_side(), *question.target().position);
  return by_words(shares.source, shares.target);
}

Shown Explainer::integrated(const analysis::Question& question) const {
  const auto found = analysis::integrated_gradients(pass_, question, options_.integrated);
  Shown shown = by_words(found.source, found.target);
  shown.json["baseline"] = found.baseline;
  shown.json["completeness_error"] = found.completeness_error;
  shown.text += fmt::format("without embeddings {:.4f}; the sum misses the difference by {:.2g} (--steps {})\n",
                            found.baseline, found.completeness_error, options_.integrated.steps);
  return shown;
}

Shown Explainer::left_out(const analysis::Question& question) const {
  const TextSide side = model_.task() == models::Task::language ? TextSide::target : TextSide::source;
  const auto changes = analysis::leave_out(pass_, question, reading_.tokens_of_words());
  Shown shown;
  shown.json[fmt::format("{}_words", name_of(side))] = reading_.words(side);
  Json& list = shown.json["changes"] = Json::array();
  std::vector<std::string> words;
  std::vector<double> values;
  for (size_t i = 0; i < changes.size(); ++i) {
    list.push_back(changes[i] ? Json(*changes[i]) : Json());
    if (!changes[i]) continue;
    words.push_back(reading_.words(side)[i]);
    values.push_back(*changes[i]);
  }
  shown.text = "without\n" + bars(words, values, true);
  return shown;
}

Shown Explainer::lens(const analysis::Question& question) const {
  Shown shown;
  Json& list = shown.json["layers"] = Json::array();
  for (const analysis::LensLayer& layer : analysis::logit_lens(pass_, question)) {
    Json& entry = list.emplace_back(Json{{"layer", layer.layer}, {"value", layer.value}});
    shown.text += fmt::format("  {:<12} {:>+9.4f}", layer.layer, layer.value);
    if (layer.first_choice) {
      entry["first_choice"] = token_text(model_.target(), *layer.first_choice);
      shown.text += fmt::format("  {}", token_text(model_.target(), *layer.first_choice));
    }
    shown.text += "\n";
  }
  return shown;
}

std::string Explainer::describe(const analysis::Target& target, const analysis::Question& question) const {
  if (!target.position) return "log p(output)";
  const int32_t token = target.token.value_or(question.labels()[static_cast<size_t>(*target.position)]);
  const std::string own = fmt::format("log p({})", token_text(model_.target(), token));
  return target.against ? fmt::format("{} - log p({})", own, token_text(model_.target(), *target.against)) : own;
}

Shown Explainer::number(const analysis::Question& question, bool gated) const {
  Shown shown;
  const double value = question.measure(pass_);
  const std::string name = describe(question.target(), question);
  shown.text = fmt::format("{} = {:.4f}", name, value);
  Json& target = shown.json["explained"] = Json{{"name", name}, {"value", value}};
  if (question.target().position) target["position"] = *question.target().position;
  if (gated) {
    nn::Pass plain = pass_;
    plain.observer = nullptr;
    const double before = question.measure(plain);
    target["ungated"] = before;
    shown.text += fmt::format(", without gates {:.4f}: they change it by {:+.4f}", before, value - before);
  }
  shown.text += "\n\n";
  return shown;
}

Shown Explainer::answer(const Asked& asked, bool gated) const {
  const analysis::Question question = reading_.question(optional(asked.of), optional(asked.against));
  Shown shown = number(question, gated);
  if (!asked.patch_from.empty()) {
    shown += patched(asked, question);
    return shown;
  }
  if (!asked.from.empty() || options_.method == Method::heads) shown += ranked(asked, question);
  if (!asked.word.empty()) shown += links(asked, question);
  if (options_.method == Method::rollout) shown += rollout(question);
  if (options_.method == Method::integrated) shown += integrated(question);
  if (options_.method == Method::leave_out) shown += left_out(question);
  if (options_.method == Method::lens) shown += lens(question);
  return shown;
}

}  // namespace heed::cli
