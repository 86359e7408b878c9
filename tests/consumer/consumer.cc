// A program of somebody else's: all it knows of heed is the installed package.
#include <cstdio>

#include "heed/kernels/attention/attention.h"

int main() {
  const float x[] = {1, 0, 0, 1}, values[] = {1, 2, 3, 4};
  float y[4];
  const heed::View<const float, 4> qk(x, {1, 1, 2, 2}), v(values, {1, 1, 2, 2});
  heed::Workspace workspace;
  heed::Parallel threads(2);
  heed::kernels::attention_forward({qk, qk, v}, {{y, {1, 1, 2, 2}}, {}, {}}, {}, workspace, threads);
  std::printf("%.4f %.4f %.4f %.4f\n", y[0], y[1], y[2], y[3]);
}
