// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/generate.h"

#include <algorithm>
#include <utility>

#include "heed/decode/streams.h"

namespace heed::decode {
namespace {

// The text of tokens that begin with those of a prompt, in which the prompt stands as it came: with words that the
// tokenizer does not know, and its own spaces.
std::string with_prompt(const text::Tokenizer& tokenizer, std::span<const int32_t> tokens, size_t of_prompt,
                        const std::string& prompt) {
  std::string all = tokenizer.decode(tokens);
  const std::string begin = tokenizer.decode(tokens.first(of_prompt));
  if (!all.starts_with(begin)) return all;  // what follows has changed how the prompt is read
  const std::string follows = all.substr(begin.size());
  const size_t end = prompt.find_last_not_of(' ') + 1;  // a space that follows is written once
  return (follows.starts_with(' ') ? prompt.substr(0, end) : prompt) + follows;
}

}  // namespace

Generator::Generator(Engine engine) : engine_(std::move(engine)) {
  engine_.text_model().expect(models::Task::language);
}

Generation Generator::generate(const std::string& prompt, const GenerateOptions& options) const {
  return generate(std::span(&prompt, 1), options).front().front();
}

std::vector<Generations> Generator::generate(std::span<const std::string> prompts, const GenerateOptions& options,
                                             const Done<Generations>& done) const {
  return run(engine_.encode(prompts), prompts, options, done);
}

std::vector<Generations> Generator::generate_ids(std::span<const std::vector<int32_t>> prompts,
                                                 const GenerateOptions& options, const Done<Generations>& done) const {
  engine_.check_sources(prompts);
  return run(prompts, {}, options, done);
}

std::vector<Generations> Generator::run(std::span<const std::vector<int32_t>> prompts,
                                        std::span<const std::string> texts, const GenerateOptions& options,
                                        const Done<Generations>& done) const {
  const data::TextModel& model = engine_.text_model();
  std::vector<Generations> results(prompts.size());
  const auto text_of = [&](size_t item, const std::vector<int32_t>& tokens) -> std::string {
    if (!model.has_tokenizers()) return "";
    return texts.empty() ? model.target().decode(tokens)
                         : with_prompt(model.target(), tokens, prompts[item].size(), texts[item]);
  };
  InferencePass pass(engine_, options.call);
  CallOptions call = options.call;
  call.batch.exact = true;
  for_each_group(lengths_of(prompts), call, [&](std::span<const size_t> items) {
    const int64_t length = std::ssize(prompts[items.front()]);
    Tensor prefix = Tensor::uninitialised({std::ssize(items), length}, DType::i32);
    for (size_t row = 0; row < items.size(); ++row) {
      std::copy(prompts[items[row]].begin(), prompts[items[row]].end(),
                prefix.data<int32_t>() + static_cast<int64_t>(row) * length);
    }
    search(pass, model.model(),
           {.prefix = prefix,
            .special = model.special(),
            .streams = numbers_of(items, options.first),
            .required = options.constraints.required,
            .forbidden = options.constraints.forbidden},
           options.search, {.cancel = call.cancel, .done = [&](int64_t row, const std::vector<Hypothesis>& found) {
                              const size_t item = items[static_cast<size_t>(row)];
                              for (const Hypothesis& one : found) {
                                results[item].push_back({text_of(item, one.tokens), one.tokens, one.score,
                                                         one.log_probability, one.finished});
                              }
                              if (done) done(item, results[item]);
                            }});
  });
  return results;
}

}  // namespace heed::decode
