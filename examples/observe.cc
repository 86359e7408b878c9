// SPDX-License-Identifier: Apache-2.0
// What one head attends to over 32,768 tokens, without ever storing 32,768 x 32,768 weights.
//
//   observe [tokens] [picture.pgm]
//
// The text is random, but for two passages that come again later. The head is built by hand to do what trained models
// learn by themselves ('induction'): a query asks what followed when the last two tokens were seen before. ALiBi makes
// it prefer what is near.
#include "heed/kernels/attention/observe.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "heed/base/rng.h"
#include "heed/kernels/attention/attention.h"

namespace {

using namespace heed;
using namespace heed::kernels;

constexpr int64_t kVocabulary = 1024, kWidth = 64, kTop = 3, kMap = 256;

// Passages, in 1/32 of the text: where each begins, where it is repeated, how long it is.
struct Passage {
  int64_t from, to, length;
};
constexpr Passage kPassages[] = {{6, 20, 3}, {14, 28, 1}};

std::vector<int64_t> make_text(int64_t tokens) {
  Rng rng(20);
  std::vector<int64_t> text(static_cast<size_t>(tokens));
  for (int64_t& token : text) token = static_cast<int64_t>(rng.below(kVocabulary));
  for (const auto& [from, to, length] : kPassages) {
    std::copy_n(text.begin() + from * tokens / 32, length * tokens / 32, text.begin() + to * tokens / 32);
  }
  return text;
}

// Rows of one head, [1,1,T,kWidth].
struct Rows {
  std::vector<float> numbers;
  View<float, 4> view;
  explicit Rows(int64_t T) : numbers(static_cast<size_t>(T * kWidth)), view(numbers.data(), {1, 1, T, kWidth}) {}
};

// Row t is the sum of two embeddings: `near` of the token at t - lag, and `far` of the one before it.
Rows embed(const std::vector<int64_t>& text, int64_t lag, const std::vector<float>& near,
           const std::vector<float>& far) {
  const auto T = static_cast<int64_t>(text.size());
  Rows rows(T);
  for (int64_t t = 0; t < T; ++t) {
    const auto add = [&](const std::vector<float>& table, int64_t at) {
      const int64_t token = at < 0 ? 0 : text[static_cast<size_t>(at)];
      for (int64_t d = 0; d < kWidth; ++d) rows.view(0, 0, t, d) += table[static_cast<size_t>(token * kWidth + d)];
    };
    add(near, t - lag);
    add(far, t - lag - 1);
  }
  return rows;
}

std::vector<float> random_table(uint64_t stream) {
  Rng rng(21, stream);
  std::vector<float> table(static_cast<size_t>(kVocabulary * kWidth));
  for (float& x : table) x = rng.normal();
  return table;
}

// Everything that is observed: as long as the text, or as large as the map.
struct Seen {
  std::vector<float> out, stats, entropy, top_weights, received, map;
  std::vector<int32_t> top_keys;

  explicit Seen(int64_t T)
      : out(static_cast<size_t>(T * kWidth)),
        stats(static_cast<size_t>(T * 2)),
        entropy(static_cast<size_t>(T)),
        top_weights(static_cast<size_t>(T * kTop)),
        received(static_cast<size_t>(T)),
        map(kMap * kMap),
        top_keys(static_cast<size_t>(T * kTop)) {}
};

void attend(const AttentionInputs& in, const AttentionOptions& options, Seen& seen) {
  const int64_t T = in.q.shape(2);
  Parallel threads(0);
  Workspace workspace;
  const View<float, 4> stats(seen.stats.data(), {1, 1, T, 2});
  // The first pass gives the output, and with it the entropy and the top keys of each row.
  attention_forward(in,
                    {.out = {seen.out.data(), {1, 1, T, kWidth}},
                     .stats = stats,
                     .entropy = {seen.entropy.data(), {1, 1, T}},
                     .top_weights = {seen.top_weights.data(), {1, 1, T, kTop}},
                     .top_keys = {seen.top_keys.data(), {1, 1, T, kTop}}},
                    options, workspace, threads);
  // The second goes over the scores again, with the statistics that the first has left.
  attention_observe(in, stats,
                    {.received = {seen.received.data(), {1, 1, T}}, .map_mean = {seen.map.data(), {1, 1, kMap, kMap}}},
                    options, workspace, threads);
  std::printf("scratch: %zu KB for %d threads\n", workspace.bytes() / 1024, threads.threads());
}

void print_entropy(const std::vector<float>& entropy) {
  std::printf("\nentropy of the rows, in nats: the lower, the surer\n");
  const auto T = static_cast<int64_t>(entropy.size());
  for (int64_t i = 0; i < 32; ++i) {
    const auto begin = entropy.begin() + i * T / 32, end = entropy.begin() + (i + 1) * T / 32;
    const float mean = std::accumulate(begin, end, 0.0f) / static_cast<float>(end - begin);
    const std::string bar(static_cast<size_t>(std::lround(mean * 5)), '#');
    std::printf("%6lld  %5.2f  %s\n", static_cast<long long>(i * T / 32), static_cast<double>(mean), bar.c_str());
  }
}

void print_top(const Seen& seen, int64_t t) {
  std::printf("%6lld looks at", static_cast<long long>(t));
  for (int64_t i = t * kTop; i < (t + 1) * kTop; ++i) {
    std::printf("  %6d (%.3f)", seen.top_keys[static_cast<size_t>(i)],
                static_cast<double>(seen.top_weights[static_cast<size_t>(i)]));
  }
  std::printf("\n");
}

// Brightness is the square root of a cell's share of its row's attention.
void write_picture(const std::string& path, const std::vector<float>& map, int64_t T) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << kMap << ' ' << kMap << "\n255\n";
  for (float mean : map) {
    const float share = mean * static_cast<float>(T) / static_cast<float>(kMap);
    file.put(static_cast<char>(std::lround(255 * std::sqrt(std::min(1.0f, share)))));
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void run(int64_t T, const std::string& picture) {
  const std::vector<int64_t> text = make_text(T);
  const std::vector<float> near = random_table(1), far = random_table(2);
  const Rows q = embed(text, 0, near, far), k = embed(text, 1, near, far), v = embed(text, 0, near, far);
  const std::array slopes = {8 / static_cast<float>(T)};
  const AttentionInputs in{.q = q.view, .k = k.view, .v = v.view};
  const AttentionOptions options{.mask = {Causal::top_left(), Alibi::top_left(slopes)}};
  Seen seen(T);
  attend(in, options, seen);

  print_entropy(seen.entropy);
  std::printf("\nstrongest keys of some rows\n");
  for (int64_t part : {10, 21, 22, 28}) print_top(seen, part * T / 32 + T / 64);
  const auto most = std::max_element(seen.received.begin(), seen.received.end());
  std::printf("\nkey %lld receives the most attention: that of %.1f queries\n",
              static_cast<long long>(most - seen.received.begin()), static_cast<double>(*most));
  write_picture(picture, seen.map, T);
  std::printf("a map of %lld x %lld cells is in %s\n", static_cast<long long>(kMap), static_cast<long long>(kMap),
              picture.c_str());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("memory at its peak: %ld MB; all weights at once would take %.0f MB\n", usage.ru_maxrss / 1024,
              static_cast<double>(T) * static_cast<double>(T) * 4 / (1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int64_t tokens = argc > 1 ? std::stoll(argv[1]) : 32768;
    if (tokens < 64) throw std::runtime_error("tokens is " + std::to_string(tokens) + ", expected 64 or more");
    run(tokens, argc > 2 ? argv[2] : "observe.pgm");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "observe: %s\n", error.what());
    return 1;
  }
}
