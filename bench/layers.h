// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench layers`: how close whole layers come to what the machine can do.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "heed/base/parallel.h"

namespace heed::bench {

// Prints a table to standard output as it goes. Throws Error, before anything is measured, where no row is left, the
// file cannot be written or the machine has no such instruction set.
void bench_layers(const BenchOptions&);

// A layer with its numbers, ready to run.
struct LayerProblem {
  std::function<void()> run;  // owns what it works on
  double flops = 0;           // of one run
  std::vector<Bytes> read{};  // what a run cannot do without reading; empty: reading is not what bounds it
  int64_t calls = 1;          // of the layer, in one run
};

// One row: what it is called, and how to make it. Nothing is allocated before `make`.
struct LayerRow {
  std::string layer, pass;
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::string weights;  // how they are stored, and where they lie
  std::function<LayerProblem(Parallel&)> make;
};

std::string name(const LayerRow&);  // "linear forward M=8 I=512 O=2048 f32 packed"

struct LayerFigures {
  Rates rates;                                  // ms: of one call of the layer
  std::optional<double> percent_of_read = {};   // of the rate at which the same bytes are merely read
  std::optional<double> percent_of_limit = {};  // of the slower of that and of the peak: no kernel can pass 100
};
LayerFigures measure_layer(const LayerProblem&, Parallel&, int rounds = 0);  // rounds: of measure.h

std::vector<LayerRow> layer_rows();  // all of them
std::vector<LayerRow> linear_rows();
std::vector<LayerRow> encoder_rows();
std::vector<LayerRow> recurrent_rows();
std::vector<LayerRow> attentive_rows();

}  // namespace heed::bench
