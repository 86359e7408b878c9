// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer.h"

#include <algorithm>
#include <limits>

#include "heed/base/file.h"
#include "heed/text/tokenizer_list.h"
#include "heed/text/tokenizer_sentencepiece.h"
#include "heed/text/utf8.h"

namespace heed::text {

std::unique_ptr<Tokenizer> train_tokenizer(std::span<const std::string> lines, const TokenizerOptions& options) {
  check_fields("tokenizer", options);
  if (options.vocabulary > std::numeric_limits<int32_t>::max()) {
    throw Error("tokenizer: vocabulary is " + std::to_string(options.vocabulary) + ", expected at most 2^31 - 1");
  }
  for (size_t i = 0; i < lines.size(); ++i) check_utf8(lines[i], "tokenizer: line " + std::to_string(i + 1));
  if (std::all_of(lines.begin(), lines.end(), [](const std::string& line) { return squeeze_spaces(line).empty(); })) {
    throw Error("tokenizer: the text is empty, expected something to learn from");
  }
  const bool list = options.kind == TokenizerKind::words || options.kind == TokenizerKind::characters;
  return list ? train_list_tokenizer(lines, options) : train_sentencepiece(lines, options);
}

std::vector<std::string> Tokenizer::surface(std::string_view text) const {
  std::vector<std::string> result;
  for (const int32_t id : encode(text)) result.push_back(decode({&id, 1}));
  return result;
}

namespace {

std::string read(const std::string& path) {
  constexpr uint64_t kLargest = uint64_t{1} << 28;
  const std::vector<std::byte> bytes = read_file(path, kLargest);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  std::string file = read(path);
  return file.starts_with(kListTokenizer) ? parse_list_tokenizer(file, path)
                                          : parse_sentencepiece(std::move(file), path);
}

std::unique_ptr<Tokenizer> import_tokenizer(const std::string& path, bool lowercase) {
  std::string file = read(path);
  return file.starts_with(kListTokenizer) ? parse_list_tokenizer(file, path)
                                          : import_sentencepiece(std::move(file), path, lowercase);
}

}  // namespace heed::text
