#pragma once
// A model folder as commands open it: the errors say what a user of the command line should do.
#include <string>

#include "heed/decode/engine.h"

namespace heed::cli {

// `flag` is what was to name the folder. Throws UsageError where it is missing, Error where it is broken.
decode::Engine open_engine(const std::string& folder, int threads, const std::string& flag = "--model");
// The same for a model of one task; the message names the command for what the model does.
decode::Engine open_engine(const std::string& folder, int threads, models::Task task);

}  // namespace heed::cli
