// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/attention.h"
#include "bench/explain.h"
#include "bench/generate.h"
#include "bench/layers.h"
#include "bench/ranks.h"
#include "bench/ring.h"
#include "bench/train.h"
#include "bench/translate.h"
#include "cli/flags.h"
#include "cli/ranks.h"

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
the time of product + vectorised softmax + product with all weights stored, run in the same rounds, over the
time of heed; where one call of it takes over 0.1 s, it is run in every sixth round.
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

constexpr const char* kTranslateHelp =
    R"(Times translation: output tokens a second, greedy and by beam search, for each size of batch.

Every round translates the same sentences once for each row of the table, row after row; the first round is not counted,
and the figure is the median of the others, by the wall clock. Tokens are those of the best hypothesis of each sentence,
without its end. With --data, the first --sentences lines of a file; without, sentences of heed's own grammar where the
model knows all of their words, and otherwise random ids, 8 to 24 a sentence, of a fixed seed. Also said: the time to
open the folder, once, and the most memory that the process held.

Without --model, the parameters of --preset are random, of a fixed seed, and every output is forced to 24 tokens (or
--length): speed can be measured with no training at all. Memory then counts gradients, too. With --ids, the JSON file
has the ids of sources and outputs, so that another program can be given the same. Examples:

  heed bench translate --preset transformer-base --threads 1
  heed bench translate --model model --data test.tsv --beam 1,4 --batch 1,32 --json translate.json)";

constexpr const char* kGenerateHelp =
    R"(Times a language model: its prompt in one pass, and the tokens after it one by one, at several lengths.

A prompt of each length, random ids of a fixed seed, is read in one pass ('prompt': tokens a second); then --steps
tokens follow, each of them the likeliest, with the keys and values of all before them in the cache ('steps': tokens a
second, and the time for one step of the whole batch). So one sees how the time for a token grows with the
length before it. The end of the text is a token like others here. Each row is the median over --rounds, by the wall
clock, after one round that is not counted. Also said: the time to open the folder, once, and the most memory that the
process held. Without --model, the parameters of --preset are random, of a fixed seed; memory then counts gradients,
too. Examples:

  heed bench generate --preset lm-small --length 16,128,512,960 --batch 1,8
  heed bench generate --model model --threads 2 --json generate.json)";

constexpr const char* kTrainHelp =
    R"(Times a step of training: forward, backward, clipping of the gradient and AdamW, over random ids of a fixed seed.

A batch has --batch-tokens on each side, in rows of one length, so that nothing is padding; it is the same at every
step. 'ms' is the median over --rounds, after one step that is not counted; one thread is timed by its processor time,
several by the wall clock. 'tokens' are those of the targets. '% peak' is the rate of the products, three times those
of a forward pass, over the rate of multiply-adds in registers, measured before and after each step. With --dropout 0
and --ids, the JSON file has what another program needs to compute the loss of the first step from the model that
--save has written. Examples:

  heed bench train --preset transformer-small,rnn-attention --threads 2
  heed bench train --preset transformer-base --rounds 3 --json train.json)";

constexpr const char* kRanksHelp =
    R"(Times a step of training on several ranks, as mpirun starts them, and what of it is waiting for other ranks.

Said at first: what a rank takes for a batch while all others compute, and for the rest of a step (norm, optimizer), how
long a message takes, and how many bytes a second go there and back. Then a step, the fastest of --rounds: its gradients
added by a tree, which gives the same bits on any number of ranks, or by MPI's all-reduce; sent after the backward pass,
or within it. At last a model of a step on up to 1,000 ranks that are like these, with what was measured. Examples:

  mpirun -n 2 heed bench ranks --threads 1
  heed bench ranks --threads 1 --preset transformer-base)";

constexpr const char* kExplainHelp =
    R"(Times the methods of heed explain beside a plain pass, and measures how well they predict.

Of a model that translates: for each of the first --sentences pairs of --data (by default of heed's own grammar), one
token of the reference, drawn with a fixed seed, is explained by every method, and by leaving each token of the source
out, which is measured. 'x plain' is a method's time over that of a plain pass over the same pair, the median;
'spearman' the rank correlation of its numbers with what leaving out changes, by size, the mean over the pairs; 'first'
how often its largest number is at the same token. Of a language model: texts of --length random ids, whose last token
is explained; times and memory alone. Examples:

  heed bench explain --model model --data corpus/test.tsv
  heed bench explain --model lm --length 16000 --sentences 1 --steps 1)";

constexpr const char* kRingHelp =
    R"(Times ring attention: one sequence over several ranks, beside the same in one process, and compares the results.

Every rank has its rows of random queries, keys and values; keys and values go round the ring of ranks. 'ring s' is the
time until the last rank was done, 'one process s' that of rank 0 with the whole sequence and as many threads as all ranks
have, but no more than the machine has; the others wait meanwhile. Shares of the work are visible pairs of a query and a
key. 'MB sent' and 's waited' (for messages that had not come when they were needed) are of all passes and rounds; 'MB
held' is the most: arguments, results, gradients and what a pass has beside them. 'received' is a second pass over the
scores: the attention that each key receives. Ranks are threads of this process, each with --threads threads or, started
by mpirun or srun, processes. --alone leaves the one process out, for sequences that it has no memory for. Examples:

  heed bench ring --ranks 4 --length 65536
  mpirun -n 4 --bind-to none heed bench ring --length 262144 --alone)";

void add_json(CLI::App* command, std::string& json) {
  command->add_option("--json", json, "Write the figures to this file, too")->type_name("FILE");
}

// Which model: a folder, or a preset with random parameters.
void add_subject(CLI::App* command, bench::SubjectOptions& subject, std::string& json, int& threads) {
  command->add_option("--model", subject.model, "Folder of the model; without: random parameters")->type_name("DIR");
  add_json(command, json);
  add_threads(*command, threads);
}

void add_numbers(CLI::App* command, const char* flag, std::vector<int64_t>& numbers, const char* help) {
  command->add_option(flag, numbers, help)->delimiter(',')->type_name("N,...")->capture_default_str();
}

// A benchmark whose options describe themselves; `add` adds the flags that are in no description.
template <class Options>
struct Benchmark {
  const char *name, *help;
  void (*add)(CLI::App*, Options&);
  void (*run)(const Options&);
};

template <class Options>
void visit_all(Options& options, FieldVisitor& visitor) {
  if constexpr (requires { options.subject; }) visit_fields(options.subject, visitor);
  visit_fields(options, visitor);
}

template <class Options>
void add_benchmark(const Benchmark<Options>& benchmark, CLI::App* bench, Action& action) {
  struct Command {
    Options options;
    Flags flags;
  };
  CLI::App* app = bench->add_subcommand(benchmark.name, benchmark.help);
  auto command = std::make_shared<Command>();
  benchmark.add(app, command->options);
  const auto fields = [command](FieldVisitor& visitor) { visit_all(command->options, visitor); };
  command->flags.add(*app, fields);
  app->callback([command, fields, run = benchmark.run, &action] {
    action = [command, fields, run] {
      command->flags.apply(fields);
      run(command->options);
    };
  });
}

constexpr Benchmark<bench::TranslateBenchOptions> kTranslate{
    .name = "translate",
    .help = kTranslateHelp,
    .add =
        [](CLI::App* app, bench::TranslateBenchOptions& options) {
          add_subject(app, options.subject, options.json, options.threads);
          app->add_option("--data", options.data, "Sentences, one a line; what follows a tab is not read")
              ->type_name("FILE");
          add_numbers(app, "--beam", options.beams, "Hypotheses kept; 1: greedy");
          add_numbers(app, "--batch", options.batches, "Sentences that are worked on together");
        },
    .run = [](const bench::TranslateBenchOptions& options) { bench::bench_translate(options); }};

constexpr Benchmark<bench::GenerateBenchOptions> kGenerate{
    .name = "generate",
    .help = kGenerateHelp,
    .add =
        [](CLI::App* app, bench::GenerateBenchOptions& options) {
          add_subject(app, options.subject, options.json, options.threads);
          add_numbers(app, "--length", options.lengths, "Tokens of the prompt");
          add_numbers(app, "--batch", options.batches, "Prompts that are worked on together");
        },
    .run = [](const bench::GenerateBenchOptions& options) { bench::bench_generate(options); }};

constexpr Benchmark<bench::ExplainBenchOptions> kExplain{
    .name = "explain",
    .help = kExplainHelp,
    .add =
        [](CLI::App* app, bench::ExplainBenchOptions& options) {
          app->add_option("--model", options.model, "Folder of the model")->type_name("DIR");
          app->add_option("--data", options.data, "Pairs of a model that translates: TSV")->type_name("FILE");
          add_json(app, options.json);
          add_threads(*app, options.threads);
        },
    .run = [](const bench::ExplainBenchOptions& options) { bench::bench_explain(options); }};

constexpr Benchmark<bench::TrainBenchOptions> kTrain{
    .name = "train",
    .help = kTrainHelp,
    .add =
        [](CLI::App* app, bench::TrainBenchOptions& options) {
          app->add_option("--preset", options.presets, "The models, with random parameters")
              ->delimiter(',')
              ->type_name("NAME,...")
              ->capture_default_str();
          add_json(app, options.json);
          add_threads(*app, options.threads);
        },
    .run = [](const bench::TrainBenchOptions& options) { bench::bench_train(options); }};

constexpr Benchmark<bench::RanksBenchOptions> kRanks{
    .name = "ranks",
    .help = kRanksHelp,
    .add = [](CLI::App* app, bench::RanksBenchOptions& options) { add_threads(*app, options.threads); },
    .run =
        [](const bench::RanksBenchOptions& options) {
          on_ranks([&](dist::Communicator& communicator) { bench::bench_ranks(options, communicator); });
        }};

constexpr Benchmark<bench::RingBenchOptions> kRing{
    .name = "ring",
    .help = kRingHelp,
    .add =
        [](CLI::App* app, bench::RingBenchOptions& options) {
          add_json(app, options.json);
          add_threads(*app, options.threads);
        },
    .run = [](const bench::RingBenchOptions& options) { bench::bench_ring(options); }};

// The flags that every benchmark of kernels has.
void add_flags(CLI::App* command, bench::BenchOptions& options, const std::string& example) {
  add_json(command, options.json);
  command
      ->add_option(
          "--filter", options.filter,
          "Only rows whose name has all of these words, as in '" + example + "'; a whole name is that row alone")
      ->type_name("TEXT");
  const auto check = [](const std::string& text) -> std::string {
    int n = 0;
    if (CLI::detail::lexical_cast(text, n) && n >= 0 && n <= 10000) return "";
    return "'" + text + "' is not a number of rounds, expected 0 (as said above) to 10000";
  };
  command
      ->add_option(
          "--rounds", options.rounds,
          "Rounds of each row, quiet or not; 0: as said above. For programs that compare, in rounds of their own")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Validator(check, ""));
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
  add_flags(attention, *options, "forward causal 2048");
  attention->callback([options, &action] { action = [options] { bench::bench_attention(*options); }; });

  CLI::App* layers = bench->add_subcommand("layers", std::string(kLayersHelp) + "\n" + kRounds);
  auto layers_options = std::make_shared<bench::BenchOptions>();
  add_flags(layers, *layers_options, "linear forward M=8");
  layers->callback([layers_options, &action] { action = [layers_options] { bench::bench_layers(*layers_options); }; });
  add_benchmark(kTranslate, bench, action);
  add_benchmark(kGenerate, bench, action);
  add_benchmark(kExplain, bench, action);
  add_benchmark(kTrain, bench, action);
  add_benchmark(kRanks, bench, action);
  add_benchmark(kRing, bench, action);
}

}  // namespace heed::cli
