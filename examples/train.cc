// SPDX-License-Identifier: Apache-2.0
// Builds a model, trains it on pairs from memory, and saves it: words that come back in the opposite order.
#include <heed/heed.h>

#include <cstdio>

int main(int, char** argv) {
  using namespace heed;
  text::Corpus corpus;
  std::vector<std::string> lines;
  const std::string words[] = {"one", "two", "three", "four", "five", "six"};
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    std::string there, back;
    for (uint64_t n = 0, length = 2 + rng.below(4); n < length; ++n) {
      const std::string& word = words[rng.below(6)];
      there += (n ? " " : "") + word;
      back = word + (n ? " " : "") + back;
    }
    corpus.pairs.push_back({there, back});
    lines.push_back(there);
  }
  const std::shared_ptr<const text::Tokenizer> tokenizer = text::train_tokenizer(lines, {});
  const data::Batches batches(corpus, *tokenizer, *tokenizer, {.tokens = 512});

  const models::Preset& preset = models::preset_named("transformer-tiny");
  const auto model = models::make_model(models::model_options(preset, {.source = tokenizer->size()}), /*seed=*/1);
  Parallel parallel(2);
  train::AdamW optimizer(model->parameters());
  const train::TrainOptions options{.steps = 300, .rate = 3e-3, .warmup = 50, .schedule = train::Schedule::cosine};
  train::Trainer trainer(*model, optimizer, batches, options, parallel);
  while (trainer.steps_done() < options.steps) {
    const train::StepReport report = trainer.step();
    if (report.step % 100 == 0) std::printf("step %d  loss %.3f\n", int(report.step), report.loss);
  }
  folder::save(argv[1], *model, Tokenizers::shared(tokenizer));
}
