#include "heed/decode/generate.h"

#include <utility>

namespace heed::decode {

Generator::Generator(Engine engine) : engine_(std::move(engine)) {
  engine_.text_model().expect(models::Task::language);
}

Generation Generator::generate(const std::string& prompt, const GenerateOptions& options) const {
  return generate(std::span(&prompt, 1), options).front().front();
}

std::vector<Generations> Generator::generate(std::span<const std::string> prompts, const GenerateOptions& options,
                                             const Done<Generations>& done) const {
  return generate_ids(engine_.encode(prompts), options, done);
}

std::vector<Generations> Generator::generate_ids(std::span<const std::vector<int32_t>> prompts,
                                                 const GenerateOptions& options, const Done<Generations>& done) const {
  engine_.check_sources(prompts);
  const data::TextModel& model = engine_.text_model();
  std::vector<Generations> results(prompts.size());
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
           {.prefix = prefix, .special = model.special(), .streams = std::vector<int64_t>(items.begin(), items.end())},
           options.search,
           {.cancel = call.cancel, .done = [&](int64_t row, const std::vector<Hypothesis>& found) {
              const size_t item = items[static_cast<size_t>(row)];
              for (const Hypothesis& one : found) {
                results[item].push_back({model.has_tokenizers() ? model.target().decode(one.tokens) : "", one.tokens,
                                         one.score, one.log_probability, one.finished});
              }
              if (done) done(item, results[item]);
            }});
  });
  return results;
}

}  // namespace heed::decode
