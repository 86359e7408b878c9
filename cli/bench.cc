#include "cli/bench.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/attention.h"
#include "bench/layers.h"
#include "cli/flags.h"

namespace heed::cli {

namespace {

// Which rounds count, of every benchmark.
constexpr const char* kRounds = R"(
On a shared machine, somebody on the other hardware thread of the same core takes slots of its load ports:
multiply-adds in registers do not notice, and all that reads loses up to a third. So a moment counts as quiet where
multiply-adds on operands from L1 run at 97 % or more of those in registers. Rounds go on, for some seconds, until 31
were quiet, and then those count; if fewer than 30 were, all do. 'quiet' says how many of how many; '% all' is the
median over all rounds, '% best' the best time against the best peak.)";

constexpr const char* kAttentionHelp =
    R"(Times attention, forward, backward and decode, over a grid of shapes, masks, layouts and options.

Each figure is the median of at least 30 ratios, taken round by round to the FMA peak (or, for decode, to a plain
read of the same keys and values) measured right before and after, with the same threads. 'x unfused' is
the time of sgemm + vectorised softmax + sgemm, run in the same rounds, over the time of heed; where one
call of it takes over 0.1 s, it is run in every sixth round.
Where OpenBLAS runs AVX-512 and --simd asks for less, OPENBLAS_CORETYPE=Haswell makes it the same for both.
From 4 GFLOP on, forward_backward is the sum of the two. One thread is timed by its processor time, several by the
wall clock. Flops: 4D a visible score forward, 10D backward, 14D both.

A last word in a row's name is what is asked for beside: alibi, dense (a boolean mask), bias (with its gradient),
dropout (0.1), softcap (30), top8 (entropy and the eight strongest keys), map256 (attention received and a map of
256 x 256, by a second pass that is counted), additive (the score, A = D), paged16 and paged128 (a block table).
'per score' is the time for a visible score over that of the same row without that word, run in the same rounds; for
16-bit keys, grouped heads, windows and lengths, over that of 1,8,512,64 (decode: of the same row in f32). A dense mask
hides a tenth of the scores at random, and all count as visible. '% tanh' is the rate of the additive score's tanhs over
the rate at which the same tanh runs over an array in L1.
All rows take some ten minutes with one thread, and up to twenty on a busy machine.)";

constexpr const char* kLayersHelp =
    R"(Times layers, forward and backward.

Each figure is the median of at least 30 ratios, taken round by round to the FMA peak, or to a plain read of the same
weights, measured with the same threads. '% limit' is of whichever of the two is the slower: no kernel can pass 100.
One matrix of weights, run again and again, lies in the caches; '32 in turn' are read from memory.)";

// The flags that every benchmark has.
void add_flags(CLI::App* command, bench::BenchOptions& options, const std::string& example) {
  command->add_option("--json", options.json, "Write the figures to this file, too")->type_name("FILE");
  command
      ->add_option("--filter", options.filter, "Only rows whose name has all of these words, as in '" + example + "'")
      ->type_name("TEXT");
  command
      ->add_option("--simd", options.simd,
                   "Instruction set, for kernels and peak alike: AVX3 (AVX-512), AVX2, SSE4 or SCALAR; the best one if "
                   "not given")
      ->type_name("NAME");
  add_threads(*command, options.threads);
}

}  // namespace

void add_bench(CLI::App& heed, Action& action) {
  CLI::App* bench = heed.add_subcommand("bench", "Measure this build on this machine");
  CLI::App* attention = bench->add_subcommand("attention", std::string(kAttentionHelp) + "\n" + kRounds);
  auto options = std::make_shared<bench::BenchOptions>();
  add_flags(attention, *options, "forward BHTD none 1,8,512,64");
  attention->callback([options, &action] { action = [options] { bench::bench_attention(*options); }; });

  CLI::App* layers = bench->add_subcommand("layers", std::string(kLayersHelp) + "\n" + kRounds);
  auto layers_options = std::make_shared<bench::BenchOptions>();
  add_flags(layers, *layers_options, "linear forward M=8");
  layers->callback([layers_options, &action] { action = [layers_options] { bench::bench_layers(*layers_options); }; });
}

}  // namespace heed::cli
