// SPDX-License-Identifier: Apache-2.0
#include "heed/train/run_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "heed/base/error.h"

namespace heed::train {
namespace {

// What a run may go on with other values of. Data may have moved: what it holds is compared by itself (data_id.h).
constexpr std::array<std::string_view, 21> kMayChange{"data",
                                                      "source",
                                                      "target",
                                                      "dev",
                                                      "dev_source",
                                                      "dev_target",
                                                      "train.steps",
                                                      "train.rate",
                                                      "train.warmup",
                                                      "train.schedule",
                                                      "train.accumulate",
                                                      "train.sum_order",
                                                      "train.smoothing",
                                                      "train.clip",
                                                      "train.weight_decay",
                                                      "train.beta2",
                                                      "minutes",
                                                      "evaluate_every",
                                                      "stop_on",
                                                      "patience",
                                                      "average"};

class Lister final : public FieldVisitor {
 public:
  void field(const FieldInfo& info, int64_t& value) override { add(info, shortest(value)); }
  void field(const FieldInfo& info, float& value) override { add(info, shortest(value)); }
  void field(const FieldInfo& info, double& value) override { add(info, shortest(value)); }
  void field(const FieldInfo& info, bool& value) override { add(info, value ? "true" : "false"); }
  void field(const FieldInfo& info, std::string& value) override { add(info, value); }
  void field(const FieldInfo& info, Choice& value) override { add(info, std::string(value.names[value.chosen])); }
  void begin_struct(const FieldInfo&) override {}
  void end_struct() override {}
  std::vector<OptionText> list;

 private:
  void add(const FieldInfo& info, std::string text) { list.push_back({info.path, std::move(text)}); }
};

}  // namespace

std::vector<OptionText> texts_of(const RunOptions& options) {
  RunOptions copy = options;  // a visitor may set what it is shown
  Lister lister;
  visit_fields(copy, lister);
  return lister.list;
}

std::vector<OptionDifference> differences(const RunOptions& before, const RunOptions& now) {
  const std::vector<OptionText> old = texts_of(before), fresh = texts_of(now);
  std::vector<OptionDifference> result;
  for (size_t i = 0; i < old.size(); ++i) {
    if (old[i].text != fresh[i].text) result.push_back({old[i].path, old[i].text, fresh[i].text});
  }
  return result;
}

std::vector<OptionDifference> allowed_differences(const RunOptions& before, const RunOptions& now) {
  std::vector<OptionDifference> result = differences(before, now);
  for (const OptionDifference& one : result) {
    if (std::find(kMayChange.begin(), kMayChange.end(), one.path) != kMayChange.end()) continue;
    throw Error("train: " + one.name() + " is " + one.now + ", expected " + one.before +
                ", as the run began with: it cannot change when a run goes on");
  }
  return result;
}

}  // namespace heed::train
