// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trace of what a model says: translated, generated, tagged or read, and recorded while it happens.
//
//   const decode::Engine engine("model");
//   const trace::Trace it = trace::record_translation(engine, "The animal was tired.", {.search = {.beam = 4}});
//   trace::save("it.trace.json", it);
//
// Not here: the recorder itself, for passes of one's own (recorder.h).
#include <string>

#include "heed/base/cancel.h"
#include "heed/base/export.h"
#include "heed/decode/constraints.h"
#include "heed/decode/engine.h"
#include "heed/decode/search.h"
#include "heed/trace/recorder.h"
#include "heed/trace/trace.h"

namespace heed::trace {

struct RecordOptions {
  RecorderOptions recorder{};
  decode::SearchOptions search{};  // nbest: how many hypotheses are in the trace
  decode::Constraints constraints{};
  int64_t alternatives{5};  // of each choice: the most likely tokens
  const Cancel* cancel{nullptr};
};

// All of these throw Error for a model that does something else, a text without a token, one that is too long or no
// UTF-8, and layers or heads that are not there.

// The best translation as decode::Translator gives it, each token with the rows that it was chosen by, and the other
// hypotheses in the same way.
HEED_API Trace record_translation(const decode::Engine&, const std::string& sentence, const RecordOptions& = {});
// What follows a prompt, which may be empty.
HEED_API Trace record_generation(const decode::Engine&, const std::string& prompt, const RecordOptions& = {});
// Tags of a sentence; nothing is searched for.
HEED_API Trace record_tags(const decode::Engine&, const std::string& sentence, const RecordOptions& = {});
// What a language model makes of a text, in one pass and without going on with it. Above RecorderOptions::full tokens
// the probabilities of its tokens are left out: logits of all of them would take more memory than the rest.
HEED_API Trace record_text(const decode::Engine&, const std::string& text, const RecordOptions& = {});

// The one of these that fits the model's task; a language model goes on with the text.
HEED_API Trace record(const decode::Engine&, const std::string& text, const RecordOptions& = {});

}  // namespace heed::trace
