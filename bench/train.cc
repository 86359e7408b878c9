// SPDX-License-Identifier: Apache-2.0
#include "bench/train.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/decoding.h"
#include "bench/report.h"
#include "heed/base/error.h"
#include "heed/folder/model_folder.h"
#include "heed/kernels/attention/targets.h"
#include "heed/models/presets.h"
#include "heed/train/trainer.h"

namespace heed::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kSeed = 1;

// The same batch at every step.
class OneBatch final : public data::BatchSource {
 public:
  explicit OneBatch(const data::Batch& batch) : batch_(batch) {}
  int64_t size() const override { return 1; }
  data::Batch at(int64_t, int64_t) const override { return batch_; }

 private:
  const data::Batch& batch_;
};

// Tokens of a batch, and pairs of tokens that see each other, as real numbers: products of them are large.
struct Counts {
  double source, target, self_pairs, masked_pairs, cross_pairs;

  explicit Counts(const data::Batch& b) {
    const auto rows = static_cast<double>(b.rows), S = static_cast<double>(b.source_length),
               T = static_cast<double>(b.target_length);
    source = rows * S, target = rows * T;
    self_pairs = rows * S * S, masked_pairs = rows * T * (T + 1) / 2, cross_pairs = rows * T * S;
  }
};

std::optional<double> forward_flops(const models::TransformerOptions& o, const Counts& n) {
  const bool usual =
      (o.head_width == 0 || o.head_width * o.heads == o.width) && (o.kv_heads == 0 || o.kv_heads == o.heads);
  if (o.kind != models::TransformerKind::encoder_decoder || !usual) return std::nullopt;
  const auto width = static_cast<double>(o.width), inner = static_cast<double>(o.inner);
  const double square = 2 * width * width, pair = 4 * width;  // of a token, and of a score with its value
  const double feed_forward = 2 * width * inner * (o.gated ? 3 : 2);
  const double encoder = n.source * (4 * square + feed_forward) + n.self_pairs * pair;
  const double cross = 2 * square * (n.target + n.source) + n.cross_pairs * pair;
  const double decoder = n.target * (4 * square + feed_forward) + n.masked_pairs * pair + cross;
  return static_cast<double>(o.encoder_layers) * encoder + static_cast<double>(o.decoder_layers) * decoder +
         n.target * 2 * width * static_cast<double>(o.vocabulary);
}

std::optional<double> forward_flops(const models::RnnSeq2SeqOptions& o, const Counts& n) {
  const bool one_width = o.embedding_width == 0 && o.source_embedding_width == 0 && o.encoder_width == 0 &&
                         o.decoder_width == 0 && o.encoder_layers == 0 && o.decoder_layers == 0;
  const bool plain = o.first_state == models::FirstState::last && o.bridge == models::Bridge::none && !o.input_feeding;
  if (o.encoder != models::Encoder::recurrent || !one_width || !plain) return std::nullopt;
  const auto width = static_cast<double>(o.width), gates = static_cast<double>(kernels::gates_of(o.cell)),
             layers = static_cast<double>(o.layers);
  const double square = 2 * width * width;
  // Two directions have half of the states each: the same products of the input, half of those of the states.
  const double encoder = n.source * layers * gates * square * (o.bidirectional ? 1.5 : 2);
  double decoder = n.target * layers * gates * square * 2;
  if (o.query == models::Query::previous) decoder += n.target * gates * square;  // the context is fed to the cell
  if (o.query != models::Query::none) {
    const bool additive = o.score == nn::Score::additive;
    if (additive || o.score == nn::Score::bilinear) decoder += n.target * square;  // queries
    if (additive) decoder += n.source * square;                                    // keys
    decoder += n.cross_pairs * 4 * width;
  }
  if (o.readout == models::Readout::both) decoder += n.target * 2 * square;
  return encoder + decoder + n.target * 2 * width * static_cast<double>(o.vocabulary);
}

std::optional<double> forward_flops(const models::SelfAttentiveOptions&, const Counts&) { return std::nullopt; }

Json to_json(const TrainFigures& f) {
  Json row = {{"preset", f.preset},         {"parameters", f.parameters},
              {"tokens", f.tokens},         {"first_loss", f.first_loss},
              {"ms", rounded(f.ms)},        {"tokens_per_second", rounded(f.tokens_per_second())},
              {"flops", optional(f.flops)}, {"rounds", f.rates.rounds}};
  row["gflops"] = f.flops ? Json(rounded(f.rates.gflops)) : Json(nullptr);
  row["percent_of_peak"] = f.flops ? Json(rounded(f.rates.percent_of_peak)) : Json(nullptr);
  row["peak_gflops"] = rounded(f.rates.peak_gflops);
  return row;
}

std::string table_line(const TrainFigures& f) {
  const auto figure = [&](double x) { return f.flops ? fmt::format("{:.1f}", x) : std::string("-"); };
  return fmt::format("{:<20} {:>11} {:>7} {:>10.1f} {:>10.1f} {:>9} {:>7} {:>10.4f}", f.preset, f.parameters, f.tokens,
                     f.ms, f.tokens_per_second(), figure(f.rates.gflops), figure(f.rates.percent_of_peak),
                     f.first_loss);
}

models::ModelOptions options_of(const std::string& name, const TrainBenchOptions& options) {
  const models::Preset& preset = models::preset_named(name);
  if (preset.task != models::Task::translate) {
    throw Error("--preset has '" + name + "', expected models that translate, such as transformer-small");
  }
  return models::model_options(preset, {.source = options.vocabulary}, options.dropout);
}

}  // namespace

data::Batch training_batch(const TrainBenchOptions& options) {
  const int64_t rows = options.batch_tokens / options.length, bare = options.length - 1;  // without the end
  if (rows < 1) {
    throw Error(
        fmt::format("--batch-tokens is {}, expected {} (--length) or more", options.batch_tokens, options.length));
  }
  const Ids ids = random_ids(2 * rows, bare, bare, options.vocabulary);
  std::vector<data::TokenPair> pairs(static_cast<size_t>(rows));
  std::vector<size_t> items(pairs.size());
  std::iota(items.begin(), items.end(), size_t{0});
  for (const size_t i : items) pairs[i] = {ids[2 * i], ids[2 * i + 1]};
  return data::pair_batch(pairs, items);
}

std::optional<double> training_flops(const models::ModelOptions& options, const data::Batch& batch) {
  const auto forward = std::visit([&](const auto& own) { return forward_flops(own, Counts(batch)); }, options.family);
  if (!forward) return std::nullopt;
  return 3 * *forward;
}

TrainFigures measure_training(const std::string& preset, const data::Batch& batch, const TrainBenchOptions& options) {
  const auto model = models::make_model(options_of(preset, options), kSeed);
  if (!options.save.empty()) folder::save(options.save, *model);
  Parallel parallel(options.threads);
  train::AdamW optimizer(model->parameters());
  const OneBatch batches(batch);
  train::Trainer trainer(*model, optimizer, batches, {}, parallel);
  TrainFigures f{.preset = preset, .parameters = model->parameters().count(), .tokens = batch.target_tokens};
  const auto step = [&] {
    const train::StepReport report = trainer.step();
    if (report.step == 1) f.first_loss = report.loss;
  };
  const std::vector<Series> all = measure(
      {{step}}, clock_for(parallel), [&] { return sample_moment(parallel); }, static_cast<int>(options.rounds));
  f.flops = training_flops(model->options(), batch);
  f.rates = rates_of(all, f.flops.value_or(0));
  f.ms = f.rates.ms;
  return f;
}

void bench_train(const TrainBenchOptions& options) {
  if (options.presets.empty()) throw Error("--preset is empty, expected names such as transformer-small");
  if (!options.save.empty() && options.presets.size() != 1) {
    throw Error(fmt::format("--save came with {} presets, expected one", options.presets.size()));
  }
  for (const std::string& preset : options.presets) options_of(preset, options);
  const data::Batch batch = training_batch(options);
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  const int threads = Parallel(options.threads).threads();
  Json all = machine_facts(threads);
  print_line(machine_line(threads));
  print_line(fmt::format("{} rows of {} + {} tokens, vocabulary {}, dropout {}, {} rounds", batch.rows,
                         batch.source_length, batch.target_length, options.vocabulary, options.dropout,
                         options.rounds));
  print_line(fmt::format("{:<20} {:>11} {:>7} {:>10} {:>10} {:>9} {:>7} {:>10}", "preset", "parameters", "tokens", "ms",
                         "tokens/s", "GFLOP/s", "% peak", "first loss"));
  all["vocabulary"] = options.vocabulary, all["dropout"] = options.dropout;
  all["batch_rows"] = batch.rows, all["length"] = options.length;
  all["rows"] = Json::array();
  for (const std::string& preset : options.presets) {
    const TrainFigures f = measure_training(preset, batch, options);
    print_line(table_line(f));
    all["rows"].push_back(to_json(f));
  }
  print_line(fmt::format("peak memory {:.1f} MiB", peak_megabytes()));
  all["peak_mib"] = rounded(peak_megabytes());
  if (options.ids)
    all["source"] = batch.source, all["target_in"] = batch.target_in, all["target_out"] = batch.target_out;
  if (file) file->commit(all.dump(options.ids ? -1 : 2) + "\n");
}

}  // namespace heed::bench
