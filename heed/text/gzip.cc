// SPDX-License-Identifier: Apache-2.0
#include "heed/text/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "heed/base/error.h"

namespace heed::text {
namespace {

constexpr auto kFirst = std::byte{0x1F}, kSecond = std::byte{0x8B};
constexpr int kGzipOnly = 16 + MAX_WBITS;  // zlib's way to say: gzip's header, the largest window

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == kFirst && bytes[1] == kSecond;
}

struct Gunzip::Stream {
  z_stream z{};
  bool between = false;  // one member has ended, and no other has begun
  bool padding = false;  // zero bytes have come after the last member

  explicit Stream(const std::string& name) {
    if (inflateInit2(&z, kGzipOnly) != Z_OK) throw Error(name + ": no memory to unpack gzip");
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

Gunzip::Gunzip(std::string name) : name_(std::move(name)), stream_(std::make_unique<Stream>(name_)) {}
Gunzip::Gunzip(Gunzip&&) noexcept = default;
Gunzip::~Gunzip() = default;

void Gunzip::append(std::span<const std::byte> packed, std::string& out) {
  constexpr size_t kPiece = size_t{1} << 16;
  std::vector<char> piece(kPiece);
  z_stream& z = stream_->z;
  while (!packed.empty()) {
    if (stream_->between) {
      const auto text = std::find_if(packed.begin(), packed.end(), [](std::byte b) { return b != std::byte{0}; });
      stream_->padding = stream_->padding || text != packed.begin();
      packed = packed.subspan(static_cast<size_t>(text - packed.begin()));
      if (packed.empty()) return;
      if (stream_->padding || packed.front() != kFirst) throw Error(name_ + ": other bytes follow the gzip data");
      inflateReset(&z);
      stream_->between = false;
    }
    // zlib counts in 32 bits; its input is not const, and is not changed.
    const size_t some = std::min<size_t>(packed.size(), size_t{1} << 30);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    z.avail_in = static_cast<uInt>(some);
    int state = Z_OK;
    do {
      z.next_out = reinterpret_cast<Bytef*>(piece.data());
      z.avail_out = kPiece;
      state = inflate(&z, Z_NO_FLUSH);
      out.append(piece.data(), kPiece - z.avail_out);
      // Z_BUF_ERROR: all input is used, and there is nothing more to give.
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
        throw Error(name_ + ": the gzip data is damaged" + (z.msg ? std::string(": ") + z.msg : ""));
      }
    } while (state == Z_OK && (z.avail_in > 0 || z.avail_out == 0));
    packed = packed.subspan(some - z.avail_in);
    stream_->between = state == Z_STREAM_END;
  }
}

void Gunzip::finish() const {
  if (!stream_->between) throw Error(name_ + ": the gzip data is cut short");
}

}  // namespace heed::text
