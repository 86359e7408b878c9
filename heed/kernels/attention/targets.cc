// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/attention/targets.h"

#include "heed/base/error.h"
#include "hwy/highway.h"

namespace heed::kernels {

namespace {

// Highway numbers its targets so that the better one has the lower bit.
int64_t best_of(int64_t targets) { return targets & -targets; }

// What this build has and this machine can run, asked before any choice narrows the answer.
int64_t all_targets() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (int64_t left = all_targets(); left != 0; left &= left - 1) names.emplace_back(hwy::TargetName(best_of(left)));
  return names;
}

std::string simd_target() { return hwy::TargetName(best_of(all_targets() & hwy::SupportedTargets())); }

void use_simd_target(const std::string& name) {
  int64_t chosen = name.empty() ? all_targets() : 0;
  std::string known;
  for (int64_t left = all_targets(); left != 0; left &= left - 1) {
    const int64_t target = best_of(left);
    if (name == hwy::TargetName(target)) chosen = target;
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  if (chosen == 0) throw Error("simd target is '" + name + "', expected one of " + known);
  hwy::SetSupportedTargetsForTest(name.empty() ? 0 : chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace heed::kernels
