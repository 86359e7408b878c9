// SPDX-License-Identifier: Apache-2.0
// Causal self-attention over three words: which of them does 'it' attend to?
#include <heed/attention.h>

#include <cstdio>

int main() {
  using namespace heed;
  using namespace heed::kernels;
  constexpr int64_t T = 3, D = 4;
  const char* words[T] = {"the", "animal", "it"};
  const float vectors[T * D] = {1, 0, 0, 0, 0, 2, 0, 1, 0, 1.5, 0.5, 0};
  const float identity[T * T] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // as values: the output is then the weights themselves
  float weights[T * T];

  const View<const float, 4> x(vectors, {1, 1, T, D}), v(identity, {1, 1, T, T});  // [B,H,T,D], any strides
  const AttentionInputs in{.q = x, .k = x, .v = v};
  const AttentionOutputs out{.out = {weights, {1, 1, T, T}}, .lse = {}, .stats = {}};
  const AttentionOptions options{.scale = 1.0f, .mask = Causal::top_left()};

  const AttentionPlan plan = AttentionPlan::forward(in, out, options);  // throws if shapes or options do not fit
  Parallel threads(2);
  Workspace workspace(plan.workspace_bytes(threads.threads()));
  attention_forward(plan, in, out, workspace, threads);  // allocates nothing, cannot fail

  std::printf("%s\n", plan.describe().c_str());
  for (int64_t t = 0; t < T; ++t) {
    const float* row = out.out.at(0, 0, t);
    std::printf("%-8s%.2f  %.2f  %.2f\n", words[t], row[0], row[1], row[2]);
  }
}
