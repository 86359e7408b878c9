// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of attention, chooses the kernel and divides the work. After this, nothing can fail.
#include "heed/kernels/attention/plan.h"

#include <cmath>
#include <memory>
#include <utility>

#include "heed/base/error.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/check.h"
#include "heed/kernels/attention/forward.h"

namespace heed::kernels {

namespace {

constexpr int64_t kQueries = 128;       // in a block; kMaxQueries where rows of K and V are gathered for each block
constexpr int64_t kQueriesInTurn = 64;  // in a block where tasks wait for each other at each
constexpr int64_t kMaxWidth = 2048;     // of a head; recurrent models have one head as wide as their state
constexpr int64_t kMaxKeys = 1 << 24;   // positions are compared as floats, exact up to here
constexpr double kNearBytes = 4 << 20;  // inputs and outputs that about fit into L2 from call to call
constexpr int64_t kBackwardTasks = 8;   // backward splits the keys where there are few heads, for about as many tasks
constexpr int64_t kMinBackwardChunk = 480;  // keys
// Decode cuts long sequences of keys in the same places whatever the batch is: a row's bits do not depend on it.
constexpr int64_t kDecodeChunk = 1024;

// "[2, 8, S, 64]": an extent that may be anything is written as its letter.
struct Expected {
  std::string text = "[";
  bool matches = true;

  Expected& exactly(int64_t came, int64_t extent) { return add(std::to_string(extent), came == extent); }
  Expected& any(const char* letter) { return add(letter, true); }

 private:
  Expected& add(const std::string& item, bool match) {
    text += (text.size() > 1 ? ", " : "") + item;
    matches = matches && match;
    return *this;
  }
};

template <size_t Rank>
void check_shape(const char* name, const Dims<Rank>& shape, const Expected& expected) {
  if (!expected.matches)
    fail(std::string(name) + " has shape " + to_string(shape) + ", expected " + expected.text + "]");
}

// A view that broadcasts to [B,Hq,T,S].
template <class T>
void check_broadcast(const char* name, const View<T, 4>& view, const AttentionShape& s) {
  const Dims<4> whole{s.B, s.Hq, s.T, s.S};
  for (size_t i = 0; i < 4; ++i) {
    if (view.shape(i) != whole[i] && view.shape(i) != 1) {
      fail(std::string(name) + " has shape " + to_string(view.shape()) + ", expected " + to_string(whole) +
           " or 1 in place of an extent");
    }
  }
  check_readable(name, view);
}

// Every entry of the block table that a call may read has to be a block of the pool.
void check_pages(const char* name, const KvView& kv) {
  if (!kv.is_paged()) return;
  const std::string prefix = std::string(name) + ".table";
  const auto& table = kv.table();
  if (kv.block_rows() < 1) fail(std::string(name) + " has blocks of 0 rows, expected 1 or more");
  const int64_t used = ceil_div(kv.shape(2), kv.block_rows());
  if (table.shape(1) < used) {
    fail(prefix + " has shape " + to_string(table.shape()) + ", expected at least " + std::to_string(used) +
         " blocks of " + std::to_string(kv.block_rows()) + " for " + std::to_string(kv.shape(2)) + " keys");
  }
  for (int64_t b = 0; b < table.shape(0); ++b) {
    for (int64_t i = 0; i < used; ++i) {
      if (table(b, i) >= 0 && table(b, i) < kv.pool_blocks()) continue;
      fail(prefix + "(" + std::to_string(b) + ", " + std::to_string(i) + ") is " + std::to_string(table(b, i)) +
           ", expected a block of the pool's " + std::to_string(kv.pool_blocks()));
    }
  }
}

AttentionShape check_inputs(const AttentionInputs& in) {
  AttentionShape s;
  s.B = in.q.shape(0);
  s.Hq = in.q.shape(1);
  s.T = in.q.shape(2);
  s.D = in.q.shape(3);
  s.Hk = in.k.shape(1);
  s.S = in.k.shape(2);
  s.Dv = in.v.shape(3);
  for (int64_t extent : in.q.shape()) {
    if (extent < 0) fail("q has shape " + to_string(in.q.shape()) + ", expected no negative extent");
  }
  if (s.D < 1 || s.D > kMaxWidth) {
    fail("q has shape " + to_string(in.q.shape()) + ", expected a head width D from 1 to " + std::to_string(kMaxWidth));
  }
  check_shape("k", in.k.shape(), Expected().exactly(in.k.shape(0), s.B).any("Hk").any("S").exactly(in.k.shape(3), s.D));
  if (s.Hk < 1 || s.Hq % s.Hk != 0) {
    fail("k has " + std::to_string(s.Hk) + " heads, expected a divisor of q's " + std::to_string(s.Hq));
  }
  if (s.S < 0 || s.S > kMaxKeys) {
    fail("k has shape " + to_string(in.k.shape()) + ", expected 0 to " + std::to_string(kMaxKeys) + " keys");
  }
  check_shape(
      "v", in.v.shape(),
      Expected().exactly(in.v.shape(0), s.B).exactly(in.v.shape(1), s.Hk).exactly(in.v.shape(2), s.S).any("Dv"));
  if (s.Dv < 1 || s.Dv > kMaxWidth) {
    fail("v has shape " + to_string(in.v.shape()) + ", expected a head width Dv from 1 to " +
         std::to_string(kMaxWidth));
  }
  if (in.v.dtype() != in.k.dtype()) {
    fail(std::string("v is ") + name_of(in.v.dtype()) + ", expected " + name_of(in.k.dtype()) + " as k");
  }
  check_readable("q", in.q);
  check_readable("k", in.k);
  check_readable("v", in.v);
  check_pages("k", in.k);
  check_pages("v", in.v);
  return s;
}

CachedVector<float> check_alibi(const Alibi& alibi, const AttentionShape& s) {
  if (std::ssize(alibi.slopes) != s.Hq) {
    fail("alibi has " + std::to_string(alibi.slopes.size()) + " slopes, expected " + std::to_string(s.Hq) + " (Hq)");
  }
  for (float slope : alibi.slopes) {
    if (!std::isfinite(slope)) fail("alibi has a slope of " + std::to_string(slope) + ", expected finite numbers");
  }
  if (std::abs(static_cast<double>(alibi.align.offset)) > static_cast<double>(kMaxKeys)) {
    fail("alibi has an offset of " + std::to_string(alibi.align.offset) + ", expected at most " +
         std::to_string(kMaxKeys) + " either way");
  }
  return {alibi.slopes.begin(), alibi.slopes.end()};
}

// Everything but the scale and the ranges of visible keys.
ScoreStages check_stages(const AttentionInputs& in, const AttentionShape& s, const AttentionOptions& options) {
  ScoreStages stages;
  if (!(options.softcap >= 0) || !std::isfinite(options.softcap)) {
    fail("softcap is " + std::to_string(options.softcap) + ", expected a finite number, 0 (none) or more");
  }
  if (!(options.dropout.rate >= 0 && options.dropout.rate < 1)) {
    fail("dropout.rate is " + std::to_string(options.dropout.rate) + ", expected at least 0 and below 1");
  }
  if (in.bias) check_broadcast("bias", in.bias, s);
  if (in.head_gate) check_exact("head_gate", in.head_gate.shape(), {s.Hq});
  if (in.w) check_exact("w", in.w.shape(), {s.Hq, s.D});
  if (options.mask.dense) {
    check_broadcast("mask.dense", options.mask.dense->visible, s);
    stages.dense = broadcast(options.mask.dense->visible, s);
  }
  if (options.mask.alibi) stages.slopes = check_alibi(*options.mask.alibi, s);
  stages.additive = !in.w.empty();
  stages.softcap = options.softcap;
  stages.bias = !in.bias.empty();
  stages.gate = !in.head_gate.empty();
  stages.dropout = options.dropout;
  return stages;
}

// Returns K of top_weights and top_keys, of which either or both may be wanted.
int64_t check_observed(const AttentionOutputs& out, const AttentionShape& s) {
  if (out.entropy) {
    check_exact("entropy", out.entropy.shape(), {s.B, s.Hq, s.T});
    check_writable("entropy", out.entropy);
  }
  if (!out.top_weights && !out.top_keys) return 0;
  const int64_t top = out.top_keys ? out.top_keys.shape(3) : out.top_weights.shape(3);
  if (out.top_keys) check_output("top_keys", out.top_keys, {s.B, s.Hq, s.T, top});
  if (out.top_weights) check_output("top_weights", out.top_weights, {s.B, s.Hq, s.T, top});
  return top;
}

float resolve_scale(const AttentionInputs& in, const AttentionOptions& options, const AttentionShape& s) {
  const float usual = in.w ? 1.0f : 1.0f / std::sqrt(static_cast<float>(s.D));
  const float scale = options.scale.value_or(usual);
  if (!std::isfinite(scale)) fail("scale is " + std::to_string(scale) + ", expected a finite number");
  return scale;
}

template <size_t Rank>
void check_gradient_of(const char* input_name, const View<const float, Rank>& input, const char* name,
                       const View<float, Rank>& gradient) {
  if (!gradient) return;
  if (!input) fail(std::string(name) + " is wanted, expected " + input_name + " to be given");
  check_output(name, gradient, input.shape());
}

// Whether several of backward's tasks, each a chunk of keys of one key head, accumulate into the same elements.
bool shares_bias(const View<float, 4>& d_bias, const AttentionShape& s, int64_t key_chunks) {
  if (!d_bias) return false;
  return (d_bias.shape(0) < s.B) || (d_bias.shape(1) < s.Hq && s.Hk > 1) || (d_bias.shape(3) < s.S && key_chunks > 1);
}

// Rows in 16 bits are widened, and paged rows brought together, a block at a time. Rows that are not contiguous fall
// into few sets of L1; gathering a block pays off from some tens of queries on.
bool wants_gather(const AttentionInputs& in, const AttentionShape& s) {
  if (in.k.dtype() != DType::f32 || in.k.is_paged() || in.v.is_paged()) return true;
  return s.T >= 64 && (in.k.strides()[2] != s.D || in.v.strides()[2] != s.Dv);
}

// Queries in a block: blocks of nearly equal size, at most `most`, a multiple of the widest tile.
int64_t query_block(int64_t T, int64_t most) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(T, most));
  return std::max(kMaxTile, round_up(ceil_div(T, blocks), kMaxTile));
}

// Divides S keys into chunks for about `tasks` tasks over `heads` heads, none smaller than `least` keys.
void split_keys(Blocking& blocking, int64_t S, int64_t heads, int64_t tasks, int64_t least) {
  const int64_t chunks = std::max<int64_t>(1, tasks / std::max<int64_t>(1, heads));
  blocking.key_chunk = std::max(least, ceil_div(S, chunks));
  blocking.key_chunks = std::max<int64_t>(1, ceil_div(S, blocking.key_chunk));
}

// Inputs read once, outputs written once.
double bytes_of(const AttentionPlan::Details& plan) {
  const AttentionShape& s = plan.shape;
  const double queries = static_cast<double>(s.B * s.Hq * s.T);
  const double key_numbers = static_cast<double>(s.B * s.Hk * s.S * (s.D + s.Dv));
  const double D = static_cast<double>(s.D), Dv = static_cast<double>(s.Dv);
  const double stored = key_numbers * (plan.kv_dtype == DType::f32 ? 4 : 2);
  if (plan.kernel != AttentionPlan::Kernel::backward) return 4 * queries * (D + Dv) + stored;
  // Backward reads q, k, v, out, d_out and the statistics, and reads and writes dq, dk, dv.
  return 4 * queries * (3 * D + 2 * Dv + 2) + stored + 8 * key_numbers;
}

}  // namespace

AttentionPlan::Details plan_scores(const AttentionInputs& in, const AttentionOptions& options) {
  AttentionPlan::Details plan;
  const AttentionShape s = plan.shape = check_inputs(in);
  plan.kernel = AttentionPlan::Kernel::tiles;
  plan.kv_dtype = in.k.dtype();
  plan.scale = resolve_scale(in, options, s);
  plan.visibility = Visibility(options.mask, s.B, s.T, s.S);
  plan.stages = check_stages(in, s, options);
  plan.blocking.gather = wants_gather(in, s);
  plan.blocking.queries = query_block(s.T, plan.blocking.gather ? kMaxQueries : kQueries);
  plan.blocking.key_chunk = s.S;
  return plan;
}

AttentionPlan::AttentionPlan() {
  static const std::shared_ptr<const Details> nothing = std::make_shared<const Details>();
  details_ = nothing;
}

// From the cache of base/allocator.h: an op makes a plan at every call, and a training step allocates nothing once it
// has seen its shapes.
AttentionPlan::AttentionPlan(Details&& details)
    : details_(std::allocate_shared<const Details>(CachedAllocator<Details>(), std::move(details))) {}

AttentionPlan AttentionPlan::forward(const AttentionInputs& in, const AttentionOutputs& out,
                                     const AttentionOptions& options) {
  Details plan = plan_scores(in, options);
  const AttentionShape& s = plan.shape;
  check_output("out", out.out, {s.B, s.Hq, s.T, s.Dv});
  if (out.lse) {
    check_exact("lse", out.lse.shape(), {s.B, s.Hq, s.T});
    check_writable("lse", out.lse);
  }
  if (out.stats) check_output("stats", out.stats, {s.B, s.Hq, s.T, 2});
  plan.stages.top = check_observed(out, s);
  plan.stages.entropy = !out.entropy.empty();
  if (s.T == 1 && plan.stages.top == 0 && !plan.stages.entropy) {
    plan.kernel = Kernel::decode;
    plan.blocking = {};
    plan.blocking.key_chunk = kDecodeChunk;
    plan.blocking.key_chunks = std::max<int64_t>(1, ceil_div(s.S, kDecodeChunk));
  }
  plan.blocking.next_head = bytes_of(plan) > kNearBytes;
  return AttentionPlan(std::move(plan));
}

AttentionPlan AttentionPlan::backward(const AttentionInputs& in, const AttentionGradients& grad,
                                      const AttentionOptions& options) {
  Details plan = plan_scores(in, options);
  const AttentionShape& s = plan.shape;
  const Dims<4> out_shape{s.B, s.Hq, s.T, s.Dv};
  check_exact("out", grad.out.shape(), out_shape);
  check_readable("out", grad.out);
  check_exact("d_out", grad.d_out.shape(), out_shape);
  check_readable("d_out", grad.d_out);
  check_exact("stats", grad.stats.shape(), {s.B, s.Hq, s.T, 2});
  check_readable("stats", grad.stats);
  if (grad.dq) check_output("dq", grad.dq, in.q.shape());
  if (grad.dk) check_output("dk", grad.dk, in.k.shape());
  if (grad.dv) check_output("dv", grad.dv, in.v.shape());
  check_gradient_of("bias", in.bias, "d_bias", grad.d_bias);
  check_gradient_of("head_gate", in.head_gate, "d_head_gate", grad.d_head_gate);
  check_gradient_of("w", in.w, "dw", grad.dw);
  plan.kernel = Kernel::backward;
  split_keys(plan.blocking, s.S, s.B * s.Hk, kBackwardTasks, kMinBackwardChunk);
  plan.blocking.in_turn = shares_bias(grad.d_bias, s, plan.blocking.key_chunks);
  plan.blocking.queries = query_block(s.T, plan.blocking.in_turn ? kQueriesInTurn : kQueries);
  plan.blocking.next_head = bytes_of(plan) > kNearBytes;
  return AttentionPlan(std::move(plan));
}

AttentionPlan::Kernel AttentionPlan::kernel() const { return details_->kernel; }
const AttentionShape& AttentionPlan::shape() const { return details_->shape; }
float AttentionPlan::scale() const { return details_->scale; }
DType AttentionPlan::kv_dtype() const { return details_->kv_dtype; }
double AttentionPlan::bytes() const { return bytes_of(*details_); }

double AttentionPlan::flops() const {
  const AttentionShape& s = shape();
  const double pairs = static_cast<double>(details_->visibility.pairs() * s.Hq);
  const double D = static_cast<double>(s.D), Dv = static_cast<double>(s.Dv);
  return pairs * (kernel() == Kernel::backward ? 6 * D + 4 * Dv : 2 * D + 2 * Dv);
}

size_t AttentionPlan::workspace_bytes(int threads) const {
  const Details& plan = *details_;
  int64_t own = 0, shared = 0;
  switch (plan.kernel) {
    case Kernel::tiles:
      own = ForwardScratch(plan, nullptr).floats;
      break;
    case Kernel::decode:
      own = DecodeScratch(plan, nullptr).floats;
      shared = decode_partial_floats(plan);
      break;
    case Kernel::backward:
      own = BackwardScratch(plan, nullptr).floats;
      shared = backward_progress_count(plan) * static_cast<int64_t>(sizeof(Progress) / sizeof(float)) +
               BackwardPartials(plan, nullptr).floats;
      break;
  }
  return sizeof(float) * static_cast<size_t>(own * threads + shared);
}

std::string AttentionPlan::describe() const {
  const Details& plan = *details_;
  const AttentionShape& s = plan.shape;
  const char* names[] = {"tiles (queries in lanes)", "decode (one query, keys streamed)",
                         "backward (queries in lanes)"};
  std::string text = std::string("attention ") + names[static_cast<int>(plan.kernel)];
  text += ": B=" + std::to_string(s.B) + " Hq=" + std::to_string(s.Hq) + " Hk=" + std::to_string(s.Hk) +
          " T=" + std::to_string(s.T) + " S=" + std::to_string(s.S) + " D=" + std::to_string(s.D) +
          " Dv=" + std::to_string(s.Dv);
  if (plan.blocking.queries > 0) text += ", " + std::to_string(plan.blocking.queries) + " queries a block";
  if (plan.blocking.key_chunks > 1) text += ", keys in " + std::to_string(plan.blocking.key_chunks) + " chunks";
  if (plan.kv_dtype != DType::f32) text += std::string(", k and v in ") + name_of(plan.kv_dtype);
  if (plan.blocking.gather) text += ", rows of k and v gathered";
  if (plan.stages.additive) text += ", additive score";
  if (plan.stages.softcap != 0) text += ", softcap";
  if (!plan.stages.slopes.empty()) text += ", ALiBi";
  if (plan.stages.bias) text += ", bias";
  if (plan.stages.dense) text += ", boolean mask";
  if (plan.stages.dropout.on()) text += ", dropout";
  if (plan.stages.gate) text += ", heads gated";
  return text;
}

void attention_forward(const AttentionPlan& plan, const AttentionInputs& in, const AttentionOutputs& out,
                       Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= plan.workspace_bytes(parallel.threads()));
  const ForwardCall call{plan.details(), in, out, parallel.threads()};
  if (plan.kernel() == AttentionPlan::Kernel::decode) {
    forward_decode(call, workspace, parallel);
  } else {
    forward_tiles(call, workspace, parallel);
  }
}

void attention_forward(const AttentionInputs& in, const AttentionOutputs& out, const AttentionOptions& options,
                       Workspace& workspace, Parallel& parallel) {
  const AttentionPlan plan = AttentionPlan::forward(in, out, options);
  workspace.reserve(plan.workspace_bytes(parallel.threads()));
  attention_forward(plan, in, out, workspace, parallel);
}

void attention_backward(const AttentionInputs& in, const AttentionGradients& grad, const AttentionOptions& options,
                        Workspace& workspace, Parallel& parallel) {
  const AttentionPlan plan = AttentionPlan::backward(in, grad, options);
  workspace.reserve(plan.workspace_bytes(parallel.threads()));
  attention_backward(plan, in, grad, workspace, parallel);
}

}  // namespace heed::kernels
