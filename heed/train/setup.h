// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a training run begins with, as its options choose it: the pairs, the model's options, the tokenizers.
// Not here: the run itself (run.h).
#include <memory>

#include "heed/base/export.h"
#include "heed/data/text_model.h"
#include "heed/models/options.h"
#include "heed/text/corpus.h"
#include "heed/train/run.h"

namespace heed::train {

// The model's options but for its vocabularies: the preset's, the run's own, or those of the model it goes on from.
// Throws Error, the model's own, where they do not fit each other; nothing is read but what `init` names.
HEED_API models::ModelOptions chosen_model(const RunOptions&);
// Throws Error where the options do not fit the task.
HEED_API void check_setup(const RunOptions&, models::Task);

// The options as they are kept: what was left to heed is said in them.
HEED_API RunOptions resolved(const RunOptions&, const models::ModelOptions&);

// Opens the files, and throws Error where that cannot be; Cancelled where the listener stops while nothing comes from a
// pipe.
HEED_API std::unique_ptr<text::PairSource> open_training_pairs(const RunOptions&, models::Task, Listener&);
HEED_API std::unique_ptr<text::PairSource> open_dev_pairs(const RunOptions&, models::Task, Listener&);

// Learnt from the pairs, loaded from files, or those of the model that the run goes on from.
HEED_API data::Tokenizers chosen_tokenizers(const RunOptions&, models::Task, const text::PairSource&, Listener&);
// The model's options with the tokenizers' sizes.
HEED_API models::ModelOptions sized_model(const RunOptions&, const models::ModelOptions&, const data::Tokenizers&);

}  // namespace heed::train
