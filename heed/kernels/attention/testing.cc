// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/attention/testing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include "heed/base/testing.h"
#include "heed/kernels/attention/targets.h"
#include "heed/kernels/reference/attention.h"

namespace heed::kernels::attention_testing {
namespace {

using heed::testing::seeded;

constexpr uint32_t kGuard = 0x7fd15ea5;  // a quiet NaN
constexpr size_t kScratchGuard = 256;    // bytes

int64_t pick(Rng& rng, std::span<const int64_t> from) { return from[rng.below(from.size())]; }
int64_t between(Rng& rng, int64_t low, int64_t high) {  // both included
  return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
}
bool chance(Rng& rng, double p) { return rng.uniform() < p; }

template <class Visit>
void for_each_element(const View<float, 4>& view, Visit visit) {
  for (int64_t b = 0; b < view.shape(0); ++b)
    for (int64_t h = 0; h < view.shape(1); ++h)
      for (int64_t t = 0; t < view.shape(2); ++t)
        for (int64_t d = 0; d < view.shape(3); ++d) visit(view(b, h, t, d));
}

AttentionShape draw_shape(Rng& rng, double work) {
  static constexpr int64_t kLengths[] = {0,  1,  2,  7,  8,  9,   15,  16,  17,  31,  32,  33,  63,
                                         64, 65, 95, 96, 97, 100, 127, 128, 129, 191, 192, 193, 200};
  static constexpr int64_t kWidths[] = {1,  2,  3,  4,  5,  7,  8,  9,   16,  17,  24,  31,  32,
                                        33, 40, 63, 64, 65, 80, 96, 127, 128, 129, 192, 255, 256};
  static constexpr int64_t kGroups[] = {1, 1, 1, 2, 3, 4, 8};
  for (;;) {
    AttentionShape x;
    x.B = chance(rng, 0.01) ? 0 : chance(rng, 0.7) ? 1 : between(rng, 2, 3);
    x.Hk = between(rng, 1, 2);
    x.Hq = x.Hk * pick(rng, kGroups);
    x.T = chance(rng, 0.15) ? 1 : chance(rng, 0.6) ? pick(rng, kLengths) : between(rng, 1, 40);
    x.S = chance(rng, 0.4) ? x.T : chance(rng, 0.6) ? pick(rng, kLengths) : between(rng, 1, 40);
    x.D = pick(rng, kWidths);
    x.Dv = chance(rng, 0.5) ? x.D : pick(rng, kWidths);
    if (static_cast<double>(x.B * x.Hq * x.T * x.S) * static_cast<double>(x.D + x.Dv) <= work) return x;
  }
}

// Cumulative lengths of `count` sequences, some of them empty, some of them ending where tiles do.
std::vector<int64_t> draw_cuts(Rng& rng, size_t count, int64_t total) {
  std::vector<int64_t> cuts = {0, total};
  const int64_t step = chance(rng, 0.3) ? 16 : 1;
  while (cuts.size() < count + 1) cuts.push_back(between(rng, 0, total) / step * step);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

void describe(std::ostream& to, const char* name, const std::optional<std::vector<int64_t>>& numbers) {
  if (!numbers) return;
  to << ' ' << name << "={";
  for (size_t i = 0; i < numbers->size(); ++i) to << (i ? "," : "") << (*numbers)[i];
  to << '}';
}

std::string describe(const MaskAlignment& align) {
  return align.kind == MaskAlignment::Kind::bottom_right ? "bottom_right" : "offset " + std::to_string(align.offset);
}

}  // namespace

Mask OwnedMask::borrow() const {
  Mask mask;
  mask.causal = causal;
  mask.window = window;
  if (lengths) mask.lengths = Lengths{*lengths};
  if (packed_queries) mask.packed = Packed{*packed_queries, *packed_keys};
  return mask;
}

double Instance::score_scale() const {
  return scale ? double{*scale} : extras.additive ? 1 : 1 / std::sqrt(static_cast<double>(shape.D));
}

bool Instance::visible(int64_t b, int64_t t, int64_t s) const {
  int64_t queries = shape.T, keys = shape.S;
  if (mask.lengths) {
    keys = (*mask.lengths)[static_cast<size_t>(b)];
    if (s >= keys) return false;
  }
  if (mask.packed_queries) {
    const auto& first = *mask.packed_queries;
    if (t >= first.back()) return false;
    const auto i = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), t) - first.begin()) - 1;
    queries = first[i + 1] - first[i];
    keys = (*mask.packed_keys)[i + 1] - (*mask.packed_keys)[i];
    t -= first[i];
    s -= (*mask.packed_keys)[i];
    if (s < 0 || s >= keys) return false;
  }
  if (mask.causal && s > t + mask.causal->align.resolve(queries, keys)) return false;
  if (mask.window) {
    const auto& [left, right, align] = *mask.window;
    const int64_t place = t + align.resolve(queries, keys);
    if (left != Window::kUnbounded && s < place - left) return false;
    if (right != Window::kUnbounded && s > place + right) return false;
  }
  return true;
}

std::string Instance::describe() const {
  static constexpr const char* kLayouts[] = {"bhtd", "bthd", "packed", "padded"};
  const auto layout = [](Layout l) { return kLayouts[static_cast<size_t>(l)]; };
  std::ostringstream to;
  to << "B=" << shape.B << " Hq=" << shape.Hq << " Hk=" << shape.Hk << " T=" << shape.T << " S=" << shape.S
     << " D=" << shape.D << " Dv=" << shape.Dv << " inputs=" << layout(inputs) << " out=" << layout(out)
     << " d_out=" << layout(d_out) << " gradients=" << layout(gradients) << " deviation=" << deviation
     << " seed=" << seed;
  if (scale) to << " scale=" << *scale;
  if (mask.causal) to << " causal=" << attention_testing::describe(mask.causal->align);
  if (mask.window)
    to << " window=" << mask.window->left << ',' << mask.window->right << ' '
       << attention_testing::describe(mask.window->align);
  attention_testing::describe(to, "lengths", mask.lengths);
  attention_testing::describe(to, "packed_queries", mask.packed_queries);
  attention_testing::describe(to, "packed_keys", mask.packed_keys);
  if (extras.alibi) to << " alibi=" << attention_testing::describe(*extras.alibi);
  if (extras.dense) to << " dense=" << to_string(*extras.dense);
  if (extras.bias) to << " bias=" << to_string(*extras.bias) << " hidden=" << extras.hidden;
  if (extras.softcap > 0) to << " softcap=" << extras.softcap;
  if (extras.dropout.on()) to << " dropout=" << extras.dropout.rate;
  to << (extras.gate ? " gate" : "") << (extras.additive ? " additive" : "");
  return to.str();
}

Extras draw_extras(Rng& rng, const AttentionShape& shape) {
  Extras x;
  const auto broadcast_shape = [&] {
    Dims<4> dims{shape.B, shape.Hq, shape.T, shape.S};
    for (int64_t& extent : dims)
      if (chance(rng, 0.35)) extent = 1;
    return dims;
  };
  if (chance(rng, 0.3))
    x.alibi = chance(rng, 0.5) ? MaskAlignment{MaskAlignment::Kind::bottom_right, 0}
                               : MaskAlignment{MaskAlignment::Kind::offset, between(rng, -shape.T, shape.S)};
  if (chance(rng, 0.3)) x.dense = broadcast_shape();
  if (chance(rng, 0.4)) x.bias = broadcast_shape();
  if (chance(rng, 0.5)) x.hidden = rng.uniform(0, 0.6f);
  if (chance(rng, 0.3)) x.softcap = rng.uniform(0.5f, 20);
  if (chance(rng, 0.3)) x.dropout = {rng.uniform(0.01f, 0.9f), rng.next_u64()};
  x.gate = chance(rng, 0.3);
  x.additive = chance(rng, 0.25);
  return x;
}

OwnedMask draw_mask(Rng& rng, const AttentionShape& shape) {
  OwnedMask mask;
  const auto alignment = [&]() -> MaskAlignment {
    if (chance(rng, 0.4)) return {MaskAlignment::Kind::bottom_right, 0};
    return {MaskAlignment::Kind::offset, chance(rng, 0.4) ? 0 : between(rng, -shape.T, shape.S)};
  };
  const auto reach = [&] { return chance(rng, 0.2) ? Window::kUnbounded : between(rng, 0, chance(rng, 0.5) ? 4 : 80); };
  if (chance(rng, 0.45)) mask.causal = Causal{alignment()};
  if (chance(rng, 0.35)) mask.window = Window{reach(), reach(), alignment()};
  if (shape.B == 1 && chance(rng, 0.25)) {
    const size_t count = rng.below(5) + 1;
    const bool to_the_end = chance(rng, 0.8);
    mask.packed_queries = draw_cuts(rng, count, to_the_end ? shape.T : between(rng, 0, shape.T));
    mask.packed_keys = draw_cuts(rng, count, to_the_end ? shape.S : between(rng, 0, shape.S));
  }
  if (chance(rng, 0.3)) {
    mask.lengths.emplace();
    for (int64_t b = 0; b < shape.B; ++b)
      mask.lengths->push_back(chance(rng, 0.15) ? 0 : chance(rng, 0.15) ? shape.S : between(rng, 0, shape.S));
  }
  return mask;
}

Instance draw_instance(Rng& rng, double work) {
  Instance x;
  x.shape = draw_shape(rng, work);
  if (chance(rng, 0.8)) x.mask = draw_mask(rng, x.shape);
  if (chance(rng, 0.6)) x.extras = draw_extras(rng, x.shape);
  if (chance(rng, 0.3))
    x.scale = chance(rng, 0.1) ? 0.0f : rng.uniform(-1, 1) / std::sqrt(static_cast<float>(x.shape.D));
  for (Layout* layout : {&x.inputs, &x.out, &x.d_out, &x.gradients}) {
    *layout = static_cast<Layout>(rng.below(4));
    const bool packable = (layout == &x.inputs || layout == &x.gradients) && x.shape.T == x.shape.S;
    if (*layout == Layout::packed && !packable) *layout = Layout::bthd;
  }
  static constexpr float kDeviations[] = {0.3f, 1, 1, 1, 1, 3, 100};  // 100: logits of about +-1e4
  x.deviation = kDeviations[rng.below(std::size(kDeviations))];
  x.seed = rng.next_u64();
  return x;
}

View<float, 4> GuardedMemory::allot(const Dims<4>& shape, Layout layout, Rng& rng) {
  if (layout == Layout::packed) return allot_packed({shape}, rng)[0];
  std::array<size_t, 3> inner_to_outer = {2, 1, 0};
  if (layout == Layout::bthd) inner_to_outer = {1, 2, 0};
  if (layout == Layout::padded)
    for (size_t i = 2; i > 0; --i) std::swap(inner_to_outer[i], inner_to_outer[rng.below(i + 1)]);
  const auto gap = [&] { return layout == Layout::padded ? between(rng, 0, 9) : 0; };
  Dims<4> strides{};
  strides[3] = 1;
  int64_t step = shape[3] + gap();
  for (size_t i : inner_to_outer) {
    strides[i] = step;
    step = step * shape[i] + gap();
  }
  // Half of the buffers end with their tensor, so that AddressSanitizer sees what the guards cannot.
  const int64_t before = between(rng, 0, 20), after = chance(rng, 0.5) ? 0 : 40;
  const auto size = static_cast<size_t>(before + std::max<int64_t>(1, step) + after);
  Buffer& buffer = buffers_.emplace_back();
  buffer.floats.assign(size, from_bits(kGuard));
  return buffer.tensors.emplace_back(buffer.floats.data() + before, shape, strides);
}

std::vector<View<float, 4>> GuardedMemory::allot_packed(const std::vector<Dims<4>>& shapes, Rng& rng) {
  int64_t row = 0;
  for (const auto& shape : shapes) row += shape[1] * shape[3];
  const int64_t before = between(rng, 0, 20), rows = shapes[0][0] * shapes[0][2];
  Buffer& buffer = buffers_.emplace_back();
  buffer.floats.assign(static_cast<size_t>(before + std::max<int64_t>(1, rows * row)), from_bits(kGuard));
  float* begin = buffer.floats.data() + before;
  for (const auto& shape : shapes) {
    buffer.tensors.emplace_back(begin, shape, Dims<4>{shape[2] * row, shape[3], row, 1});
    begin += rows ? shape[1] * shape[3] : 0;
  }
  return buffer.tensors;
}

std::string GuardedMemory::damage() const {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    std::vector<char> owned(buffer.floats.size(), 0);
    for (const auto& tensor : buffer.tensors)
      for_each_element(tensor, [&](const float& x) { owned[static_cast<size_t>(&x - buffer.floats.data())] = 1; });
    for (size_t n = 0; n < owned.size(); ++n)
      if (!owned[n] && std::bit_cast<uint32_t>(buffer.floats[n]) != kGuard)
        return "float " + std::to_string(n) + " of buffer " + std::to_string(i) + " was overwritten";
  }
  return {};
}

Problem::Problem(const Instance& x) : instance(x) {
  const auto& [B, Hq, Hk, T, S, D, Dv] = instance.shape;
  Rng places(x.seed, 1), numbers(x.seed, 2);
  const std::vector<Dims<4>> shapes = {{B, Hq, T, D}, {B, Hk, S, D}, {B, Hk, S, Dv}};
  const auto three = [&](Layout layout) {
    if (layout == Layout::packed) return memory_.allot_packed(shapes, places);
    std::vector<View<float, 4>> views;
    for (const auto& shape : shapes) views.push_back(memory_.allot(shape, layout, places));
    return views;
  };
  const auto in = three(x.inputs), gradients = three(x.gradients);
  q = in[0], k = in[1], v = in[2];
  dq = gradients[0], dk = gradients[1], dv = gradients[2];
  out = memory_.allot({B, Hq, T, Dv}, x.out, places);
  d_out = memory_.allot({B, Hq, T, Dv}, x.d_out, places);
  stats = memory_.allot({B, Hq, T, 2}, x.out, places);
  const auto rows = memory_.allot({1, B, Hq, T}, x.out == Layout::padded ? Layout::padded : Layout::bhtd, places);
  lse = {rows.data(), {B, Hq, T}, {rows.stride(1), rows.stride(2), 1}};
  for_each_element(q, [&](float& element) { element = x.deviation * numbers.normal(); });
  for_each_element(k, [&](float& element) { element = x.deviation * numbers.normal(); });
  for_each_element(v, [&](float& element) { element = numbers.normal(); });
  for_each_element(d_out, [&](float& element) { element = numbers.normal(); });
  const auto pair = [&](const Dims<4>& shape) {
    return std::pair(memory_.allot(shape, x.inputs == Layout::packed ? Layout::bthd : x.inputs, places),
                     memory_.allot(shape, x.gradients == Layout::packed ? Layout::bthd : x.gradients, places));
  };
  if (x.extras.bias) {
    std::tie(bias, d_bias) = pair(*x.extras.bias);
    for_each_element(bias, [&](float& element) {
      element = numbers.normal();
      if (chance(numbers, x.extras.hidden)) element = -std::numeric_limits<float>::infinity();
    });
  }
  if (x.extras.gate) {
    std::tie(gate, d_gate) = pair({1, 1, 1, Hq});
    for_each_element(gate, [&](float& element) { element = chance(numbers, 0.3) ? 0 : numbers.normal(); });
  }
  if (x.extras.additive) {
    std::tie(w, dw) = pair({1, 1, Hq, D});
    for_each_element(w, [&](float& element) { element = numbers.normal(); });
  }
  if (x.extras.alibi)
    for (int64_t h = 0; h < Hq; ++h) slopes_.push_back(numbers.uniform(0, 0.5f));
  if (x.extras.dense) {
    const auto size = static_cast<size_t>(element_count(*x.extras.dense));
    dense_ = std::make_unique<bool[]>(size);
    const float share = numbers.uniform();
    for (size_t i = 0; i < size; ++i) dense_[i] = numbers.uniform() < share;
  }
}

AttentionInputs Problem::inputs() const {
  AttentionInputs in{q, k, v};
  in.bias = bias;
  if (gate) in.head_gate = {gate.data(), {gate.shape(3)}};
  if (w) in.w = {w.data(), {w.shape(2), w.shape(3)}, {w.stride(2), 1}};
  return in;
}

AttentionGradients Problem::gradients() const {
  AttentionGradients to{out, stats, d_out, dq, dk, dv};
  to.d_bias = d_bias;
  if (d_gate) to.d_head_gate = {d_gate.data(), {d_gate.shape(3)}};
  if (dw) to.dw = {dw.data(), {dw.shape(2), dw.shape(3)}, {dw.stride(2), 1}};
  return to;
}

AttentionOptions Problem::options() const {
  AttentionOptions options{instance.scale, instance.mask.borrow(), instance.extras.softcap, instance.extras.dropout};
  if (instance.extras.dense) options.mask.dense = Dense{{dense_.get(), *instance.extras.dense}};
  if (instance.extras.alibi) options.mask.alibi = Alibi{slopes_, *instance.extras.alibi};
  return options;
}

bool Problem::visible(int64_t b, int64_t h, int64_t t, int64_t s) const {
  if (!instance.visible(b, t, s)) return false;
  const auto at = [&](const auto& view) {
    const auto index = [&](size_t i, int64_t n) { return view.shape(i) == 1 ? 0 : n; };
    return view(index(0, b), index(1, h), index(2, t), index(3, s));
  };
  if (instance.extras.dense && !at(View<const bool, 4>(dense_.get(), *instance.extras.dense))) return false;
  return !bias || at(bias) != -std::numeric_limits<float>::infinity();
}

Workspace Problem::scratch_for(const AttentionPlan& plan, int threads) const {
  Workspace scratch(plan.workspace_bytes(threads) + kScratchGuard);
  std::memset(scratch.data(), 0xff, scratch.bytes());  // NaN, as floats
  return scratch;
}

void Problem::expect_undamaged(const Workspace& scratch, size_t used) const {
  const bool whole = std::all_of(scratch.data() + used, scratch.data() + scratch.bytes(),
                                 [](std::byte byte) { return byte == std::byte{0xff}; });
  EXPECT_TRUE(whole) << "more scratch was written than the plan counted";
  EXPECT_EQ(memory_.damage(), "");
}

void Problem::forward(Parallel& parallel) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  fill(out, kNan);
  fill(stats, kNan);
  fill({lse.data(), {1, lse.shape(0), lse.shape(1), lse.shape(2)}, {0, lse.stride(0), lse.stride(1), 1}}, kNan);
  const auto plan = AttentionPlan::forward(inputs(), outputs(), options());
  Workspace scratch = scratch_for(plan, parallel.threads());
  attention_forward(plan, inputs(), outputs(), scratch, parallel);
  expect_undamaged(scratch, plan.workspace_bytes(parallel.threads()));
}

void Problem::backward(Parallel& parallel) {
  for (const auto& gradient : {dq, dk, dv, d_bias, d_gate, dw}) {
    int64_t index = 0;
    for_each_element(gradient, [&](float& x) { x = initial_gradient(index++); });
  }
  const auto plan = AttentionPlan::backward(inputs(), gradients(), options());
  Workspace scratch = scratch_for(plan, parallel.threads());
  attention_backward(plan, inputs(), gradients(), scratch, parallel);
  expect_undamaged(scratch, plan.workspace_bytes(parallel.threads()));
}

Results<float> Problem::run(Parallel& parallel) {
  forward(parallel);
  backward(parallel);
  return results();
}

Results<float> Problem::results() const {
  const View<float, 4> rows(lse.data(), {1, lse.shape(0), lse.shape(1), lse.shape(2)},
                            {0, lse.stride(0), lse.stride(1), 1});
  return {flatten(out), flatten(rows),   flatten(stats),  flatten(dq), flatten(dk),
          flatten(dv),  flatten(d_bias), flatten(d_gate), flatten(dw)};
}

Twin run_twin(const Problem& p) {
  const auto& [B, Hq, Hk, T, S, D, Dv] = p.instance.shape;
  const auto doubles = [](const View<float, 4>& view) {
    const auto flat = flatten(view);
    return std::vector<double>(flat.begin(), flat.end());
  };
  const auto beginning = [](int64_t size) {
    std::vector<double> gradient;
    for (int64_t i = 0; i < size; ++i) gradient.push_back(double{initial_gradient(i)});
    return gradient;
  };
  Twin twin;
  twin.q = doubles(p.q), twin.k = doubles(p.k), twin.v = doubles(p.v), twin.d_out = doubles(p.d_out);
  twin.bias = doubles(p.bias), twin.gate = doubles(p.gate), twin.w = doubles(p.w);
  twin.out.resize(static_cast<size_t>(B * Hq * T * Dv));
  twin.lse.resize(static_cast<size_t>(B * Hq * T));
  for (auto* whole : {&twin.raw, &twin.masked, &twin.weights}) whole->resize(static_cast<size_t>(B * Hq * T * S));
  twin.dq = beginning(p.dq.size()), twin.dk = beginning(p.dk.size()), twin.dv = beginning(p.dv.size());
  twin.d_bias = beginning(p.d_bias.size()), twin.d_head_gate = beginning(p.d_gate.size());
  twin.dw = beginning(p.dw.size());
  const Dims<4> whole{B, Hq, T, S};
  reference::Inputs in{{twin.q.data(), p.q.shape()}, {twin.k.data(), p.k.shape()}, {twin.v.data(), p.v.shape()}};
  reference::Outputs out{.out = {twin.out.data(), p.out.shape()}, .lse = {twin.lse.data(), {B, Hq, T}}};
  out.raw = {twin.raw.data(), whole};
  out.masked = {twin.masked.data(), whole};
  out.weights = {twin.weights.data(), whole};
  reference::Gradients gradients{{twin.d_out.data(), p.d_out.shape()},
                                 {twin.dq.data(), p.dq.shape()},
                                 {twin.dk.data(), p.dk.shape()},
                                 {twin.dv.data(), p.dv.shape()}};
  if (p.bias) in.bias = {twin.bias.data(), p.bias.shape()}, gradients.d_bias = {twin.d_bias.data(), p.bias.shape()};
  if (p.gate) in.head_gate = {twin.gate.data(), {Hq}}, gradients.d_head_gate = {twin.d_head_gate.data(), {Hq}};
  if (p.w) in.w = {twin.w.data(), {Hq, D}}, gradients.dw = {twin.dw.data(), {Hq, D}};
  reference::attention_forward(in, out, p.options());
  reference::attention_backward(in, gradients, p.options());
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t s = 0; s < S; ++s) twin.seen.push_back(p.visible(b, h, t, s));
  return twin;
}

float initial_gradient(int64_t index) { return static_cast<float>(index % 7 - 3) * 0.125f; }

::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]))
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  return ::testing::AssertionSuccess();
}

void expect_same_bits(const Results<float>& a, const Results<float>& b) {
  EXPECT_TRUE(same_bits(a.out, b.out)) << "out";
  EXPECT_TRUE(same_bits(a.lse, b.lse)) << "lse";
  EXPECT_TRUE(same_bits(a.stats, b.stats)) << "stats";
  EXPECT_TRUE(same_bits(a.dq, b.dq)) << "dq";
  EXPECT_TRUE(same_bits(a.dk, b.dk)) << "dk";
  EXPECT_TRUE(same_bits(a.dv, b.dv)) << "dv";
  EXPECT_TRUE(same_bits(a.d_bias, b.d_bias)) << "d_bias";
  EXPECT_TRUE(same_bits(a.d_head_gate, b.d_head_gate)) << "d_head_gate";
  EXPECT_TRUE(same_bits(a.dw, b.dw)) << "dw";
}

std::vector<float> flatten(const View<float, 4>& view) {
  std::vector<float> flat;
  flat.reserve(static_cast<size_t>(view.size()));
  for_each_element(view, [&](const float& x) { flat.push_back(x); });
  return flat;
}

void fill(const View<float, 4>& view, float value) {
  for_each_element(view, [&](float& x) { x = value; });
}

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

double effort() {
  const char* text = std::getenv("HEED_TEST_EFFORT");
  return text ? std::clamp(std::strtod(text, nullptr), 1e-6, 1.0) : 1.0;
}

void for_draws(int count, const std::function<void(Rng&)>& body) {
  const char* only = std::getenv("HEED_TEST_DRAW");
  const auto draws = static_cast<uint64_t>(std::ceil(count * effort()));
  const uint64_t begin = only ? std::strtoull(only, nullptr, 10) : 0, end = only ? begin + 1 : draws;
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  // FNV-1a, so that every test has a stream of its own that no other test can shift.
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  for (uint64_t draw = begin; draw < end && !::testing::Test::HasFailure(); ++draw) {
    SCOPED_TRACE("again: HEED_TEST_DRAW=" + std::to_string(draw) + " --gtest_filter='*." + name + "'");
    Rng rng(seeded(seed), draw);
    body(rng);
  }
}

void for_targets(const std::function<void()>& body) {
  for (const auto& name : simd_targets()) {
    SCOPED_TRACE("target " + name);
    use_simd_target(name);
    body();
  }
  use_simd_target("");
}

}  // namespace heed::kernels::attention_testing
