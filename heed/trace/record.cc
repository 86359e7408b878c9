// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/record.h"

#include <cmath>
#include <utility>

#include "heed/base/error.h"
#include "heed/data/batch.h"
#include "heed/trace/choices.h"
#include "heed/trace/sequences.h"

namespace heed::trace {
namespace {

const char* task_name(models::Task task) {
  constexpr const char* kNames[] = {"translate", "language", "tag", "classify", "encode"};
  return kNames[static_cast<size_t>(task)];
}

void describe_family(const models::TransformerOptions& o, Model& to) {
  const bool encodes = o.kind != models::TransformerKind::decoder, decodes = o.kind != models::TransformerKind::encoder;
  to.layers = (encodes ? o.encoder_layers : 0) + (decodes ? o.decoder_layers : 0);
  to.heads = o.heads, to.kv_heads = o.kv_heads > 0 ? o.kv_heads : o.heads;
  to.width = o.width, to.head_width = o.head_width > 0 ? o.head_width : o.width / o.heads;
}
void describe_family(const models::RnnSeq2SeqOptions& o, Model& to) {
  const bool blocks = o.encoder == models::Encoder::self_attentive;
  to.layers = blocks ? o.self_attentive.blocks : o.encoder_layers > 0 ? o.encoder_layers : o.layers;
  to.layers += o.decoder_layers > 0 ? o.decoder_layers : o.layers;
  to.heads = to.kv_heads = o.query == models::Query::none && !blocks ? 0 : 1;
  to.width = to.head_width = o.decoder_width > 0 ? o.decoder_width : o.width;
}
void describe_family(const models::SelfAttentiveOptions& o, Model& to) {
  to.layers = o.layers.blocks;
  to.heads = to.kv_heads = o.layers.attention ? 1 : 0;
  to.width = to.head_width = o.width;
}

// One sentence on its way into a trace.
class Recording {
 public:
  Recording(const decode::Engine& engine, const RecordOptions& options, models::Task task)
      : engine_(engine),
        model_(engine.text_model()),
        options_(options),
        recorder_(engine.parallel(), options.recorder),
        call_{.cancel = options.cancel, .observer = &recorder_},
        pass_(engine, call_) {
    if (options.alternatives < 0) {
      throw Error("trace: alternatives is " + std::to_string(options.alternatives) + ", expected 0 or more");
    }
    model_.expect(task);
    trace_.tool = "heed " HEED_VERSION;
    trace_.model.kind = model_.model().options().family_name();
    trace_.model.task = task_name(task);
    std::visit([&](const auto& own) { describe_family(own, trace_.model); }, model_.model().options().family);
    trace_.capture.dropped.push_back("inputs of the projections: observers see what comes out of them");
  }

  Trace translation(const std::string& sentence) {
    const std::vector<int32_t> ids = encoded(sentence);
    const std::vector<std::vector<int32_t>> sources = {ids};
    const data::Batch batch = data::source_batch(sources, model_.special());
    add_sequence("source", SequenceRole::source, given_sequence(model_.source(), batch.source, sentence));
    search({.source = data::source_tokens(batch),
            .prefix = tensor_of(options_.constraints.prefix),
            .special = model_.special(),
            .required = options_.constraints.required,
            .forbidden = options_.constraints.forbidden},
           options_.constraints.prefix, "");
    return take();
  }

  Trace generation(const std::string& prompt) {
    const std::vector<int32_t> ids = engine_.encode(std::span(&prompt, 1)).front();
    search({.prefix = tensor_of(ids),
            .special = model_.special(),
            .required = options_.constraints.required,
            .forbidden = options_.constraints.forbidden},
           ids, prompt);
    return take();
  }

  Trace tags(const std::string& sentence) {
    const std::vector<int32_t> ids = encoded(sentence);
    const std::vector<std::vector<int32_t>> sources = {ids};
    const data::Batch batch = data::source_batch(sources, model_.special());
    add_sequence("source", SequenceRole::source, given_sequence(model_.source(), batch.source, sentence));
    check_cancel(options_.cancel);
    const Tensor logits = model_.model().logits(pass_, data::source_tokens(batch), {}).value();
    recorder_.add_source(trace_);
    Output& output = trace_.output;
    output.seq = "source";
    for (int64_t row = 0; row < std::ssize(ids); ++row) {  // the end has none
      const Choice choice = choice_of(logits, row, std::max<int64_t>(1, options_.alternatives), {});
      const auto& [tag, log_probability] = choice.best.front();
      output.steps.push_back(step_of(row, tag, log_probability, choice));
      output.text += (output.text.empty() ? "" : " ") + output.steps.back().piece;
      output.logprob += log_probability;
    }
    output.score = output.logprob;
    trace_.capture.precision = name_of(logits.dtype());
    return take();
  }

  Trace text(const std::string& text) {
    const std::vector<data::TokenPair> pairs = {{{}, encoded(text)}};
    const std::vector<size_t> first = {0};
    const data::Batch batch = data::pair_batch(pairs, first, model_.special());
    const models::Tokens tokens = data::target_tokens(batch, models::Task::language);
    add_sequence("target", SequenceRole::text, given_sequence(model_.target(), batch.target_in, text));
    check_cancel(options_.cancel);
    const bool is_long = std::ssize(batch.target_in) > options_.recorder.full;
    const Tensor result =
        (is_long ? model_.model().states(pass_, tokens) : model_.model().logits(pass_, {}, tokens)).value();
    trace_.capture.precision = name_of(result.dtype());
    constexpr int64_t kWhole[] = {0};
    recorder_.add_target(trace_, kWhole, {});
    trace_.output.seq = "target", trace_.output.text = text;
    if (is_long) {
      trace_.capture.dropped.push_back("probabilities of tokens: " + std::to_string(batch.target_in.size()) +
                                       " of them, more than " + std::to_string(options_.recorder.full));
      return take();
    }
    const std::vector<int32_t>& ids = pairs[0].target;
    for (size_t t = 0; t < ids.size(); ++t) {
      const Choice choice = choice_of(result, static_cast<int64_t>(t), options_.alternatives, std::span(&ids[t], 1));
      add_step(trace_.output, trace_.sequences.back(), static_cast<int64_t>(t), ids[t], choice, true);
    }
    trace_.output.score = trace_.output.logprob;
    return take();
  }

 private:
  static Tensor tensor_of(const std::vector<int32_t>& ids) {
    return ids.empty() ? Tensor() : Tensor::of({1, std::ssize(ids)}, std::span<const int32_t>(ids));
  }

  std::vector<int32_t> encoded(const std::string& text) const {
    std::vector<int32_t> ids = model_.encode(text);
    if (ids.empty()) throw Error("trace: the text has no token, expected at least 1");
    return ids;
  }

  void add_sequence(const std::string& id, SequenceRole role, Sequence sequence) {
    sequence.id = id, sequence.role = role;
    trace_.sequences.push_back(std::move(sequence));
  }

  Step step_of(int64_t row, int32_t id, double log_probability, const Choice& choice) const {
    Step step{.row = row, .id = id, .piece = model_.target().piece(id), .logprob = log_probability};
    for (const auto& [token, own] : choice.best) {
      if (std::ssize(step.alternatives) == options_.alternatives || !std::isfinite(own)) break;
      step.alternatives.push_back({token, model_.target().piece(token), own});
    }
    return step;
  }

  // The token that was chosen, or given, in a row: its probability is also that of the token of the sequence.
  void add_step(Result& to, Sequence& sequence, int64_t row, int32_t id, const Choice& choice, bool forced) const {
    const double log_probability = choice.of.at(id);
    to.steps.push_back(step_of(row, id, log_probability, choice));
    to.steps.back().forced = forced;
    to.logprob += log_probability;
    const auto place = static_cast<size_t>(row) + 1;
    if (place < sequence.tokens.size()) sequence.tokens[place].prob = std::exp(log_probability);
  }

  void search(const decode::SearchInput& input, const std::vector<int32_t>& forced, const std::string& prompt) {
    Choices choices(model_.model(), std::max<int64_t>(1, options_.alternatives), model_.special().end);
    const std::vector<decode::Hypothesis> found =
        decode::search(pass_, choices, input, options_.search, {.cancel = options_.cancel}).front();
    choices.finish(found);
    trace_.capture.precision = name_of(choices.dtype());
    if (found.empty()) throw Error("trace: the search found nothing");
    const bool translates = model_.task() == models::Task::translate;
    for (size_t i = 0; i < found.size(); ++i) {
      const decode::Hypothesis& one = found[i];
      std::vector<int32_t> ids = {model_.special().begin};
      ids.insert(ids.end(), one.tokens.begin(), one.tokens.end());
      const std::string name = i == 0 ? "target" : "target." + std::to_string(i);
      add_sequence(name, translates ? SequenceRole::target : SequenceRole::text,
                   said_sequence(model_.target(), ids, prompt));
      Result result = result_of(one, forced, choices);
      result.seq = name;
      result.text = trace_.sequences.back().text;
      if (i == 0) {
        static_cast<Result&>(trace_.output) = std::move(result);
      } else {
        trace_.output.others.push_back(std::move(result));
      }
    }
    if (translates) recorder_.add_source(trace_);
    for (size_t i = 0; i < found.size(); ++i) {
      recorder_.add_target(trace_, found[i].nodes, {.target = i == 0 ? "target" : "target." + std::to_string(i)});
    }
    add_feed();
  }

  // Of the newest sequence.
  Result result_of(const decode::Hypothesis& one, const std::vector<int32_t>& forced, const Choices& choices) {
    Result result{.finished = one.finished};
    Sequence& sequence = trace_.sequences.back();
    const int64_t n = std::ssize(forced);
    for (int64_t t = 0; t < n; ++t) {
      add_step(result, sequence, t, forced[static_cast<size_t>(t)], choices.at(0, t), true);
    }
    for (size_t i = 0; i < one.nodes.size(); ++i) {
      const size_t place = static_cast<size_t>(n) + i;
      const int32_t id = place < one.tokens.size() ? one.tokens[place] : model_.special().end;
      add_step(result, sequence, n + static_cast<int64_t>(i), id, choices.at(one.nodes[i]), false);
    }
    result.logprob = one.log_probability, result.score = one.score;
    return result;
  }

  // Which state of a recurrent decoder the queries come from.
  void add_feed() {
    const models::ModelOptions& options = model_.model().options();
    if (!options.is<models::RnnSeq2SeqOptions>()) return;
    const bool before = options.as<models::RnnSeq2SeqOptions>().query == models::Query::previous;
    for (Attention& one : trace_.attn) {
      if (one.path != "decoder.cross") continue;
      one.feed = Feed{"decoder_top", before ? FeedTime::prev : FeedTime::current};
    }
  }

  Trace take() {
    if (trace_.attn.empty()) trace_.capture.dropped.emplace_back("attention: none ran that was chosen");
    trace_.check();
    return std::move(trace_);
  }

  const decode::Engine& engine_;
  const data::TextModel& model_;
  const RecordOptions& options_;
  Recorder recorder_;
  const decode::CallOptions call_;
  decode::InferencePass pass_;
  Trace trace_;
};

}  // namespace

Trace record_translation(const decode::Engine& engine, const std::string& sentence, const RecordOptions& options) {
  return Recording(engine, options, models::Task::translate).translation(sentence);
}

Trace record_generation(const decode::Engine& engine, const std::string& prompt, const RecordOptions& options) {
  return Recording(engine, options, models::Task::language).generation(prompt);
}

Trace record_tags(const decode::Engine& engine, const std::string& sentence, const RecordOptions& options) {
  return Recording(engine, options, models::Task::tag).tags(sentence);
}

Trace record_text(const decode::Engine& engine, const std::string& text, const RecordOptions& options) {
  return Recording(engine, options, models::Task::language).text(text);
}

Trace record(const decode::Engine& engine, const std::string& text, const RecordOptions& options) {
  const models::Task task = engine.text_model().task();
  if (task == models::Task::tag) return record_tags(engine, text, options);
  if (task == models::Task::language) return record_generation(engine, text, options);
  return record_translation(engine, text, options);
}

}  // namespace heed::trace
