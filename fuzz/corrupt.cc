// SPDX-License-Identifier: Apache-2.0
#include "fuzz/corrupt.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>

#include "fuzz/mutate.h"
#include "heed/base/error.h"
#include "heed/base/file.h"

namespace heed::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValues[] = {"0",           "-1",          "1",
                                        "2",           "3",           "7",
                                        "1000",        "65536",       "1000000",
                                        "16777216",    "20000000",    "4294967296",
                                        "1e300",       "-1e300",      "4611686018427387904",
                                        "1e999",       "NaN",         "\"x\"",
                                        "null",        "true",        "false",
                                        "[]",          "{}",          "0.5",
                                        "-0.0",        "1e-300",      "\"none\"",
                                        "\"rotary\"",  "\"learned\"", "\"alibi\"",
                                        "\"after\"",   "\"encoder\"", "\"decoder\"",
                                        "\"lstm\"",    "\"conv1d\"",  "\"additive\"",
                                        "\"classes\"", "\"current\"", "\"state\""};
constexpr std::string_view kTypes[] = {"F16", "BF16", "F64", "I32", "I64", "BOOL", "U8", "F8_E4M3", "x"};
constexpr size_t kLength = 8;  // bytes of the header's length in a safetensors file

class Corruptor {
 public:
  Corruptor(FolderFiles& files, const std::vector<FolderFiles>& others, Rng& rng)
      : files_(files), others_(others), rng_(rng) {}

  std::string once() {
    const std::string name = any_name();
    FolderFile& file = files_.at(name);
    const bool tensors = name.ends_with(".safetensors"), json = name.ends_with(".json");
    switch (rng_.below(14)) {
      case 0:
        return flip(file.bytes), name + ": bytes changed";
      case 1:
        return file.bytes.resize(rng_.below(file.bytes.size() + 1)), name + ": cut short";
      case 2:
        return files_.erase(name), name + ": lost";
      case 3:
        return file.kind = static_cast<FolderFile::Kind>(1 + rng_.below(3)), name + ": no regular file";
      case 4:
        return std::swap(file, files_.at(any_name())), name + ": swapped with another";
      case 5:
        return exchange(name), name + ": of another folder";
      case 6:
        return file.bytes.append(1 + rng_.below(100), static_cast<char>(rng_.below(256))), name + ": longer";
      default:
        if (tensors) return change_tensors(file.bytes), name + ": tensors changed";
        if (json && rng_.below(4)) return change_value(file.bytes), name + ": value changed";
        return file.bytes = mutated({file.bytes}, rng_.next_u64(), 0), name + ": text changed";
    }
  }

 private:
  template <class T, size_t N>
  const T& pick(const T (&list)[N]) {
    return list[rng_.below(N)];
  }
  // Those that say what the model is are changed most.
  std::string any_name() {
    for (const char* likely : {"config.json", "model.safetensors"}) {
      if (rng_.below(3) == 0 && files_.contains(likely)) return likely;
    }
    return std::next(files_.begin(), static_cast<std::ptrdiff_t>(rng_.below(files_.size())))->first;
  }
  void flip(std::string& bytes) {
    for (uint64_t left = 1 + rng_.below(8); left > 0 && !bytes.empty(); --left) {
      // Half of them at the beginning, where headers are.
      const size_t range = rng_.below(2) ? bytes.size() : std::min<size_t>(bytes.size(), 64);
      char& at = bytes[rng_.below(range)];
      at = static_cast<char>(rng_.below(2) ? at ^ 1 << rng_.below(8) : static_cast<int>(rng_.below(256)));
    }
  }
  void exchange(const std::string& name) {
    const FolderFiles& other = others_[rng_.below(others_.size())];
    const auto found = other.find(name);
    if (found != other.end()) files_[name] = found->second;
  }
  // What stands after a colon becomes something else; or a whole line goes, or comes twice.
  void change_value(std::string& text) {
    const size_t colon = text.find(": ", rng_.below(text.size() + 1));
    if (colon == text.npos) return;
    const size_t begin = colon + 2, end = std::min(text.find_first_of(",\n", begin), text.size());
    const size_t line = text.rfind('\n', colon) + 1, next = std::min(text.find('\n', colon), text.size());
    const std::string whole = text.substr(line, next - line);
    if (rng_.below(12) == 0) {
      text.erase(line, next - line);
    } else if (rng_.below(12) == 0) {
      text.insert(line, whole + "\n");
    } else if (std::isdigit(static_cast<unsigned char>(text[begin])) && rng_.below(3) == 0) {
      const auto near = std::strtoll(text.c_str() + begin, nullptr, 10) + static_cast<int64_t>(rng_.below(9)) - 4;
      text.replace(begin, end - begin, std::to_string(near));
    } else {
      text.replace(begin, end - begin, pick(kValues));
    }
  }
  // The header stays one that can be read as far as its length goes.
  void change_tensors(std::string& file) {
    if (file.size() < kLength) return;
    uint64_t length = 0;
    std::memcpy(&length, file.data(), kLength);
    if (length > file.size() - kLength) return;
    std::string header = file.substr(kLength, length), numbers = file.substr(kLength + length);
    switch (rng_.below(6)) {
      case 0:
        return fill(file, kLength + length);
      case 1:
        replace_after(header, "\"dtype\":\"", "\"", std::string(pick(kTypes)));
        break;
      case 2:
        replace_after(header, "\"shape\":[", "]", any_shape());
        break;
      case 3:
        replace_after(header, "\"data_offsets\":[", "]", any_shape());
        break;
      case 4:
        replace_after(header, "},\"", "\"", "renamed.weight");
        break;
      default:
        header = mutated({header.substr(0, 4000)}, rng_.next_u64(), 0) +
                 header.substr(std::min<size_t>(header.size(), 4000));
    }
    length = header.size();
    file.assign(reinterpret_cast<const char*>(&length), kLength).append(header).append(numbers);
  }
  void replace_after(std::string& text, std::string_view mark, std::string_view end, const std::string& with) {
    size_t at = text.find(mark, rng_.below(text.size() + 1));
    if (at == text.npos) at = text.find(mark);
    if (at == text.npos) return;
    at += mark.size();
    text.replace(at, std::min(text.find(end, at), text.size()) - at, with);
  }
  std::string any_shape() {
    std::string shape;
    for (uint64_t left = rng_.below(4); left > 0; --left) {
      const auto small = std::to_string(rng_.below(100));
      shape += (shape.empty() ? "" : ",") + (rng_.below(3) ? small : std::string("4611686018427387904"));
    }
    return shape;
  }
  // Numbers that no training gives, at some places or everywhere.
  void fill(std::string& file, size_t begin) {
    const float kinds[] = {std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::max(),
                           -std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(),
                           0.0f,
                           1e20f};
    const float value = pick(kinds);
    const uint64_t one_in = rng_.below(2) ? 1 : 1 + rng_.below(200);
    for (size_t at = begin; at + sizeof value <= file.size(); at += sizeof value) {
      if (rng_.below(one_in) == 0) std::memcpy(file.data() + at, &value, sizeof value);
    }
  }

  FolderFiles& files_;
  const std::vector<FolderFiles>& others_;
  Rng& rng_;
};

}  // namespace

FolderFiles read_files(const std::string& folder) {
  FolderFiles files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::vector<std::byte> bytes = read_file(entry.path(), uint64_t{1} << 24);
    files[entry.path().filename()] = {.bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  }
  return files;
}

void write_files(const FolderFiles& files, const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, file] : files) {
    const std::string path = folder + "/" + name;
    bool made = true;
    if (file.kind == FolderFile::Kind::regular) write_file_atomically(path, std::as_bytes(std::span(file.bytes)));
    if (file.kind == FolderFile::Kind::folder) made = fs::create_directory(path);
    if (file.kind == FolderFile::Kind::pipe) made = ::mkfifo(path.c_str(), 0600) == 0;
    if (file.kind == FolderFile::Kind::loop) fs::create_symlink(name, path);
    if (!made) throw Error(path + ": cannot create");
  }
}

std::string corrupt(FolderFiles& files, const std::vector<FolderFiles>& others, Rng& rng) {
  Corruptor corruptor(files, others, rng);
  std::string how;
  for (uint64_t left = rng.below(3) ? 1 : 1 + rng.below(3); left > 0 && !files.empty(); --left) {
    how += (how.empty() ? "" : "; ") + corruptor.once();
  }
  return how;
}

}  // namespace heed::fuzz
