// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ranks of a run have to have in common, and what several of them need of the options.
// Not here: the steps (trainer.h).
#include <string>
#include <vector>

#include "heed/data/batches.h"
#include "heed/dist/agree.h"
#include "heed/models/model.h"
#include "heed/train/run.h"

namespace heed::train {

// The options for so many ranks: a sum in sequence becomes one by a tree. Throws Error for options that only a single
// process can have.
RunOptions options_for_ranks(const RunOptions&, const dist::Communicator&, Listener&);

// Options but for the names of files, which may lie elsewhere on another machine; what the files hold; how heed
// computes.
std::vector<dist::Fact> facts_of_run(const RunOptions&, const models::ModelOptions&,
                                     const std::map<std::string, std::string>& data_ids, const data::BatchSource&);
// Where learning begins.
std::vector<dist::Fact> facts_of_parameters(const models::Model&, int64_t steps_done);

}  // namespace heed::train
