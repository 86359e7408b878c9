// SPDX-License-Identifier: Apache-2.0
#include "cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "cli/action.h"
#include "cli/explain_methods.h"
#include "cli/flags.h"
#include "cli/gate_flags.h"
#include "cli/json.h"
#include "cli/lines.h"
#include "cli/open.h"
#include "cli/output.h"
#include "cli/trace_flag.h"
#include "heed/analysis/explain.h"
#include "heed/base/error.h"
#include "heed/decode/generate.h"
#include "heed/decode/tag.h"
#include "heed/decode/translate.h"
#include "heed/text/lines.h"
#include "heed/text/utf8.h"
#include "heed/trace/effects.h"

namespace heed::cli {
namespace {

constexpr const char* kHelp =
    R"(Says what a model looked at, and what of it made the model say what it said.

Without more, for each word of a translation: the words of the source that it looked at when it chose that word
(cross-attention); for each word of a tagger's or language model's text, the words that it looks at. --map draws them.
With --word, what that word looks at in each head; with --head too, in that head alone, as bars. Sentences come from the
command line, or from standard input, a line each (none, or -).

What a link is worth is asked with --from and --method. They explain a number: the log-probability of the output that
the model chose, or is made to say (--target); of one word of it (--of), of a tagger the tag of that word; or of a word
against another (--against): log p(cansado) - log p(cansada). Of a word in several tokens it is that of the first, or of
the first that differs. Of a language model it is the next token, unless --of says otherwise. --from ranks the heads by
what they do to that number from one word, and measures what switching the strongest ones off changes. --patch-from
measures by which heads another sentence differs: the outputs of each head, taken from there, in their place here. --method
is one of these; docs/explaining.md says what each can tell, and what not.

  weights     with --word: what it looks at
  values      with --word: weights times the size of what is passed on
  gradients   with --word: weights times what they do to the number
  heads       all heads, by gradient, and measured
  rollout     with --of: the words that it comes from, if layers only passed on
  integrated  the number divided among the words that were read
  leave-out   what leaving each word out changes, measured
  lens        what each layer would say if it were the last

--gate scales heads or switches them off, and it is told what that changes. --json writes an object for each sentence:
what was read and said, and numbers for all words. --trace writes, for one sentence, all that was recorded while the model
worked on it, and --out a page that shows it, in one HTML file. Beside it the page shows another sentence (--compare), what
another model does with the sentence (--compare-model), or what the model does with heads scaled or off (--gate). With
--beam, the other hypotheses are there, too. --effects says how much of what links, heads and words do to each word of the
output is in it: some (the default: a pass forward and backward, a pass for each word that is left out, and 8 for heads
that are switched off), all (with integrated gradients, rollout and every head off), or none. Examples:

  heed explain --model model "The animal didn't cross the street because it was too tired."
  heed explain --model model --word it --head encoder.1.self.0 "The boy bought the apple and ate it."
  heed explain --model model --from tired --against cansada "The animal was tired."
  heed explain --model model --against ancho --patch-from "The animal was tired." "The street was wide."
  heed explain --model model --method leave-out --of ancha "The street was wide."
  heed explain --model model --out page.html --compare "The animal was too wide." "The animal was too tired."
  heed explain --model model --out page.html --gate encoder.1.self.2=0 "The animal was too tired.")";

std::string check_top(const std::string& text) {
  int64_t n = 0;
  if (CLI::detail::lexical_cast(text, n) && n >= 1 && n <= 1000) return "";
  return "'" + text + "' is not a number of words, expected 1 to 1000";
}

// How the output is found that the user did not give.
struct OutputOptions {
  int64_t beam{1};

  static void describe(OutputOptions& o, auto&& field) {
    field("beam", o.beam, "hypotheses kept in search of the output; 1: greedy", Range::within(1, 1024));
  }
};

// How much of docs/explaining.md is on the page, and in the trace.
enum class EffectsKept : uint8_t { none, some, all };
constexpr auto enum_names(EffectsKept) {
  return std::to_array<EnumName<EffectsKept>>(
      {{"none", EffectsKept::none}, {"some", EffectsKept::some}, {"all", EffectsKept::all}});
}
struct EffectsOption {
  EffectsKept effects{EffectsKept::some};

  static void describe(EffectsOption& o, auto&& field) {
    field("effects", o.effects, "what words, heads and links do to each word of the output, on the page of --out");
  }
};

struct Command {
  analysis::AlignOptions align;
  ExplainOptions options;
  OutputOptions output;
  EffectsOption kept;
  Flags flags;
  GateFlags gates;
  TraceFlag trace;
  Asked asked;
  std::string folder, target, compare, compare_model;
  std::vector<std::string> sentences;
  int64_t top = 3;
  int threads = 0;
  bool json = false, map = false;

  io::ShowFields fields() {
    return [this](FieldVisitor& visitor) {
      visit_fields(align, visitor);
      visit_fields(options, visitor);
      visit_fields(output, visitor);
      visit_fields(kept, visitor);
    };
  }

  void run() {
    flags.apply(fields());
    check_flags();
    const bool from_input = sentences.empty() || sentences == Lines{"-"};
    trace.check(from_input ? 0 : sentences.size(), gates.given() && trace.page.empty());
    for (const auto& [flag, came] : {std::pair("--compare", &compare), {"--compare-model", &compare_model}}) {
      if (!came->empty() && trace.page.empty()) {
        throw UsageError(fmt::format("heed: {} came without --out, expected both: they are compared on a page", flag));
      }
    }
    const decode::Engine engine = open_for_analysis(folder, threads);
    const models::Task task = engine.text_model().task();
    if (task == models::Task::classify || task == models::Task::encode) {
      throw Error(fmt::format("{}: is {}, expected a model that translates, tags or goes on with a text", folder,
                              data::describe_task(task)));
    }
    gates.apply(engine, call_);
    if (from_input) return explain_input(engine);
    // Also of a model that has no attention to explain.
    if (trace.given()) write_traces(engine);
    for (const std::string& sentence : sentences) explain(engine, sentence);
  }

 private:
  // What --out shows side by side: the sentence, another one, another model, the model with gates.
  void write_traces(const decode::Engine& engine) const {
    const std::string& sentence = sentences.front();
    std::vector<trace::Trace> traces = {traced(engine, sentence)};
    if (!compare.empty()) traces.push_back(traced(engine, compare));
    if (!compare_model.empty()) {
      traces.push_back(traced(open_for_analysis(compare_model, threads), sentence));
      traces.front().label = folder;
      traces.back().label = compare_model;
    }
    if (gates.given()) {
      trace::RecordOptions gated = trace.options({.search = {.beam = output.beam}});
      gated.recorder.gates = call_.observer;
      traces.push_back(trace::record(engine, sentence, gated));
      traces.back().label = fmt::format("{}", fmt::join(gates.texts(), " "));
    }
    trace.save(traces);
  }

  trace::Trace traced(const decode::Engine& engine, const std::string& sentence) const {
    trace::Trace one = trace::record(engine, sentence, trace.options({.search = {.beam = output.beam}}));
    if (kept.effects == EffectsKept::none || !one.capture.full) return one;
    trace::EffectOptions wanted;
    if (kept.effects == EffectsKept::all) {
      wanted = {.measured = 100000,
                .integrated = options.integrated.steps,
                .rollout = true,
                .most_tokens = std::numeric_limits<int64_t>::max()};
    }
    trace::add_effects(one, engine, wanted);
    if (!asked.against.empty() && target.empty() && &sentence == &sentences.front()) add_asked(one, engine, wanted);
    return one;
  }

  // --against: the number that is explained on the command line, on the page, too. It is of the model's own output.
  void add_asked(trace::Trace& one, const decode::Engine& engine, const trace::EffectOptions& wanted) const {
    std::vector<int32_t> said;
    const int32_t end = engine.text_model().special().end;
    for (const trace::Step& step : one.output.steps) {
      if (step.id != end && !step.forced) said.push_back(static_cast<int32_t>(step.id));
    }
    const analysis::Reading reading(engine.text_model(), sentences.front(), said);
    const std::string of = asked.of;
    const analysis::Target about =
        reading.question(of.empty() ? std::nullopt : std::optional(of), asked.against).target();
    if (about.position && about.against) trace::add_contrast(one, engine, *about.position, *about.against, wanted);
  }

  // A number is explained: more than what is looked at.
  bool explains() const {
    return !asked.from.empty() || options.method != Method::weights || !asked.of.empty() || !asked.against.empty() ||
           !asked.patch_from.empty();
  }

  void check_flags() const {
    const bool links = options.method == Method::values || options.method == Method::gradients;
    const auto refuse = [](bool wrong, const char* what) {
      if (wrong) throw UsageError(std::string("heed: ") + what);
    };
    refuse(!asked.head.empty() && asked.word.empty(), "--head came without --word, expected the word that looks");
    refuse(!asked.word.empty() && !asked.from.empty(), "--word and --from came, expected one of them");
    refuse(links && asked.word.empty(), "--method values and gradients came without --word, expected both");
    refuse(!asked.word.empty() && options.method != Method::weights && !links,
           "--word came with a --method that is not weights, values or gradients, expected one of those");
    refuse(!asked.from.empty() && flags.has("--method"),
           "--from and --method came, expected one of them: --from ranks the heads");
    refuse(!asked.patch.empty() && asked.patch_from.empty(),
           "--patch came without --patch-from, expected the sentence that outputs are taken from");
    refuse(!asked.patch_from.empty() && (!asked.from.empty() || !asked.word.empty() || flags.has("--method")),
           "--patch-from came with --from, --word or --method, expected one of them");
    refuse(explains() && asked.from.empty() && asked.word.empty() && asked.patch_from.empty() &&
               options.method == Method::weights && trace.page.empty(),
           "--of and --against say what is explained, expected --from, --word, --patch-from, --out or another --method "
           "beside them");
    refuse(map && (explains() || !asked.word.empty()), "--map came with a word or a method, expected it without");
  }

  void explain_input(const decode::Engine& engine) const {
    text::LineReader reader("-");
    for (Lines lines = reader.next(1); !lines.empty(); lines = reader.next(1)) {
      try {
        text::check_utf8(lines[0], "line");
        if (text::squeeze_spaces(lines[0]).empty()) continue;
        explain(engine, lines[0]);
      } catch (const Error& error) {
        throw Error(reader.place(0) + ": " + error.what());
      }
    }
  }

  // The tokens of a translation, the tags, or what comes after the text.
  std::vector<int32_t> output_of(const decode::Engine& engine, const std::string& sentence) const {
    const data::TextModel& model = engine.text_model();
    if (!target.empty()) return model.target().encode(target);
    const decode::SearchOptions search{.beam = output.beam};
    if (model.task() == models::Task::translate) {
      return decode::Translator(engine).translate(sentence, {.search = search, .call = call_}).tokens;
    }
    std::vector<int32_t> ids;
    if (model.task() == models::Task::tag) {
      for (const auto& one : decode::Tagger(engine).tag(sentence, {.call = call_})) ids.push_back(one.tag_id);
      return ids;
    }
    ids = decode::Generator(engine).generate(sentence, {.search = search, .call = call_}).tokens;
    ids.erase(ids.begin(), ids.begin() + std::ssize(model.encode(sentence)));
    return ids;
  }

  void explain(const decode::Engine& engine, const std::string& sentence) const {
    const data::TextModel& model = engine.text_model();
    if (model.encode(sentence).empty()) {
      throw Error("the sentence '" + sentence + "' has no word in it, expected at least one");
    }
    const std::vector<int32_t> said = output_of(engine, sentence);
    const analysis::Reading reading(model, sentence, said);
    const bool tags = model.task() == models::Task::tag, translates = model.task() == models::Task::translate;
    const std::string text = model.target().decode(reading.pair().target);
    Json result{{translates ? "source" : "text", sentence},
                {translates ? "translation"
                 : tags     ? "tags"
                            : "output",
                 text}};
    decode::InferencePass pass(engine, call_);
    const Explainer explainer(pass, model, reading, options, static_cast<size_t>(top));
    const Shown shown = shown_by(explainer, pass, sentence, said, reading);
    result.update(shown.json);
    json ? write_output(json_line(result)) : print("{}\n{}\n\n{}\n", sentence, text, shown.text);
    flush_output();
  }

  Shown shown_by(const Explainer& explainer, nn::Pass& pass, const std::string& sentence,
                 const std::vector<int32_t>& said, const analysis::Reading& reading) const {
    if (explains()) return explainer.answer(asked, gates.given());
    Shown shown;
    if (gates.given()) shown = explainer.number(reading.question(), true);
    shown += looks_by(explainer, pass, sentence, said, reading);
    return shown;
  }

  Shown looks_by(const Explainer& explainer, nn::Pass& pass, const std::string& sentence,
                 const std::vector<int32_t>& said, const analysis::Reading& reading) const {
    const data::TextModel& model = reading.model();
    if (!asked.word.empty()) return explainer.links(asked, reading.question());
    if (model.task() != models::Task::translate) return explainer.own_looks(align, map);
    const analysis::TargetExplanation seen = analysis::explain_target(pass, model, sentence, said, align);
    return explainer.looks(seen.target, nn::TextSide::source, map, [&](const Explainer::EachLook& each) {
      for (size_t i = 0; i < seen.looks.size(); ++i) {
        const analysis::Look& look = seen.looks[i];
        each(i, {{look.begin(), look.end() - 1}, look.back()});
      }
    });
  }

  decode::CallOptions call_;
};

}  // namespace

void add_explain(CLI::App& heed, Action& action) {
  CLI::App* app = heed.add_subcommand("explain", kHelp);
  auto command = std::make_shared<Command>();
  const auto add = [&](const char* flag, std::string& to, const char* type, const char* help) {
    app->add_option(flag, to, help)->type_name(type);
  };
  add("--model", command->folder, "DIR", "Folder of the model");
  add("--word", command->asked.word, "WORD", "A word: what it looks at");
  add("--head", command->asked.head, "LAYER.HEAD", "One head for --word: encoder.1.self.0");
  add("--from", command->asked.from, "WORD", "A word: what the heads do from it");
  add("--of", command->asked.of, "WORD",
      "The word of the output that is explained; of a tagger, the word whose tag is");
  add("--against", command->asked.against, "WORD", "Another word in its place, or another tag");
  add("--patch-from", command->asked.patch_from, "TEXT",
      "Another sentence, of as many tokens: what the heads gave there, in their place here");
  app->add_option("--patch", command->asked.patch,
                  "A head or a layer that is patched; several together; by default each one in turn")
      ->type_name("LAYER[.HEAD]")
      ->expected(1)
      ->allow_extra_args(false)  // what follows is a text
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add("--target", command->target, "TEXT", "The output that is explained; by default the model's own");
  app->add_option("--top", command->top, "Words to show of each look")
      ->type_name("N")
      ->check(CLI::Validator(check_top, ""))
      ->capture_default_str();
  add("--compare", command->compare, "TEXT", "A second sentence, beside the first on the page of --out");
  add("--compare-model", command->compare_model, "DIR", "A second model, beside the first on the page of --out");
  app->add_flag("--map", command->map, "Also draw what each word looks at");
  app->add_flag("--json", command->json, "Write a JSON object for each sentence");
  add_threads(*app, command->threads);
  app->add_option("sentences", command->sentences, "Sentences; none, or -: standard input")->type_name("TEXT");
  command->gates.add(*app);
  command->trace.add(*app);
  command->flags.add(*app, command->fields());
  app->callback([command, &action] { action = [command] { command->run(); }; });
}

}  // namespace heed::cli
