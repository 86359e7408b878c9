#include "heed/nn/state.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "heed/base/error.h"
#include "heed/tensor/convert.h"

namespace heed::nn {
namespace {

constexpr int64_t kFirstRoom = 32;  // rows

// Row i of the result is row parents[i].
Tensor gathered(const Tensor& from, std::span<const int64_t> parents) {
  if (!from) return {};
  Tensor to = Tensor::uninitialised(from.shape().with(0, std::ssize(parents)), from.dtype());
  const size_t row = parents.empty() ? 0 : to.bytes() / parents.size();
  for (size_t i = 0; i < parents.size(); ++i) {
    std::memcpy(to.raw() + i * row, from.raw() + static_cast<size_t>(parents[i]) * row, row);
  }
  return to;
}

// A tensor of `shape` that begins with the first `rows` of each batch, which are in `dtype` already.
Tensor with_room(const Tensor& from, int64_t rows, const Shape& shape, DType dtype) {
  Tensor to = Tensor::uninitialised(shape, dtype);
  if (!from || to.size() == 0) return to;
  const size_t from_batch = from.bytes() / static_cast<size_t>(from.shape(0)),
               to_batch = to.bytes() / static_cast<size_t>(shape[0]);
  const size_t used = from_batch / static_cast<size_t>(from.shape(1)) * static_cast<size_t>(rows);
  for (size_t b = 0; b < static_cast<size_t>(shape[0]); ++b) {
    std::memcpy(to.raw() + b * to_batch, from.raw() + b * from_batch, used);
  }
  return to;
}

void append_rows(const Tensor& from, int64_t at, const Tensor& to) {
  if (from.size() == 0) return;
  const int64_t batches = from.shape(0), block = from.size() / batches;
  const int64_t row = block / from.shape(1), to_batch = to.size() / batches;
  const auto place = [](const Tensor& x, int64_t i) {
    return x.raw() + static_cast<size_t>(i) * element_bytes(x.dtype());
  };
  for (int64_t b = 0; b < batches; ++b) {
    convert_numbers(place(from, b * block), from.dtype(), place(to, b * to_batch + at * row), to.dtype(), block);
  }
}

// What comes is of the shape of what is there, but for the number of rows, which is `rows`. It is of the same dtype,
// too, unless `converts`.
void check_fits(const char* name, const Tensor& from, const Tensor& there, int64_t rows, bool converts) {
  const Shape expected = (there ? there : from).shape().with(1, rows);
  const DType dtype = (there && !converts ? there : from).dtype();
  if (from.shape() == expected && from.dtype() == dtype && is_floating(dtype)) return;
  throw Error(std::string("cache: ") + name + " of shape " + to_string(from.shape()) + " in " + name_of(from.dtype()) +
              " came, expected " + to_string(expected) + " in " + (is_floating(dtype) ? name_of(dtype) : "f32 or f64"));
}

}  // namespace

KvCache KvCache::of(const Tensor& k, const Tensor& v, std::optional<DType> dtype) {
  const auto stored = [&](const Tensor& x) { return dtype && *dtype != x.dtype() ? x.converted(*dtype) : x; };
  return {.k = stored(k), .v = stored(v), .length = k.shape(1), .dtype = dtype};
}

void KvCache::append(const Tensor& new_k, const Tensor& new_v) {
  check_fits("keys", new_k, k, new_k.shape(1), dtype.has_value());
  check_fits("values", new_v, v, new_k.shape(1), dtype.has_value());
  const int64_t needed = length + new_k.shape(1);
  if (!k || needed > k.shape(1)) {
    const int64_t room = std::max({kFirstRoom, needed, k ? 2 * k.shape(1) : 0});
    k = with_room(k, length, new_k.shape().with(1, room), dtype.value_or(new_k.dtype()));
    v = with_room(v, length, new_v.shape().with(1, room), dtype.value_or(new_v.dtype()));
  }
  append_rows(new_k, length, k);
  append_rows(new_v, length, v);
  length = needed;
}

void State::reorder(std::span<const int64_t> parents) {
  const int64_t rows = !self.empty() && self[0].k ? self[0].k.shape(0)
                       : !hidden.empty()          ? hidden[0].shape(0)
                                                  : std::ssize(source_lengths);
  for (int64_t parent : parents) {
    if (parent < 0 || parent >= rows) {
      throw Error("state: a parent is " + std::to_string(parent) + ", expected 0 to " + std::to_string(rows - 1));
    }
  }
  for (std::vector<KvCache>* caches : {&self, &cross}) {
    for (KvCache& cache : *caches) {
      cache.k = gathered(cache.k, parents);
      cache.v = gathered(cache.v, parents);
    }
  }
  for (Tensor& tensor : hidden) tensor = gathered(tensor, parents);
  std::vector<int64_t> lengths;
  for (int64_t parent : parents) {
    if (!source_lengths.empty()) lengths.push_back(source_lengths[static_cast<size_t>(parent)]);
  }
  source_lengths = std::move(lengths);
}

size_t State::bytes() const {
  size_t total = 0;
  for (const auto* caches : {&self, &cross}) {
    for (const KvCache& cache : *caches) total += cache.k ? cache.k.bytes() + cache.v.bytes() : 0;
  }
  for (const Tensor& tensor : hidden) total += tensor.bytes();
  return total;
}

}  // namespace heed::nn
