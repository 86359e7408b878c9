// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/state.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>

#include "heed/base/error.h"
#include "heed/ops/heads.h"
#include "heed/tensor/convert.h"

namespace heed::nn {
namespace {

// Row i of the result is row parents[i].
Tensor gather_rows(const Tensor& from, std::span<const int64_t> parents) {
  if (!from) return {};
  Tensor to = Tensor::uninitialised(from.shape().with(0, std::ssize(parents)), from.dtype());
  const size_t row = parents.empty() ? 0 : to.bytes() / parents.size();
  for (size_t i = 0; i < parents.size(); ++i) {
    std::memcpy(to.raw() + i * row, from.raw() + static_cast<size_t>(parents[i]) * row, row);
  }
  return to;
}

Tensor concat_rows(const Tensor& a, const Tensor& b) {
  Tensor to = Tensor::uninitialised(a.shape().with(0, a.shape(0) + b.shape(0)), a.dtype());
  std::memcpy(to.raw(), a.raw(), a.bytes());
  std::memcpy(to.raw() + a.bytes(), b.raw(), b.bytes());
  return to;
}

// Token `at` of a page, of a pool [pages, page_rows, width].
std::byte* token(const Tensor& pool, int64_t page, int64_t at) {
  const int64_t width = pool.shape(2);
  return pool.raw() + static_cast<size_t>((page * pool.shape(1) + at) * width) * element_bytes(pool.dtype());
}

void copy_page(const Tensor& from, int64_t page, const Tensor& to, int64_t to_page, int64_t tokens) {
  const size_t bytes = static_cast<size_t>(tokens * from.shape(2)) * element_bytes(from.dtype());
  std::memcpy(token(to, to_page, 0), token(from, page, 0), bytes);
}

Tensor with_pages(const Tensor& pool, int64_t pages) {
  Tensor larger = Tensor::uninitialised(pool.shape().with(0, pages), pool.dtype());
  std::memcpy(larger.raw(), pool.raw(), pool.bytes());
  return larger;
}

void check_parents(std::span<const int64_t> parents, int64_t rows) {
  for (const int64_t parent : parents) {
    if (parent >= 0 && parent < rows) continue;
    throw Error("state: a parent is " + std::to_string(parent) + ", expected 0 to " + std::to_string(rows - 1));
  }
}

bool is_identity(std::span<const int64_t> parents, int64_t rows) {
  if (std::ssize(parents) != rows) return false;
  for (int64_t i = 0; i < rows; ++i) {
    if (parents[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

void gather(std::vector<int64_t>& values, std::span<const int64_t> parents) {
  if (values.empty()) return;
  std::vector<int64_t> to;
  for (const int64_t parent : parents) to.push_back(values[static_cast<size_t>(parent)]);
  values = std::move(to);
}

}  // namespace

KvCache KvCache::of(const Tensor& k, const Tensor& v, std::optional<DType> dtype) {
  const auto stored = [&](const Tensor& x) { return dtype && *dtype != x.dtype() ? x.converted(*dtype) : x; };
  KvCache cache(dtype);
  cache.k_ = stored(k);
  cache.v_ = stored(v);
  const int64_t B = k.shape(0);
  cache.page_rows_ = std::max<int64_t>(1, k.shape(1));
  cache.users_.assign(static_cast<size_t>(B), 1);
  cache.columns_ = 1;
  cache.table_.resize(static_cast<size_t>(B));
  std::iota(cache.table_.begin(), cache.table_.end(), 0);
  cache.lengths_.assign(static_cast<size_t>(B), k.shape(1));
  return cache;
}

int64_t KvCache::length() const { return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end()); }

// What comes is of the width and dtype of what is there, and of the other's number of tokens.
void KvCache::check_fits(const char* name, const Tensor& from, const Tensor& pool, int64_t tokens) const {
  const Shape expected = pool ? Shape{rows(), tokens, pool.shape(2)} : from.shape().with(1, tokens);
  const DType dtype = (pool && !dtype_ ? pool : from).dtype();
  if (from.shape() == expected && from.dtype() == dtype && is_floating(dtype)) return;
  throw Error(std::string("cache: ") + name + " of shape " + to_string(from.shape()) + " in " + name_of(from.dtype()) +
              " came, expected " + to_string(expected) + " in " + (is_floating(dtype) ? name_of(dtype) : "f32 or f64"));
}

void KvCache::begin(const Tensor& new_k, const Tensor& new_v) {
  lengths_.assign(static_cast<size_t>(new_k.shape(0)), 0);
  const auto pool = [&](const Tensor& from) {
    return Tensor::uninitialised({0, page_rows_, from.shape(2)}, dtype_.value_or(from.dtype()));
  };
  k_ = pool(new_k);
  v_ = pool(new_v);
}

void KvCache::append(const Tensor& new_k, const Tensor& new_v) {
  const int64_t tokens = new_k.shape(1);
  check_fits("keys", new_k, k_, tokens);
  check_fits("values", new_v, v_, tokens);
  if (!k_) begin(new_k, new_v);
  forget_gathered();
  if (!k_.sole()) k_ = k_.clone();  // a copy of this cache has it, too
  if (!v_.sole()) v_ = v_.clone();
  make_room(tokens);
  const auto write = [&](const Tensor& from, const Tensor& pool) {
    const int64_t width = from.shape(2);
    const std::byte* source = from.raw();
    for (int64_t row = 0; row < rows(); ++row) {
      for (int64_t i = 0, run; i < tokens; i += run) {
        const int64_t at = lengths_[static_cast<size_t>(row)] + i;
        run = std::min(tokens - i, page_rows_ - at % page_rows_);
        convert_numbers(source, from.dtype(), token(pool, page(row, at / page_rows_), at % page_rows_), pool.dtype(),
                        run * width);
        source += static_cast<size_t>(run * width) * element_bytes(from.dtype());
      }
    }
  };
  write(new_k, k_);
  write(new_v, v_);
  for (int64_t& length : lengths_) length += tokens;
}

// Pages for so many more tokens of each row, none of which another row sees.
void KvCache::make_room(int64_t tokens) {
  if (tokens == 0) return;
  int64_t wanted = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t length = lengths_[static_cast<size_t>(row)];
    const bool shared = length % page_rows_ != 0 && users_[static_cast<size_t>(page(row, length / page_rows_))] > 1;
    wanted += pages_for(length + tokens) - pages_for(length) + (shared ? 1 : 0);
  }
  reserve_columns(pages_for(length() + tokens));
  reserve_pages(wanted);
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t length = lengths_[static_cast<size_t>(row)], used = length % page_rows_;
    if (used != 0) {
      int32_t& last = page(row, length / page_rows_);
      if (users_[static_cast<size_t>(last)] > 1) {
        const int32_t own = take_page();
        copy_page(k_, last, k_, own, used);
        copy_page(v_, last, v_, own, used);
        let_go(last);
        last = own;
      }
    }
    for (int64_t i = pages_for(length); i < pages_for(length + tokens); ++i) page(row, i) = take_page();
  }
}

void KvCache::reserve_columns(int64_t columns) {
  if (columns <= columns_) return;
  columns = std::max(columns, 2 * columns_);
  std::vector<int32_t> table(static_cast<size_t>(rows() * columns));
  for (int64_t row = 0; row < rows(); ++row) {
    std::copy_n(table_.begin() + row * columns_, columns_, table.begin() + row * columns);
  }
  table_ = std::move(table);
  columns_ = columns;
}

// So many pages can be taken without the pool growing.
void KvCache::reserve_pages(int64_t wanted) {
  const int64_t there = std::ssize(users_), missing = wanted - std::ssize(free_);
  if (missing <= 0) return;
  const int64_t pages = std::max(there + missing, 2 * there);
  k_ = with_pages(k_, pages);
  v_ = with_pages(v_, pages);
  users_.resize(static_cast<size_t>(pages), 0);
  for (int64_t page = pages - 1; page >= there; --page) free_.push_back(static_cast<int32_t>(page));
}

int32_t KvCache::take_page() {
  const int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvCache::let_go(int32_t page) {
  if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void KvCache::reorder(std::span<const int64_t> parents) {
  check_parents(parents, rows());
  if (is_identity(parents, rows())) return;
  std::vector<int32_t> table;
  std::vector<int64_t> lengths;
  table.reserve(parents.size() * static_cast<size_t>(columns_));
  for (const int64_t parent : parents) {
    const auto first = table_.begin() + parent * columns_;
    table.insert(table.end(), first, first + columns_);
    lengths.push_back(lengths_[static_cast<size_t>(parent)]);
    for (int64_t i = 0; i < pages_for(lengths.back()); ++i) ++users_[static_cast<size_t>(page(parent, i))];
  }
  for (int64_t row = 0; row < rows(); ++row) {
    for (int64_t i = 0; i < pages_for(lengths_[static_cast<size_t>(row)]); ++i) let_go(page(row, i));
  }
  if (table != table_ || lengths != lengths_) forget_gathered();
  table_ = std::move(table);
  lengths_ = std::move(lengths);
}

void KvCache::copy_tokens(const KvCache& from, int64_t from_row, int64_t row) {
  const int64_t length = lengths_[static_cast<size_t>(row)];
  const auto copy = [&](const Tensor& source, const Tensor& pool) {
    const size_t bytes = static_cast<size_t>(pool.shape(2)) * element_bytes(pool.dtype());
    for (int64_t at = 0, run; at < length; at += run) {
      run = std::min({length - at, page_rows_ - at % page_rows_, from.page_rows_ - at % from.page_rows_});
      std::memcpy(token(pool, page(row, at / page_rows_), at % page_rows_),
                  token(source, from.page(from_row, at / from.page_rows_), at % from.page_rows_),
                  static_cast<size_t>(run) * bytes);
    }
  };
  copy(from.k_, k_);
  copy(from.v_, v_);
}

void KvCache::join(const KvCache& other) {
  if (other.rows() == 0) return;
  if (rows() == 0) {
    *this = other;
    return;
  }
  for (const auto& [name, from, to] : {std::tuple("keys", &other.k_, &k_), std::tuple("values", &other.v_, &v_)}) {
    if (from->shape(2) == to->shape(2) && from->dtype() == to->dtype()) continue;
    throw Error(std::string("cache: ") + name + " of width " + std::to_string(from->shape(2)) + " in " +
                name_of(from->dtype()) + " came to be joined, expected " + std::to_string(to->shape(2)) + " in " +
                name_of(to->dtype()));
  }
  if (other.page_rows_ > page_rows_) {  // pages of the larger size for all, so that each source stays in one
    KvCache larger(dtype_);
    larger.page_rows_ = other.page_rows_;
    larger.begin_like(*this);
    larger.add_rows(*this);
    *this = std::move(larger);
  }
  add_rows(other);
}

// Pages without anything in them yet.
void KvCache::begin_like(const KvCache& other) {
  k_ = Tensor::uninitialised({0, page_rows_, other.k_.shape(2)}, other.k_.dtype());
  v_ = Tensor::uninitialised({0, page_rows_, other.v_.shape(2)}, other.v_.dtype());
}

// Copies of another cache's rows, after those that are there.
void KvCache::add_rows(const KvCache& other) {
  forget_gathered();
  const int64_t before = rows();
  int64_t wanted = 0;
  for (const int64_t length : other.lengths_) wanted += pages_for(length);
  reserve_columns(pages_for(other.length()));
  reserve_pages(wanted);
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  table_.resize(static_cast<size_t>(rows() * columns_), 0);
  for (int64_t i = 0; i < other.rows(); ++i) {
    for (int64_t p = 0; p < pages_for(other.lengths_[static_cast<size_t>(i)]); ++p) page(before + i, p) = take_page();
    copy_tokens(other, i, before + i);
  }
}

Tensor KvCache::gathered(const Tensor& pool, Tensor& kept) const {
  if (!pool || kept) return kept;
  const int64_t longest = length(), width = pool.shape(2);
  bool in_place = longest == page_rows_ && pool.shape(0) == rows();
  for (int64_t row = 0; in_place && row < rows(); ++row) {
    in_place = page(row, 0) == row && lengths_[static_cast<size_t>(row)] == longest;
  }
  if (in_place) return kept = pool;
  kept = Tensor::zeros({rows(), longest, width}, pool.dtype());
  const size_t bytes = static_cast<size_t>(width) * element_bytes(pool.dtype());
  for (int64_t row = 0; row < rows(); ++row) {
    const int64_t tokens = lengths_[static_cast<size_t>(row)];
    for (int64_t at = 0, run; at < tokens; at += run) {
      run = std::min(tokens - at, page_rows_);
      std::memcpy(kept.raw() + static_cast<size_t>(row * longest + at) * bytes,
                  token(pool, page(row, at / page_rows_), 0), static_cast<size_t>(run) * bytes);
    }
  }
  return kept;
}

kernels::KvView KvCache::paged(const Tensor& pool, int64_t heads) const {
  const View<const int32_t, 2> table(table_.data(), {rows(), columns_});
  const auto view = [&](auto type) {
    return kernels::KvView::paged(ops::by_heads<const decltype(type)>(pool, heads), table, length());
  };
  if (pool.dtype() == DType::bf16) return view(BFloat16{});
  if (pool.dtype() == DType::f16) return view(Float16{});
  return view(float{});
}

size_t KvCache::bytes() const { return k_ ? k_.bytes() + v_.bytes() : 0; }

int64_t State::length() const { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }

bool State::has_equal_lengths() const {
  return std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) == lengths.end();
}

void State::advance(int64_t rows, int64_t n) {
  if (lengths.empty()) lengths.assign(static_cast<size_t>(rows), 0);
  for (int64_t& length : lengths) length += n;
}

void State::reorder(std::span<const int64_t> parents) {
  const int64_t rows = !self.empty() && self[0].rows() > 0 ? self[0].rows()
                       : !hidden.empty()                   ? hidden[0].shape(0)
                                                           : std::ssize(source_lengths);
  check_parents(parents, rows);
  if (is_identity(parents, rows)) return;
  for (std::vector<KvCache>* caches : {&self, &cross}) {
    for (KvCache& cache : *caches) cache.reorder(parents);
  }
  for (Tensor& tensor : hidden) tensor = gather_rows(tensor, parents);
  gather(source_lengths, parents);
  gather(lengths, parents);
}

void State::join(const State& other) {
  if (self.size() != other.self.size() || cross.size() != other.cross.size() || hidden.size() != other.hidden.size()) {
    throw Error("state: a state with " + std::to_string(other.self.size()) + " + " +
                std::to_string(other.cross.size()) + " caches and " + std::to_string(other.hidden.size()) +
                " tensors came to be joined, expected " + std::to_string(self.size()) + " + " +
                std::to_string(cross.size()) + " and " + std::to_string(hidden.size()));
  }
  for (size_t i = 0; i < self.size(); ++i) self[i].join(other.self[i]);
  for (size_t i = 0; i < cross.size(); ++i) cross[i].join(other.cross[i]);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = concat_rows(hidden[i], other.hidden[i]);
  source_lengths.insert(source_lengths.end(), other.source_lengths.begin(), other.source_lengths.end());
  lengths.insert(lengths.end(), other.lengths.begin(), other.lengths.end());
}

size_t State::bytes() const {
  size_t total = 0;
  for (const auto* caches : {&self, &cross}) {
    for (const KvCache& cache : *caches) total += cache.bytes();
  }
  for (const Tensor& tensor : hidden) total += tensor.bytes();
  return total;
}

}  // namespace heed::nn
