// SPDX-License-Identifier: Apache-2.0
// Corpora of lines with columns, plain and packed by gzip.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <string>

#include "fuzz/check.h"
#include "heed/text/corpus.h"
#include "heed/text/utf8.h"

namespace heed::fuzz {
namespace {

// A file without a name on disk: corpora are opened by their path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "the system gives a file in memory");
    require(::write(descriptor_, bytes.data(), bytes.size()) == std::ssize(bytes), "the file in memory can be written");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

int64_t lines_that_come(const std::string& path) {
  text::LineReader reader = text::open_lines(path);
  int64_t lines = 0;
  for (std::string line; reader.next(line);) ++lines;
  return lines;
}

text::Corpus read(const std::string& path, const text::TsvOptions& options) {
  const text::Corpus corpus = text::read_tsv(path, options);
  const text::CorpusReport& report = corpus.report;
  require(report.kept > 0 && report.kept == std::ssize(corpus.pairs), "what is kept is there");
  require(report.lines == report.kept + report.empty + report.too_long, "every line is counted once");
  require(report.lines == lines_that_come(path), "a file has as many lines as a stream of it");
  for (const text::Pair& pair : corpus.pairs) {
    require(pair.line >= 1 && pair.line <= report.lines, "a pair knows its line");
    require(pair.source.empty() == (options.source_column == 0) && !pair.target.empty(), "sentences are not empty");
    require(std::ssize(pair.target) <= options.max_bytes || options.lowercase, "sentences are not too long");
    require(text::find_invalid_utf8(pair.source + pair.target) == std::string::npos, "sentences are UTF-8");
  }
  return corpus;
}

// Two columns, and the second alone with other options.
void read_in_two_ways(std::span<const std::byte> file) {
  const MemoryFile memory(text_of(file));
  read(memory.path(), {});
  read(memory.path(), {.source_column = 0, .target_column = 2, .lowercase = true, .max_bytes = 20});
}

std::string packed(std::string_view text) {
  z_stream z{};
  require(deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib has memory");
  std::string result(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(result.data());
  z.avail_out = static_cast<uInt>(result.size());
  require(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib packs it at once");
  result.resize(z.total_out);
  deflateEnd(&z);
  return result;
}

// Few changes leave a sound gzip file: here the changed text is packed, and reads as it does by itself.
void read_packed(std::span<const std::byte> file) {
  const std::string_view text = text_of(file);
  if (text.starts_with("\x1F\x8B")) throw Error("packed already");
  const MemoryFile plain(text), small(packed(text));
  const text::Corpus one = read(plain.path(), {}), other = read(small.path(), {});
  require(one.report.to_string() == other.report.to_string(), "packed or not, the report is the same");
  for (size_t i = 0; i < one.pairs.size(); ++i) {
    require(one.pairs[i].source == other.pairs[i].source && one.pairs[i].target == other.pairs[i].target,
            "packed or not, the pairs are the same");
  }
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  heed::fuzz::try_to_read(input, heed::fuzz::read_in_two_ways);
  heed::fuzz::try_to_read(input, heed::fuzz::read_packed);
  return 0;
}
