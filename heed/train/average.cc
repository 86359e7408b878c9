// SPDX-License-Identifier: Apache-2.0
#include "heed/train/average.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "heed/base/error.h"
#include "heed/models/model.h"

namespace heed::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".safetensors";

// By step; what has another kind of name is not ours.
std::map<int64_t, fs::path> files_in(const std::string& folder) {
  std::map<int64_t, fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().stem().string();
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    if (number && entry.path().extension() == kExtension) files[std::stoll(name)] = entry.path();
  }
  return files;
}

}  // namespace

void Snapshots::add(int64_t step, const ParameterStore& parameters) {
  if (keep_ < 1) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error("cannot make folder '" + folder_ + "': " + error.message());
  models::save_parameters(parameters, (fs::path(folder_) / (std::to_string(step) + kExtension)).string());
  auto files = files_in(folder_);
  for (; std::ssize(files) > keep_; files.erase(files.begin())) fs::remove(files.begin()->second, error);
}

void Snapshots::cut_after(int64_t step) const {
  std::error_code ignored;
  for (const auto& [at, path] : files_in(folder_)) {
    if (at > step) fs::remove(path, ignored);
  }
}

int64_t Snapshots::count() const { return std::ssize(files_in(folder_)); }

void Snapshots::set_to_mean(const ParameterStore& parameters) const {
  const auto files = files_in(folder_);
  std::vector<double> sum(static_cast<size_t>(parameters.values().size()));
  for (const auto& [step, path] : files) {
    models::load_parameters(path.string(), parameters);
    const auto values = parameters.values().span<float>();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]};
  }
  const auto values = parameters.values().span<float>();
  for (size_t i = 0; i < sum.size(); ++i) values[i] = static_cast<float>(sum[i] / static_cast<double>(files.size()));
}

}  // namespace heed::train
