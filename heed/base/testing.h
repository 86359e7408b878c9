// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests of any folder share: the seed of their draws, the text of an error, and a folder that goes away. The main
// function of all test programs is in testing.cc.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "heed/base/error.h"

namespace heed::testing {

// One seed moves all that tests draw at random: the variable HEED_TEST_SEED, or 0. Error if it is no whole number.
uint64_t seed_of_run();

// What a test writes in place of a constant: Rng rng(seeded(3)). Distinct numbers give distinct seeds in every run.
// Only what compares with stored numbers, or waits for a training to succeed, has a seed that stays.
inline uint64_t seeded(uint64_t number) { return number + seed_of_run() * 0x9E3779B97F4A7C15; }

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
