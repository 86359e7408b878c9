// Checks the arguments of attention, chooses the kernel and cuts the work. After this, nothing can fail.
#include <cmath>

#include "heed/base/error.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/forward.h"

namespace heed::kernels {

namespace {

constexpr int64_t kQueries = 128;           // of a block; kMaxQueries where gathering has to be paid for
constexpr int64_t kMaxWidth = 256;          // of a head
constexpr int64_t kMaxKeys = 1 << 24;       // positions are compared as floats, exact up to here
constexpr int64_t kBackwardTasks = 8;       // backward splits the keys of few heads, to have about as many tasks
constexpr int64_t kDecodeTasks = 64;        // decode splits long keys in the same way
constexpr int64_t kMinBackwardChunk = 480;  // keys
constexpr int64_t kMinDecodeChunk = 1024;

[[noreturn]] void fail(const std::string& text) { throw Error("attention: " + text); }

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

template <size_t Rank>
void check_exact(const char* name, const Dims<Rank>& shape, const Dims<Rank>& expected) {
  if (shape != expected)
    fail(std::string(name) + " has shape " + to_string(shape) + ", expected " + to_string(expected));
}

template <class ViewLike>
void check_readable(const char* name, const ViewLike& view) {
  if (view.empty() && element_count(view.shape()) > 0) fail(std::string(name) + " is an empty view");
  const size_t last = view.shape().size() - 1;
  if (view.shape()[last] > 1 && view.strides()[last] != 1) {
    fail(std::string(name) + " has strides " + to_string(view.strides()) + ", expected a last stride of 1");
  }
}

// An output must hold every element at a place of its own. Taking the dimensions from the smallest stride up, each
// must step over all that came before.
template <size_t Rank>
void check_writable(const char* name, const View<float, Rank>& view) {
  if (element_count(view.shape()) == 0) return;
  std::array<size_t, Rank> order;
  for (size_t i = 0; i < Rank; ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return std::abs(view.stride(i)) < std::abs(view.stride(j)); });
  int64_t reach = 1;
  for (size_t i : order) {
    if (view.shape(i) == 1) continue;
    if (std::abs(view.stride(i)) < reach) {
      fail(std::string(name) + " has shape " + to_string(view.shape()) + " and strides " + to_string(view.strides()) +
           ", expected strides that keep its elements apart");
    }
    reach += (view.shape(i) - 1) * std::abs(view.stride(i));
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
  return s;
}

template <size_t Rank>
void check_output(const char* name, const View<float, Rank>& view, const Dims<Rank>& shape) {
  check_exact(name, view.shape(), shape);
  check_readable(name, view);
  check_writable(name, view);
}

float resolve_scale(const AttentionOptions& options, const AttentionShape& s) {
  const float scale = options.scale.value_or(1.0f / std::sqrt(static_cast<float>(s.D)));
  if (!std::isfinite(scale)) fail("scale is " + std::to_string(scale) + ", expected a finite number");
  return scale;
}

// Rows of 16 bits are widened a block at a time. Rows that do not follow each other fall on few sets of the first
// cache; gathering a block pays off from some tens of queries on.
bool wants_gather(const AttentionInputs& in, const AttentionShape& s) {
  if (in.k.dtype() != DType::f32) return true;
  return s.T >= 64 && (in.k.strides()[2] != s.D || in.v.strides()[2] != s.Dv);
}

// Queries of a block: evenly cut, at most `most`, a multiple of the widest tile.
int64_t query_block(int64_t T, int64_t most) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(T, most));
  return std::max(kMaxTile, round_up(ceil_div(T, blocks), kMaxTile));
}

// Cuts S keys into about as many chunks as make `tasks` tasks of `heads` heads, none smaller than `least` keys.
void split_keys(AttentionPlan::Blocking& blocking, int64_t S, int64_t heads, int64_t tasks, int64_t least) {
  const int64_t chunks = std::max<int64_t>(1, tasks / std::max<int64_t>(1, heads));
  blocking.key_chunk = std::max(least, ceil_div(S, chunks));
  blocking.key_chunks = std::max<int64_t>(1, ceil_div(S, blocking.key_chunk));
}

}  // namespace

AttentionPlan AttentionPlan::forward(const AttentionInputs& in, const AttentionOutputs& out,
                                     const AttentionOptions& options) {
  AttentionPlan plan;
  const AttentionShape s = plan.shape_ = check_inputs(in);
  check_output("out", out.out, {s.B, s.Hq, s.T, s.Dv});
  if (out.lse) {
    check_exact("lse", out.lse.shape(), {s.B, s.Hq, s.T});
    check_writable("lse", out.lse);
  }
  if (out.stats) check_output("stats", out.stats, {s.B, s.Hq, s.T, 2});
  plan.kv_dtype_ = in.k.dtype();
  plan.scale_ = resolve_scale(options, s);
  plan.visibility_ = Visibility(options.mask, s.B, s.T, s.S);
  if (s.T == 1) {
    plan.kernel_ = Kernel::decode;
    split_keys(plan.blocking_, s.S, s.B * s.Hk, kDecodeTasks, kMinDecodeChunk);
  } else {
    plan.kernel_ = Kernel::tiles;
    plan.blocking_.gather = wants_gather(in, s);
    plan.blocking_.queries = query_block(s.T, plan.blocking_.gather ? kMaxQueries : kQueries);
    plan.blocking_.key_chunk = s.S;
  }
  return plan;
}

AttentionPlan AttentionPlan::backward(const AttentionInputs& in, const AttentionGradients& grad,
                                      const AttentionOptions& options) {
  AttentionPlan plan;
  const AttentionShape s = plan.shape_ = check_inputs(in);
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
  plan.kernel_ = Kernel::backward;
  plan.kv_dtype_ = in.k.dtype();
  plan.scale_ = resolve_scale(options, s);
  plan.visibility_ = Visibility(options.mask, s.B, s.T, s.S);
  plan.blocking_.gather = wants_gather(in, s);
  plan.blocking_.queries = query_block(s.T, kQueries);
  split_keys(plan.blocking_, s.S, s.B * s.Hk, kBackwardTasks, kMinBackwardChunk);
  return plan;
}

double AttentionPlan::flops() const {
  const double pairs = static_cast<double>(visibility_.pairs() * shape_.Hq);
  const double D = static_cast<double>(shape_.D), Dv = static_cast<double>(shape_.Dv);
  return pairs * (kernel_ == Kernel::backward ? 6 * D + 4 * Dv : 2 * D + 2 * Dv);
}

double AttentionPlan::bytes() const {
  const AttentionShape& s = shape_;
  const double queries = static_cast<double>(s.B * s.Hq * s.T);
  const double key_numbers = static_cast<double>(s.B * s.Hk * s.S * (s.D + s.Dv));
  const double D = static_cast<double>(s.D), Dv = static_cast<double>(s.Dv);
  const double stored = key_numbers * (kv_dtype_ == DType::f32 ? 4 : 2);
  if (kernel_ != Kernel::backward) return 4 * queries * (D + Dv) + stored;
  // Backward reads q, k, v, out, d_out and the statistics, and reads and writes dq, dk, dv.
  return 4 * queries * (3 * D + 2 * Dv + 2) + stored + 8 * key_numbers;
}

size_t AttentionPlan::workspace_bytes(int threads) const {
  int64_t own = 0, shared = 0;
  switch (kernel_) {
    case Kernel::tiles:
      own = ForwardScratch(*this, nullptr).floats;
      break;
    case Kernel::decode:
      own = DecodeScratch(*this, nullptr).floats;
      shared = decode_partial_floats(*this);
      break;
    case Kernel::backward:
      own = BackwardScratch(*this, nullptr).floats;
      shared = backward_progress_count(*this) * static_cast<int64_t>(sizeof(Progress) / sizeof(float));
      break;
  }
  return sizeof(float) * static_cast<size_t>(own * threads + shared);
}

std::string AttentionPlan::describe() const {
  const AttentionShape& s = shape_;
  const char* names[] = {"tiles (queries in lanes)", "decode (one query, keys streamed)",
                         "backward (queries in lanes)"};
  std::string text = std::string("attention ") + names[static_cast<int>(kernel_)];
  text += ": B=" + std::to_string(s.B) + " Hq=" + std::to_string(s.Hq) + " Hk=" + std::to_string(s.Hk) +
          " T=" + std::to_string(s.T) + " S=" + std::to_string(s.S) + " D=" + std::to_string(s.D) +
          " Dv=" + std::to_string(s.Dv);
  if (blocking_.queries > 0) text += ", " + std::to_string(blocking_.queries) + " queries a block";
  if (blocking_.key_chunks > 1) text += ", keys in " + std::to_string(blocking_.key_chunks) + " chunks";
  if (kv_dtype_ != DType::f32) text += std::string(", k and v in ") + name_of(kv_dtype_);
  if (blocking_.gather) text += ", rows of k and v gathered";
  return text;
}

void attention_forward(const AttentionPlan& plan, const AttentionInputs& in, const AttentionOutputs& out,
                       Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= plan.workspace_bytes(parallel.threads()));
  const ForwardCall call{plan, in, out};
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
