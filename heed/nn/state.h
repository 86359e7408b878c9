// SPDX-License-Identifier: Apache-2.0
#pragma once
// State: what decoding carries from step to step, one type for every model: keys and values so far of each attention
// layer, and tensors such as a recurrent layer's last state. Rows are hypotheses; reorder() lets each go on from
// another, and join() puts those of other sentences beside them.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/kernels/attention/kv_view.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

// Keys and values of one attention layer, in pages of some rows that lie anywhere in a pool. Hypotheses that share a
// beginning share its pages, and a page is copied only when two of them write to it: going on from oneself costs
// nothing, and beams of a sentence have one copy of its source. Stored in 16 bits they take half the memory, and each
// number has a relative error of at most 2^-8 (bf16) or 2^-11 (f16, from 2^-14 to 65504).
class HEED_API KvCache {
 public:
  static constexpr int64_t kPageRows = 32;

  // Empty. `dtype`: that rows are stored in; none: the one that they come in.
  explicit KvCache(std::optional<DType> dtype = {}) : dtype_(dtype) {}
  // All rows of k and v [B,S,width], one page each, shared where they are in `dtype` already.
  static KvCache of(const Tensor& k, const Tensor& v, std::optional<DType> dtype = {});

  // The tokens of k and v [B,n,width] go after those that are there.
  void append(const Tensor& new_k, const Tensor& new_v);
  // Row i goes on from what row parents[i] was; there may be more or fewer rows than before.
  void reorder(std::span<const int64_t> parents);
  // The rows of another cache of the same widths come after those of this one.
  void join(const KvCache& other);

  int64_t rows() const { return std::ssize(lengths_); }
  std::span<const int64_t> lengths() const { return lengths_; }  // [rows], in tokens
  int64_t length() const;                                        // of the longest row
  DType dtype() const { return k_.dtype(); }

  // All of it as one tensor [rows, length, width], zero beyond a row's own length. A copy, unless it lies so already;
  // kept until the cache changes.
  Tensor keys() const { return gathered(k_, gathered_k_); }
  Tensor values() const { return gathered(v_, gathered_v_); }
  // As attention reads them, [rows, heads, length, width / heads]: nothing is copied. Not in f64. Valid until the cache
  // changes.
  kernels::KvView keys_by_heads(int64_t heads) const { return paged(k_, heads); }
  kernels::KvView values_by_heads(int64_t heads) const { return paged(v_, heads); }

  size_t bytes() const;  // of the pool

 private:
  int32_t& page(int64_t row, int64_t i) { return table_[static_cast<size_t>(row * columns_ + i)]; }
  int32_t page(int64_t row, int64_t i) const { return table_[static_cast<size_t>(row * columns_ + i)]; }
  int64_t pages_for(int64_t tokens) const { return (tokens + page_rows_ - 1) / page_rows_; }
  void check_fits(const char* name, const Tensor& from, const Tensor& pool, int64_t tokens) const;
  void begin(const Tensor& new_k, const Tensor& new_v);
  void make_room(int64_t tokens);
  void reserve_columns(int64_t columns);
  void reserve_pages(int64_t wanted);
  int32_t take_page();
  void let_go(int32_t page);
  void begin_like(const KvCache& other);
  void add_rows(const KvCache& other);
  void copy_tokens(const KvCache& from, int64_t from_row, int64_t row);
  void forget_gathered() { gathered_k_ = gathered_v_ = Tensor(); }
  Tensor gathered(const Tensor& pool, Tensor& kept) const;
  kernels::KvView paged(const Tensor& pool, int64_t heads) const;

  std::optional<DType> dtype_;
  Tensor k_, v_;  // [pages, page_rows, width]
  int64_t page_rows_ = kPageRows;
  std::vector<int32_t> users_;  // of each page: rows that have it
  std::vector<int32_t> free_;   // pages without any
  std::vector<int32_t> table_;  // [rows, columns]: the pages of each row, 0 beyond
  int64_t columns_ = 0;
  std::vector<int64_t> lengths_;
  mutable Tensor gathered_k_, gathered_v_;
};

struct HEED_API State {
  std::vector<KvCache> self;            // grow step by step
  std::vector<KvCache> cross;           // made once, from the source
  std::vector<int64_t> source_lengths;  // [rows], of cross
  std::vector<Tensor> hidden;           // [rows,...]: carried as they are
  std::vector<int64_t> lengths;         // [rows]: tokens so far; empty before the first

  int64_t length() const;          // of the longest row
  bool has_equal_lengths() const;  // all rows have as many tokens
  // n tokens of each row have gone in.
  void advance(int64_t rows, int64_t n);

  // Row i goes on from what row parents[i] was; there may be more or fewer rows than before.
  void reorder(std::span<const int64_t> parents);
  // The rows of another state of the same model come after those of this one.
  void join(const State& other);
  size_t bytes() const;
};

}  // namespace heed::nn
