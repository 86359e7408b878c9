// SPDX-License-Identifier: Apache-2.0
#pragma once
// One writer a folder: who trains into a folder holds its lock, and a second one is told who does. The system lets go
// of the lock when its holder ends, however it ends, so that a killed run leaves nothing that has to be cleared away.
// Readers need none: every file of a folder is whole at any time. Where less than a folder has its writer, a file of
// any name is the lock. Processes on several machines exclude each other if their file system has flock, as NFS does.
#include <optional>
#include <string>

#include "heed/base/export.h"

namespace heed::folder {

class HEED_API Lock {
 public:
  // Throws Error if another has it: "folder 'model' is in use by process 4711 on host, since 2026-01-31 12:00:00 UTC".
  // The folder has to be there.
  explicit Lock(const std::string& folder);
  // Of the file `path`, which is there while it is held; none if another has it, and `holder` is then who that is.
  static std::optional<Lock> try_file(const std::string& path, std::string& holder);
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();

 private:
  Lock() = default;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace heed::folder
