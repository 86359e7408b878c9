// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/optimizer.h"

#include <cassert>
#include <cmath>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/optimizer.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Loads N vectors of gradients, scaled, and clears them in memory where that is wanted.
template <int N>
HWY_INLINE void take_gradients(F d, const StepBuffers<float>& buffers, int64_t at, int64_t left, V (&g)[N]) {
  load_vectors(d, buffers.gradients.at(at), left, g);
  for (V& v : g) v = hn::Mul(v, hn::Set(d, static_cast<float>(buffers.gradient_scale)));
  for (int i = 0; buffers.clear_gradients && i < N; ++i) {
    store_part(d, hn::Zero(d), buffers.gradients.at(at + i * kLanes), left);
  }
}

// Elements [begin, end), of which all decay or none.
void sgd_run(const SgdOptions& options, const StepBuffers<float>& buffers, View<float, 1> velocity, int64_t begin,
             int64_t end, bool decays) {
  const F d;
  const V decay = hn::Set(d, decays ? static_cast<float>(options.weight_decay) : 0);
  const V rate = hn::Set(d, static_cast<float>(options.rate));
  const V momentum = hn::Set(d, static_cast<float>(options.momentum));
  for_vectors(end - begin, [&]<int N>(int64_t from, int64_t left) HWY_ATTR {
    const int64_t at = begin + from;
    V value[N], g[N];
    load_vectors(d, buffers.values.at(at), left, value);
    take_gradients(d, buffers, at, left, g);
    for (int i = 0; i < N; ++i) g[i] = hn::MulAdd(decay, value[i], g[i]);
    if (velocity) {
      V moving[N];
      load_vectors(d, velocity.at(at), left, moving);
      for (int i = 0; i < N; ++i) {
        moving[i] = hn::MulAdd(momentum, moving[i], g[i]);
        g[i] = options.nesterov ? hn::MulAdd(momentum, moving[i], g[i]) : moving[i];
      }
      store_vectors(d, moving, velocity.at(at), left);
    }
    for (int i = 0; i < N; ++i) value[i] = hn::NegMulAdd(rate, g[i], value[i]);
    store_vectors(d, value, buffers.values.at(at), left);
  });
}

void adam_run(const AdamOptions& options, const StepBuffers<float>& buffers, const AdamMoments<float>& moments,
              int64_t begin, int64_t end, bool decays) {
  const F d;
  const auto set = [&](double x) HWY_ATTR { return hn::Set(d, static_cast<float>(x)); };
  const auto step = static_cast<double>(moments.step);
  const double decay = decays ? options.weight_decay : 0;
  // A factor of 1 - rate decay would lose most digits of a small decay: its product is taken away instead.
  const V value_decay = set(options.decoupled ? options.rate * decay : 0);
  const V gradient_decay = set(options.decoupled ? 0 : decay);
  const V take1 = set(1 - options.beta1), beta2 = set(options.beta2), take2 = set(1 - options.beta2);
  const V root_scale = set(1 / std::sqrt(1 - std::pow(options.beta2, step))), eps = set(options.eps);
  const V step_size = set(options.rate / (1 - std::pow(options.beta1, step)));
  for_vectors(end - begin, [&]<int N>(int64_t from, int64_t left) HWY_ATTR {
    const int64_t at = begin + from;
    V value[N], g[N], m[N], v[N];
    load_vectors(d, buffers.values.at(at), left, value);
    load_vectors(d, moments.m.at(at), left, m);
    load_vectors(d, moments.v.at(at), left, v);
    take_gradients(d, buffers, at, left, g);
    for (int i = 0; i < N; ++i) {
      g[i] = hn::MulAdd(gradient_decay, value[i], g[i]);
      value[i] = hn::NegMulAdd(value_decay, value[i], value[i]);
      m[i] = hn::MulAdd(take1, hn::Sub(g[i], m[i]), m[i]);
      v[i] = hn::MulAdd(beta2, v[i], hn::Mul(take2, hn::Mul(g[i], g[i])));
    }
    for (int i = 0; i < N; ++i) {
      const V below = hn::MulAdd(hn::Sqrt(v[i]), root_scale, eps);
      value[i] = hn::NegMulAdd(step_size, hn::Div(m[i], below), value[i]);
    }
    store_vectors(d, m, moments.m.at(at), left);
    store_vectors(d, v, moments.v.at(at), left);
    store_vectors(d, value, buffers.values.at(at), left);
  });
}

// In sixteen sums, for the compiler to put into vectors.
double sum_of_squares(const float* x, int64_t n) {
  constexpr int64_t kSums = 16;
  double sums[kSums] = {};
  int64_t at = 0;
  for (; at + kSums <= n; at += kSums) {
    for (int64_t i = 0; i < kSums; ++i) sums[i] += double{x[at + i]} * double{x[at + i]};
  }
  for (int64_t i = 0; at + i < n; ++i) sums[i] += double{x[at + i]} * double{x[at + i]};
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(sgd_run);
HWY_EXPORT(adam_run);
HWY_EXPORT(sum_of_squares);

namespace {

int64_t tasks_of(int64_t n) { return (n + kTaskElements - 1) / kTaskElements; }

// body(begin, end, decays) for runs of elements that all decay or all do not.
template <class Body>
void for_runs(const StepBuffers<float>& buffers, Parallel& parallel, const Body& body) {
  const int64_t n = buffers.values.shape(0);
  assert(buffers.gradients.shape(0) == n);
  parallel.for_each(tasks_of(n), [&](int64_t task, int) {
    const int64_t end = std::min(n, (task + 1) * kTaskElements);
    int64_t at = task * kTaskElements;
    for (const ElementRange& range : buffers.decayed) {
      const int64_t first = std::clamp(range.begin, at, end), last = std::clamp(range.end, at, end);
      if (first == last) continue;
      if (at < first) body(at, first, false);
      body(first, last, true);
      at = last;
    }
    if (at < end) body(at, end, false);
  });
}

}  // namespace

void sgd_step(const SgdOptions& options, const StepBuffers<float>& buffers, View<float, 1> velocity,
              Parallel& parallel) noexcept {
  assert(velocity || options.momentum == 0 || buffers.values.shape(0) == 0);
  if (options.momentum == 0) velocity = {};
  for_runs(buffers, parallel, [&](int64_t begin, int64_t end, bool decays) {
    HWY_DYNAMIC_DISPATCH(sgd_run)(options, buffers, velocity, begin, end, decays);
  });
}

void adam_step(const AdamOptions& options, const StepBuffers<float>& buffers, const AdamMoments<float>& moments,
               Parallel& parallel) noexcept {
  assert(moments.m.shape() == buffers.values.shape() && moments.v.shape() == buffers.values.shape());
  assert(moments.step >= 1);
  for_runs(buffers, parallel, [&](int64_t begin, int64_t end, bool decays) {
    HWY_DYNAMIC_DISPATCH(adam_run)(options, buffers, moments, begin, end, decays);
  });
}

double gradient_norm(View<const float, 1> gradients, Workspace& workspace, Parallel& parallel) noexcept {
  const int64_t n = gradients.shape(0), tasks = tasks_of(n);
  assert(workspace.bytes() >= gradient_norm_bytes(n));
  double* squares = reinterpret_cast<double*>(workspace.data());
  parallel.for_each(tasks, [&](int64_t task, int) {
    const int64_t begin = task * kTaskElements;
    squares[task] = HWY_DYNAMIC_DISPATCH(sum_of_squares)(gradients.at(begin), std::min(kTaskElements, n - begin));
  });
  double sum = 0;
  for (int64_t task = 0; task < tasks; ++task) sum += squares[task];
  return std::sqrt(sum);
}

size_t gradient_norm_bytes(int64_t n) { return static_cast<size_t>(tasks_of(n)) * sizeof(double); }

}  // namespace heed::kernels
#endif  // HWY_ONCE
