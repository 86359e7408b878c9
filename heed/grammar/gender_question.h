// SPDX-License-Identifier: Apache-2.0
#pragma once
// The question that a pronoun puts to a model: log p(cansado) - log p(cansada), where the reference has the one, and
// the noun that decides it has a rival of the other gender.
#include <functional>
#include <string>
#include <vector>

#include "heed/analysis/reading.h"
#include "heed/decode/engine.h"
#include "heed/grammar/agreement.h"
#include "heed/grammar/sentence.h"

namespace heed::grammar {

struct GenderQuestion {
  const Sentence& sentence;
  AgreeingWord word;
  Referent referent;
  std::vector<int> nouns;     // of the source; the referent is one of them, and another has the other gender
  analysis::Reading reading;  // of the source, with the reference as the output
  analysis::Question question;
};

// What asking is told, and when it ends.
struct GenderCall {
  decode::CallOptions call{};
  std::function<void(int64_t sentences)> progress{};
};

// Calls `each` with every question of the sentences, one after the other. Left out are words whose forms are not one
// token apart (both unknown, or the same), and sentences that are too long. Throws Cancelled where that was requested.
void for_each_gender_question(const decode::Engine&, std::span<const Sentence>, const GenderCall&,
                              const std::function<void(const nn::Pass&, const GenderQuestion&)>& each);

}  // namespace heed::grammar
