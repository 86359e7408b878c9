// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/ring_check.h"

#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/dist/agree.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::dist {
namespace {

using kernels::AttentionInputs;
using kernels::AttentionOptions;
using kernels::Mask;
using kernels::MaskAlignment;

constexpr int64_t kMostPosition = int64_t{1} << 24;  // the kernel compares positions as floats, exact up to here

[[noreturn]] void fail(const std::string& what) { throw Error("ring attention: " + what); }

void check_kinds(const AttentionInputs& in, const AttentionOptions& options) {
  if (in.bias) fail("bias is given, expected none");
  if (in.head_gate) fail("head_gate is given, expected none");
  if (in.w) fail("w is given, expected none: the score is the dot product");
  for (const kernels::KvView* rows : {&in.k, &in.v}) {
    const char* name = rows == &in.k ? "k" : "v";
    if (rows->dtype() != DType::f32) fail(std::string(name) + " is in " + name_of(rows->dtype()) + ", expected f32");
    if (rows->is_paged()) fail(std::string(name) + " is paged, expected rows");
  }
  if (options.dropout.on()) fail("dropout.rate is " + std::to_string(options.dropout.rate) + ", expected 0");
  if (options.mask.dense) fail("the mask has Dense, expected Causal, Window, Lengths and Alibi alone");
  if (options.mask.packed) fail("the mask has Packed, expected Causal, Window, Lengths and Alibi alone");
}

void check_alignment(const char* name, const MaskAlignment& align, const Mask& mask) {
  if (align.kind == MaskAlignment::Kind::bottom_right && mask.lengths) {
    fail(std::string(name) + " is aligned bottom_right beside Lengths, expected an offset");
  }
}

void check_mask(const Mask& mask, int64_t B, int64_t length) {
  if (mask.causal) check_alignment("causal", mask.causal->align, mask);
  if (mask.window) check_alignment("window", mask.window->align, mask);
  if (mask.alibi) {
    check_alignment("alibi", mask.alibi->align, mask);
    if (length > kMostPosition / 2 || std::abs(mask.alibi->align.offset) > kMostPosition / 2) {
      fail("alibi over " + std::to_string(length) + " rows with an offset of " +
           std::to_string(mask.alibi->align.offset) + ", expected at most " + std::to_string(kMostPosition / 2) +
           " of either");
    }
  }
  const kernels::Visibility visibility(mask, B, length, length);  // throws where it does not fit the sequence
}

void check_rows(const char* name, const Dims<4>& shape, const Placement& placement, int rank) {
  if (shape[2] == placement.rows(rank)) return;
  fail(std::string(name) + " has shape " + to_string(shape) + ", expected " + std::to_string(placement.rows(rank)) +
       " rows (of rank " + std::to_string(rank) + ", of a sequence of " + std::to_string(placement.length()) + ")");
}

void check_map(const View<float, 4>& map, const Placement& placement) {
  if (!map) return;
  const int64_t chunks = placement.chunks();
  if (map.shape(2) % 2 == 0 && map.shape(3) % chunks == 0 && placement.length() % chunks == 0) return;
  fail("a rank's rows of the map have shape " + to_string(map.shape()) + ", of a sequence of " +
       std::to_string(placement.length()) + ": expected an even number of rows, and columns and a length that " +
       std::to_string(chunks) + " divides");
}

// What a rank can check by itself: the plans of the kernels say what is wrong with its views.
void check_alone(const RingCall& call, const Placement& placement, int rank) {
  if (placement.length() < placement.chunks()) {
    fail("a sequence of " + std::to_string(placement.length()) + " rows on " + std::to_string(placement.ranks()) +
         " ranks, expected " + std::to_string(placement.chunks()) + " rows or more");
  }
  check_kinds(call.in, call.options);
  check_rows("q", call.in.q.shape(), placement, rank);
  check_rows("k", call.in.k.shape(), placement, rank);
  check_mask(call.options.mask, call.in.q.shape(0), placement.length());
  AttentionOptions own = call.options;  // the constraints of the whole sequence do not fit a part of it
  own.mask = {};
  own.mask.alibi = call.options.mask.alibi;
  switch (call.pass) {
    case RingCall::Pass::forward:
      kernels::AttentionPlan::forward(call.in, call.out, own);
      if (call.out.top_keys && placement.length() > std::numeric_limits<int32_t>::max()) {
        fail("top_keys over " + std::to_string(placement.length()) + " rows, expected at most 2^31 - 1");
      }
      return;
    case RingCall::Pass::backward:
      kernels::AttentionPlan::backward(call.in, call.grad, own);
      return;
    case RingCall::Pass::observe:
      if (call.to.rows || !call.to.queries.empty()) fail("observe: rows are wanted, expected received and maps alone");
      kernels::ObservationPlan::make(call.in, call.stats, call.to, own);
      check_map(call.to.map_mean, placement);
      check_map(call.to.map_max, placement);
      return;
  }
}

template <class T>
std::string list(std::span<const T> numbers) {
  std::string text = "[";
  for (const T& x : numbers) text += (text.size() > 1 ? ", " : "") + shortest(x);
  return text + "]";
}

std::string describe(const MaskAlignment& align) {
  return align.kind == MaskAlignment::Kind::bottom_right ? "bottom_right" : "offset " + std::to_string(align.offset);
}

std::vector<Fact> common_facts(const RingCall& call, const Placement& placement) {
  const char* passes[] = {"forward", "backward", "observe"};
  const Dims<4>&q = call.in.q.shape(), &k = call.in.k.shape();
  const Mask& mask = call.options.mask;
  std::string window = "none";
  if (mask.window) {
    const auto& [left, right, align] = *mask.window;
    window = std::to_string(left) + " to the left, " + std::to_string(right) + " to the right, " + describe(align);
  }
  return {{"the pass", passes[static_cast<int>(call.pass)]},
          {"length", std::to_string(placement.length())},
          {"B", std::to_string(q[0])},
          {"Hq", std::to_string(q[1])},
          {"Hk", std::to_string(k[1])},
          {"D", std::to_string(q[3])},
          {"Dv", std::to_string(call.in.v.shape(3))},
          {"scale", call.options.scale ? shortest(*call.options.scale) : "by D"},
          {"softcap", shortest(call.options.softcap)},
          {"causal", mask.causal ? describe(mask.causal->align) : "none"},
          {"window", window},
          {"lengths", mask.lengths ? list(mask.lengths->keys) : "none"},
          {"alibi", mask.alibi ? describe(mask.alibi->align) + ", slopes " + list(mask.alibi->slopes) : "none"},
          {"received", call.to.received ? "wanted" : "not wanted"}};
}

}  // namespace

void check_together(const RingCall& call, const Placement& placement, Communicator& communicator) {
  std::string mine;
  try {
    check_alone(call, placement, communicator.rank());
  } catch (const Error& error) {
    mine = error.what();
  }
  const std::vector<std::string> all = communicator.all_gather(mine);
  if (!mine.empty()) throw Error(mine);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) throw Error("rank " + std::to_string(rank) + ": " + all[rank]);
  }
  agree(communicator, common_facts(call, placement));
}

}  // namespace heed::dist
