// SPDX-License-Identifier: Apache-2.0
// Training any model, dropout on: the same bits on any number of threads, and nothing is allocated once shapes have
// been seen.
// fixed seed: that ten steps make a loss smaller is a matter of luck, and nothing else here depends on the numbers.
#include <gtest/gtest.h>

#include <vector>

#include "heed/base/counted_heap.h"
#include "heed/kernels/optimizer.h"
#include "heed/models/recurrent_testing.h"
#include "heed/ops/softmax.h"

namespace heed::models {
namespace {

using testing::Batch, testing::Machine, testing::Source;

// AdamW with clipping and label smoothing over a model and its store, as a trainer has it.
template <class Model, class Options>
class Training {
 public:
  Training(const Options& options, int threads)
      : machine_(threads),
        rng_(41),
        model_(options, rng_),
        store_(model_),
        m_(Tensor::zeros_like(store_.values())),
        v_(Tensor::zeros_like(store_.values())) {
    machine_.workspace.reserve(kernels::gradient_norm_bytes(store_.values().size()));
    for (const auto& entry : store_.entries()) {
      if (entry.decay) decayed_.push_back({entry.offset, entry.offset + entry.value.size()});
    }
  }

  double step(const Batch& batch) {
    tape_.clear();
    nn::Pass pass = machine_.pass(&tape_);
    pass.training = true;
    pass.random = random_;
    const auto result =
        ops::cross_entropy(pass, testing::run(model_, pass, batch), batch.target.ids, {.smoothing = 0.1, .ignored = 0});
    tape_.backward(result.loss, pass);
    random_ = pass.random;
    const auto gradients = store_.gradients().view<float, 1>();
    const double norm = kernels::gradient_norm(gradients, machine_.workspace, machine_.parallel);
    kernels::adam_step({.rate = 1e-3, .weight_decay = 0.01},
                       {.values = store_.values().view<float, 1>(),
                        .gradients = gradients,
                        .decayed = decayed_,
                        .gradient_scale = kernels::clip_scale(norm, 1),
                        .clear_gradients = true},
                       {m_.view<float, 1>(), v_.view<float, 1>(), ++steps_}, machine_.parallel);
    return result.sum;
  }
  const Tensor& values() const { return store_.values(); }

 private:
  Machine machine_;
  Rng rng_;
  Model model_;
  ParameterStore store_;
  Tensor m_, v_;
  std::vector<kernels::ElementRange> decayed_;
  Tape tape_;
  nn::RandomStream random_{42};
  int64_t steps_ = 0;
};

// Wide enough that there is work for several threads in every kernel.
TransformerOptions wide(TransformerKind kind, Positions positions) {
  TransformerOptions o = testing::shrunken(kind, positions, NormPlace::before);
  o.width = 64, o.heads = 4, o.inner = 160, o.vocabulary = 120;
  return o;
}

TEST(Training, GivesTheSameBitsOnAnyNumberOfThreads) {
  const TransformerOptions kinds[] = {wide(TransformerKind::encoder_decoder, Positions::sinusoid),
                                      wide(TransformerKind::decoder, Positions::rotary),
                                      wide(TransformerKind::encoder_decoder, Positions::alibi)};
  for (const TransformerOptions& options : kinds) {
    SCOPED_TRACE(testing::name_of(options));
    Tensor expected;
    std::vector<double> expected_losses;
    for (const int threads : {1, 2, 3}) {
      Training<Transformer, TransformerOptions> training(options, threads);
      Rng rng(43);
      std::vector<double> losses;
      losses.reserve(10);
      for (int step = 0; step < 10; ++step) losses.push_back(training.step(Batch(options, 6, 37, 29, rng)));
      if (threads == 1) {
        expected = training.values();
        expected_losses = losses;
        EXPECT_LT(losses.back(), losses.front());
      }
      EXPECT_EQ(losses, expected_losses) << threads << " threads";
      EXPECT_TRUE(testing::same_bits(training.values(), expected)) << threads << " threads";
    }
  }
}

// Two shapes in turn, each seen before the counting begins.
template <class Model, class Options>
void expect_no_allocation(const Options& options, const Batch& small, const Batch& large) {
  SCOPED_TRACE(testing::name_of(options));
  Training<Model, Options> training(options, 2);
  for (int i = 0; i < 2; ++i) training.step(small), training.step(large);
  const int64_t before = counted_heap::allocations();
  for (int i = 0; i < 3; ++i) training.step(large), training.step(small);
  EXPECT_EQ(counted_heap::allocations() - before, 0);
}

TEST(Training, OfATransformerAllocatesNothingOnceItsShapesHaveBeenSeen) {
  for (const TransformerOptions& options : testing::every_decoder()) {
    Rng rng(44);
    const Batch small(options, 2, 9, 7, rng), large(options, 3, 20, 31, rng);
    expect_no_allocation<Transformer>(options, small, large);
  }
}

TEST(Training, OfARecurrentModelAllocatesNothingOnceItsShapesHaveBeenSeen) {
  for (const RnnSeq2SeqOptions& options : testing::every_rnn_seq2seq()) {
    Rng rng(45);
    const Batch small(options, 2, 9, 7, rng), large(options, 3, 20, 31, rng);
    expect_no_allocation<RnnSeq2Seq>(options, small, large);
  }
}

TEST(Training, OfStatesThatAttendAllocatesNothingOnceItsShapesHaveBeenSeen) {
  for (const SelfAttentiveOptions& options : testing::every_self_attentive()) {
    Rng rng(46);
    const Source small(options, 2, 9, rng), large(options, 3, 20, rng);
    expect_no_allocation<SelfAttentive>(options, small, large);
  }
}

}  // namespace
}  // namespace heed::models
