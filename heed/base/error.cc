#include "heed/base/error.h"

namespace heed {

// Defined out of line so that the type's information lives in one library, and catching works across them.
Error::~Error() = default;

}  // namespace heed
