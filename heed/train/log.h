// SPDX-License-Identifier: Apache-2.0
#pragma once
// log.jsonl: a line for every tenth step and every look at the dev set, for people who draw curves.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "heed/base/export.h"

namespace heed::train {

struct Progress;
struct Evaluation;

class HEED_API Log {
 public:
  explicit Log(std::string path);  // appends

  void step(const Progress&);
  void evaluation(const Progress&, const Evaluation&, bool best);
  // Leaves out what a run that was killed wrote after its last checkpoint.
  void cut_after(int64_t step);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void open();
  void line(const std::string& text);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// What a log tells, in the order of its lines. A line that was cut short is passed over.
struct Point {
  int64_t step = 0;
  double value = 0;
};
struct Curves {
  std::vector<Point> loss, rate, dev_loss, dev_bleu;  // BLEU only where it was measured
};
HEED_API Curves read_curves(const std::string& path);

}  // namespace heed::train
