// SPDX-License-Identifier: Apache-2.0
// What an observer is shown of recurrent layers, in f32 and in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/single_head_attention.h"
#include "heed/nn/testing.h"

namespace heed::nn {
namespace {

using heed::testing::seeded;
using testing::deviation, testing::for_draws, testing::kUnit, testing::Machine, testing::scatter;

constexpr Cell kCells[] = {Cell::rnn, Cell::gru, Cell::lstm};

struct Seen {
  std::string path;
  Cell cell;
  bool reverse;
  int64_t position;
  std::vector<HypothesisRow> rows;
  std::vector<int64_t> lengths;
  Tensor h, c, gates, h0, c0;
};

class Recorder final : public Observer {
 public:
  bool wanted = true;
  std::vector<Seen> seen;

  bool wants_recurrent() const override { return wanted; }
  void recurrent(const RecurrentEvent& e) override {
    seen.push_back({e.path,
                    e.cell,
                    e.reverse,
                    e.position,
                    {e.rows.begin(), e.rows.end()},
                    {e.lengths.begin(), e.lengths.end()},
                    e.h,
                    e.c,
                    e.gates,
                    e.h0,
                    e.c0});
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction by its equations, in double: gate k of unit j is gates[k](..., j).
class ByHand {
 public:
  ByHand(const RecurrentDirection& parameters, Cell cell, int64_t width)
      : cell_(cell),
        H_(static_cast<size_t>(width)),
        w_ih_(parameters.w_ih.value.to_doubles()),
        w_hh_(parameters.w_hh.value.to_doubles()),
        b_ih_(parameters.b_ih.value.to_doubles()),
        b_hh_(parameters.b_hh.value.to_doubles()) {}

  std::vector<double> h, c, gates;  // after a step

  void step(const std::vector<double>& x) {
    const std::vector<double> before = h;
    const auto input = [&](size_t row) { return product(w_ih_, x, row) + b_ih_[row]; };
    const auto hidden = [&](size_t row) { return product(w_hh_, before, row) + b_hh_[row]; };
    gates.assign(static_cast<size_t>(kernels::gates_of(cell_)) * H_, 0);
    for (size_t j = 0; j < H_; ++j) {
      if (cell_ == Cell::rnn) {
        h[j] = gates[j] = std::tanh(input(j) + hidden(j));
      } else if (cell_ == Cell::gru) {
        const double r = sigmoid(input(j) + hidden(j)), z = sigmoid(input(H_ + j) + hidden(H_ + j));
        const double n = std::tanh(input(2 * H_ + j) + r * hidden(2 * H_ + j));
        gates[j] = r, gates[H_ + j] = z, gates[2 * H_ + j] = n;
        h[j] = (1 - z) * n + z * before[j];
      } else {
        const double i = sigmoid(input(j) + hidden(j)), f = sigmoid(input(H_ + j) + hidden(H_ + j));
        const double g = std::tanh(input(2 * H_ + j) + hidden(2 * H_ + j));
        const double o = sigmoid(input(3 * H_ + j) + hidden(3 * H_ + j));
        gates[j] = i, gates[H_ + j] = f, gates[2 * H_ + j] = g, gates[3 * H_ + j] = o;
        c[j] = f * c[j] + i * g;
        h[j] = o * std::tanh(c[j]);
      }
    }
  }

 private:
  static double product(const std::vector<double>& w, const std::vector<double>& x, size_t row) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += w[row * x.size() + i] * x[i];
    return sum;
  }
  Cell cell_;
  size_t H_;
  std::vector<double> w_ih_, w_hh_, b_ih_, b_hh_;
};

// Numbers [begin, begin + count) of a tensor, as doubles; zeros of an empty one.
std::vector<double> part_of(const Tensor& x, int64_t begin, int64_t count) {
  if (!x) return std::vector<double>(static_cast<size_t>(count));
  return x.reshaped({x.size()}).slice(begin, count).to_doubles();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], bound);
}

// The states, cells and gates that an event has, against the equations; and zeros in padding.
void expect_by_hand(const Seen& seen, const RecurrentDirection& parameters, const Tensor& x) {
  const int64_t B = x.shape(0), T = x.shape(1), I = x.shape(2), H = seen.h.shape(2);
  const int64_t G = static_cast<int64_t>(gate_names(seen.cell).size());
  const double unit = x.dtype() == DType::f64 ? 0x1p-53 : kUnit;
  // Sums of a step; what earlier steps were wrong by is squashed, but may add up.
  const double bound = static_cast<double>((T + 1) * (2 * (I + H) + 40)) * unit * 2;
  for (int64_t b = 0; b < B; ++b) {
    ByHand hand(parameters, seen.cell, H);
    hand.h = part_of(seen.h0, b * H, H), hand.c = part_of(seen.c0, b * H, H);
    const int64_t length = seen.lengths.empty() ? T : seen.lengths[static_cast<size_t>(b)];
    for (int64_t s = 0; s < T; ++s) {
      const int64_t t = s < length && seen.reverse ? length - 1 - s : s, row = b * T + t;
      if (s < length) {
        hand.step(part_of(x, row * I, I));
      } else {
        for (std::vector<double>* all : {&hand.h, &hand.c, &hand.gates}) all->assign(all->size(), 0);
        hand.gates.assign(static_cast<size_t>(kernels::gates_of(seen.cell) * H), 0);
      }
      expect_near(part_of(seen.h, row * H, H), hand.h, bound);
      if (seen.cell == Cell::lstm) expect_near(part_of(seen.c, row * H, H), hand.c, bound * static_cast<double>(T));
      if (G > 0) expect_near(part_of(seen.gates, row * G * H, G * H), hand.gates, bound);
    }
  }
  EXPECT_EQ(static_cast<bool>(seen.c), seen.cell == Cell::lstm);
  EXPECT_EQ(static_cast<bool>(seen.gates), seen.cell != Cell::rnn);
}

TEST(RecurrentEvent, HasWhatTheEquationsSay) {
  for_draws(40, [](Rng& rng) {
    const bool both = rng.below(2), begins = rng.below(2);
    const RecurrentOptions options{.cell = kCells[rng.below(3)], .width = both ? 8 : 5, .bidirectional = both};
    const int64_t B = 1 + static_cast<int64_t>(rng.below(4)), T = 1 + static_cast<int64_t>(rng.below(6)), I = 3;
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < B; ++b) lengths.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(T + 1))));
    if (rng.below(3) == 0) lengths.clear();
    const Tensor x = normal({B, T, I}, 1, rng), h0 = normal({B, options.width}, 1, rng),
                 c0 = normal({B, options.width}, 1, rng);
    const uint64_t seed = rng.next_u64();
    for (const DType dtype : {DType::f32, DType::f64}) {
      Rng weights(seed);
      Recurrent layer(I, options, "encoder", weights);
      const ParameterStore store(layer, dtype);
      scatter(store, seed);
      Machine machine;
      Recorder recorder;
      Pass pass = machine.pass();
      pass.observer = &recorder;
      std::vector<RecurrentStates> begin;
      if (begins) begin.push_back({h0.converted(dtype), {}});
      if (begins && options.cell == Cell::lstm) begin[0].c = c0.converted(dtype);
      const Tensor in = x.converted(dtype);
      layer(pass, in, {.lengths = lengths, .begin = begin, .position = 3});
      ASSERT_EQ(recorder.seen.size(), both ? 2u : 1u);
      for (const Seen& seen : recorder.seen) {
        EXPECT_EQ(seen.path, seen.reverse ? "encoder.layers.0.backward" : "encoder.layers.0.forward");
        EXPECT_TRUE(store.find(seen.path.substr(std::string("encoder.").size()) + ".w_hh"));
        EXPECT_EQ(seen.cell, options.cell);
        EXPECT_EQ(seen.position, 3);
        EXPECT_EQ(seen.lengths, lengths);
        EXPECT_EQ(seen.h.dtype(), dtype);
        EXPECT_EQ(static_cast<bool>(seen.h0), begins);
        expect_by_hand(seen, seen.reverse ? layer.layers[0].backward : layer.layers[0].forward, in);
      }
    }
  });
}

// The attentive recurrence, whose cell is fed contexts beside its input.
TEST(RecurrentEvent, OfAnAttentiveRecurrenceHasWhatTheEquationsSay) {
  for (const Cell cell : kCells) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      Machine machine;
      Rng rng(seeded(4));
      RecurrentDirection layer(cell, 3 + 5, 4, rng);
      SingleHeadAttention cross(Score::additive, "decoder.cross", 4, 5, rng);
      const ParameterStore store(layer, dtype), store_cross(cross, dtype);
      scatter(store, 5);
      Recorder recorder;
      Pass pass = machine.pass();
      pass.observer = &recorder;
      const Var x = normal({2, 6, 3}, 1, rng).converted(dtype), source = normal({2, 7, 5}, 1, rng).converted(dtype);
      ops::AttentiveRecurrenceArguments a{
          .recurrence = layer.arguments(pass, x), .keys = cross.keys(pass, source), .values = source};
      a.recurrence.options.cell = cell;
      a.recurrence.h0 = normal({2, 4}, 1, rng).converted(dtype);
      const auto result = cross.recurrence(pass, "decoder_top", a, {.role = AttentionRole::cross, .position = 2});
      ASSERT_EQ(recorder.seen.size(), 1u);
      const Seen& seen = recorder.seen[0];
      EXPECT_EQ(seen.path, "decoder_top");
      EXPECT_EQ(seen.position, 2);
      const Var both[] = {x, result.fed};
      expect_by_hand(seen, layer, ops::concat(pass, both).value());
    }
  }
}

// Token by token, in both layers, as in one call.
TEST(RecurrentEvent, OfStepsIsThatOfTheWhole) {
  constexpr int64_t T = 5;
  for (const Cell cell : kCells) {
    Machine machine;
    Rng rng(seeded(6));
    Recurrent layer(3, {.cell = cell, .width = 4, .layers = 2}, "decoder", rng);
    const ParameterStore store(layer, DType::f64);
    const Tensor x = normal({1, T, 3}, 1, rng).converted(DType::f64);
    Recorder whole, steps;
    Pass pass = machine.pass();
    pass.observer = &whole;
    layer(pass, x);
    ASSERT_EQ(whole.seen.size(), 2u);
    pass.observer = &steps;
    LayerStates states;
    for (int64_t t = 0; t < T; ++t) {
      states = layer(pass, x.reshaped({T, 3}).slice(t, 1).reshaped({1, 1, 3}), {.begin = states, .position = t}).last;
    }
    ASSERT_EQ(steps.seen.size(), 2u * T);
    for (size_t i = 0; i < steps.seen.size(); ++i) {
      const Seen &step = steps.seen[i], &all = whole.seen[i % 2];
      const int64_t t = static_cast<int64_t>(i / 2), G = static_cast<int64_t>(gate_names(cell).size());
      EXPECT_EQ(step.path, all.path);
      EXPECT_EQ(step.position, t);
      expect_near(step.h.to_doubles(), part_of(all.h, t * 4, 4), 1e-14);
      if (step.c) expect_near(step.c.to_doubles(), part_of(all.c, t * 4, 4), 1e-14);
      if (step.gates) expect_near(step.gates.to_doubles(), part_of(all.gates, t * 4 * G, 4 * G), 1e-14);
    }
  }
}

TEST(RecurrentEvent, ComesOnlyWhereItIsWanted) {
  Machine machine;
  Rng rng(seeded(7));
  const Recurrent layer(3, {.cell = Cell::lstm, .width = 4}, "encoder", rng);
  const Tensor x = normal({2, 5, 3}, 1, rng);
  Recorder recorder;
  recorder.wanted = false;
  Pass pass = machine.pass();
  const Tensor plain = layer(pass, x).h.value();
  pass.observer = &recorder;
  EXPECT_TRUE(testing::same_bits(layer(pass, x).h.value(), plain));
  EXPECT_TRUE(recorder.seen.empty());
  recorder.wanted = true;
  EXPECT_TRUE(testing::same_bits(layer(pass, x).h.value(), plain));
  EXPECT_EQ(recorder.seen.size(), 1u);
}

TEST(RecurrentEvent, SaysWhichHypothesisARowIs) {
  Machine machine;
  Rng rng(seeded(8));
  const Recurrent layer(3, {.cell = Cell::gru, .width = 4}, "decoder", rng);
  Recorder recorder;
  Pass pass = machine.pass();
  pass.observer = &recorder;
  const std::vector<HypothesisRow> rows{{0, 1}, {3, 9}};
  pass.rows = rows;
  layer(pass, normal({2, 1, 3}, 1, rng));
  ASSERT_EQ(recorder.seen.at(0).rows.size(), 2u);
  EXPECT_EQ(recorder.seen[0].rows[1].sentence, 3);
  EXPECT_EQ(recorder.seen[0].rows[1].node, 9);
  EXPECT_EQ(heed::testing::error_of([&] {
              layer(pass, normal({3, 1, 3}, 1, rng));
            }),
            "pass: rows has 2 entries, expected 3, one for each row of the batch");
}

// Gradients are those of a pass without an observer.
TEST(RecurrentEvent, DoesNotChangeTraining) {
  for (const Cell cell : kCells) {
    Machine machine;
    Rng rng(seeded(9));
    Recurrent layer(3, {.cell = cell, .width = 4, .bidirectional = true}, "encoder", rng);
    const ParameterStore store(layer);
    const Tensor x = normal({2, 5, 3}, 1, rng);
    Recorder recorder;
    std::vector<Tensor> gradients;
    for (Observer* observer : {static_cast<Observer*>(nullptr), static_cast<Observer*>(&recorder)}) {
      Tape tape;
      Pass pass = machine.pass(&tape);
      pass.observer = observer;
      store.clear_gradients();
      tape.backward(ops::sum(pass, layer(pass, x).h), pass);
      gradients.push_back(store.gradients().clone());
    }
    EXPECT_TRUE(testing::same_bits(gradients[0], gradients[1]));
    EXPECT_EQ(recorder.seen.size(), 2u);
  }
}

}  // namespace
}  // namespace heed::nn
