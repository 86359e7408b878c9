#pragma once
// What tests of any folder share: the text of an error, and a folder that goes away.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "heed/base/error.h"

namespace heed::testing {

// The text of the Error that a call throws, or "no error".
std::string error_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::testing::TempDir() + "heed." + std::to_string(::getpid()) + ".XXXXXX") {
    if (!::mkdtemp(path_.data())) throw Error(path_ + ": cannot create");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  size_t count() const {
    const std::filesystem::directory_iterator entries(path_);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  std::string path_;
};

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace heed::testing
