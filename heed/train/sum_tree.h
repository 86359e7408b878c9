// SPDX-License-Identifier: Apache-2.0
#pragma once
// The binary tree by which the gradients of a step's micro-batches are added up. It depends on their number alone:
// whoever computes which of them, each sum is of the same two terms, and so of the same bits.
//
//   7 micro-batches:  ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
//
// A rank has neighbouring micro-batches, so that most sums are its own affair: what is left are the roots of its
// subtrees, one where the number of micro-batches is the number of ranks times a power of two.
#include <bit>
#include <cstdint>
#include <vector>

namespace heed::train {

// Micro-batches [begin, end), as a node of the tree: a single one, or the sum of its two halves.
struct SumNode {
  int64_t begin = 0, end = 0;

  bool single() const { return end - begin == 1; }
  // Where the right half begins: the left one has the largest power of two that is less than all.
  int64_t middle() const {
    return begin + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(end - begin - 1)));
  }
  SumNode left() const { return {begin, middle()}; }
  SumNode right() const { return {middle(), end}; }
  bool operator==(const SumNode&) const = default;
};

// The micro-batches of one rank of several: as many as of any other, or one more or less.
inline SumNode share_of_rank(int64_t micro_batches, int rank, int ranks) {
  return {micro_batches * rank / ranks, micro_batches * (rank + 1) / ranks};
}

// The nodes under `node` that lie wholly in `share`, and whose parents do not: what a rank can add up by itself.
inline void add_roots(const SumNode& node, const SumNode& share, std::vector<SumNode>& roots) {
  if (node.end <= share.begin || share.end <= node.begin) return;
  if (share.begin <= node.begin && node.end <= share.end) return roots.push_back(node);
  add_roots(node.left(), share, roots);
  add_roots(node.right(), share, roots);
}
inline std::vector<SumNode> roots_of(int64_t micro_batches, const SumNode& share) {
  std::vector<SumNode> roots;
  add_roots({0, micro_batches}, share, roots);
  return roots;
}

// The node that `node` is half of, below `top`; {} where it is the top itself.
inline SumNode parent_of(const SumNode& node, SumNode top) {
  SumNode parent;
  while (top != node) {
    parent = top;
    top = node.begin < top.middle() ? top.left() : top.right();
  }
  return parent;
}

}  // namespace heed::train
