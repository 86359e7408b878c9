#pragma once
// What a command line asks for: parsing sets it, and it is run once the whole line has been understood.
#include <functional>

namespace heed::cli {

using Action = std::function<void()>;

}  // namespace heed::cli
