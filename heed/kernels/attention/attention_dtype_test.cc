// SPDX-License-Identifier: Apache-2.0
// Keys and values stored in 16 bits. Widening is exact, so the results must be the very bits that f32 storage of the
// same numbers gives; that those are right is what the other tests are for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/base/rng.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/testing.h"

namespace heed::kernels {
namespace {

template <class T>
struct Stored {
  std::vector<T> narrow;
  std::vector<float> wide;

  Stored(int64_t n, Rng& rng) : narrow(static_cast<size_t>(n)), wide(narrow.size()) {
    for (size_t i = 0; i < narrow.size(); ++i) {
      narrow[i] = T::from(rng.normal());
      wide[i] = static_cast<float>(narrow[i]);
    }
  }
};

struct Results {
  std::vector<float> out, stats, dq, dk, dv;
  bool operator==(const Results&) const = default;
};

Results run(const AttentionShape& s, const std::vector<float>& q, const KvView& k, const KvView& v,
            const std::vector<float>& d_out, const AttentionOptions& options) {
  const Dims<4> q_shape{s.B, s.Hq, s.T, s.D}, out_shape{s.B, s.Hq, s.T, s.Dv}, stats_shape{s.B, s.Hq, s.T, 2};
  const auto zeros = [](const Dims<4>& shape) { return std::vector<float>(static_cast<size_t>(element_count(shape))); };
  Results r{zeros(out_shape), zeros(stats_shape), zeros(q_shape), zeros(k.shape()), zeros(v.shape())};
  const AttentionInputs in{View<const float, 4>(q.data(), q_shape), k, v};
  const View<float, 4> out(r.out.data(), out_shape), stats(r.stats.data(), stats_shape);
  Workspace workspace;
  Parallel parallel(2);
  attention_forward(in, {.out = out, .stats = stats}, options, workspace, parallel);
  attention_backward(in,
                     {.out = out,
                      .stats = stats,
                      .d_out = View<const float, 4>(d_out.data(), out_shape),
                      .dq = View<float, 4>(r.dq.data(), q_shape),
                      .dk = View<float, 4>(r.dk.data(), k.shape()),
                      .dv = View<float, 4>(r.dv.data(), v.shape())},
                     options, workspace, parallel);
  return r;
}

// f32 storage as [B,S,H,D] is gathered like 16 bits are, so that the work is cut in the same way.
KvView strided(std::vector<float>& memory, const std::vector<float>& values, const Dims<4>& shape) {
  memory.resize(values.size());
  const View<const float, 4> from(values.data(), shape);
  const View<float, 4> to = View<float, 4>(memory.data(), {shape[0], shape[2], shape[1], shape[3]}).transposed(1, 2);
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t h = 0; h < shape[1]; ++h)
      for (int64_t s = 0; s < shape[2]; ++s)
        for (int64_t c = 0; c < shape[3]; ++c) to(b, h, s, c) = from(b, h, s, c);
  return to;
}

template <class T>
void expect_the_bits_of_f32(Rng& rng) {
  const auto pick = [&](std::initializer_list<int64_t> values) { return values.begin()[rng.below(values.size())]; };
  AttentionShape s;
  s.B = pick({1, 2});
  s.Hk = pick({2, 3});  // more than one head: [B,S,H,D] is strided then
  s.Hq = s.Hk * pick({1, 2});
  s.T = pick({1, 1, 2, 17, 64, 100, 130, 200});
  s.S = pick({0, 1, 9, 64, 65, 130, 400, 1100});
  s.D = pick({1, 3, 8, 20, 64, 65, 128});
  s.Dv = pick({1, 5, 16, 33, 64});
  AttentionOptions options;
  if (rng.below(2)) options.mask = Causal::bottom_right();
  SCOPED_TRACE("B=" + std::to_string(s.B) + " Hq=" + std::to_string(s.Hq) + " Hk=" + std::to_string(s.Hk) +
               " T=" + std::to_string(s.T) + " S=" + std::to_string(s.S) + " D=" + std::to_string(s.D) +
               " Dv=" + std::to_string(s.Dv));

  const Dims<4> k_shape{s.B, s.Hk, s.S, s.D}, v_shape{s.B, s.Hk, s.S, s.Dv};
  const Stored<T> k(element_count(k_shape), rng), v(element_count(v_shape), rng);
  std::vector<float> q(static_cast<size_t>(s.B * s.Hq * s.T * s.D)),
      d_out(static_cast<size_t>(s.B * s.Hq * s.T * s.Dv));
  for (float& x : q) x = rng.normal();
  for (float& x : d_out) x = rng.normal();

  std::vector<float> k_memory, v_memory;
  const Results wide =
      run(s, q, strided(k_memory, k.wide, k_shape), strided(v_memory, v.wide, v_shape), d_out, options);
  const Results narrow =
      run(s, q, View<const T, 4>(k.narrow.data(), k_shape), View<const T, 4>(v.narrow.data(), v_shape), d_out, options);
  EXPECT_TRUE(narrow == wide);
}

TEST(AttentionDtype, GivesTheBitsOfF32) {
  attention_testing::for_draws(60, [](Rng& rng) {
    attention_testing::for_targets([&] {
      Rng bf16 = rng, f16 = rng;  // the same shapes for both, on every target
      expect_the_bits_of_f32<BFloat16>(bf16);
      expect_the_bits_of_f32<Float16>(f16);
    });
  });
}

}  // namespace
}  // namespace heed::kernels
