// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's that needs attention alone: all it knows of heed is heed::attention.
#include <heed/attention.h>

#include <cstdio>

int main() {
  const float x[] = {1, 0, 0, 1}, values[] = {1, 2, 3, 4};
  float y[4];
  const heed::View<const float, 4> qk(x, {1, 1, 2, 2}), v(values, {1, 1, 2, 2});
  heed::Workspace workspace;
  heed::Parallel threads(2);
  heed::kernels::attention_forward({qk, qk, v}, {{y, {1, 1, 2, 2}}, {}, {}}, {}, workspace, threads);
  std::printf("%.4f %.4f %.4f %.4f", y[0], y[1], y[2], y[3]);
  try {
    heed::kernels::attention_forward({qk, qk, {}}, {}, {}, workspace, threads);
  } catch (const heed::Error&) {  // across the border of the library
    std::puts(" and an error");
  }
}
