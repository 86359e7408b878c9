// SPDX-License-Identifier: Apache-2.0
// A model and its folder: what was saved comes back to the bit, and a folder that is broken says so in one line.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "heed/base/counted_heap.h"
#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/folder/model_folder.h"
#include "heed/io/safetensors.h"

namespace heed::folder {
namespace {

using namespace models;  // NOLINT(google-build-using-namespace)
using heed::testing::seeded;

using heed::testing::bytes_of, heed::testing::error_of, heed::testing::TemporaryFolder, heed::testing::text_of;

ModelOptions small_options(TransformerKind kind) {
  TransformerOptions o;
  o.kind = kind;
  o.vocabulary = 9, o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 20;
  o.encoder_layers = o.decoder_layers = 1;
  return o;
}

class SavedModel : public ::testing::Test {
 protected:
  SavedModel() { save(folder_.path(), *model_); }

  std::string load_error() {
    const std::string text = error_of([&] { open_model(folder_.path()); });
    EXPECT_EQ(text.find('\n'), text.npos) << text;
    return text;
  }
  std::string config() const { return folder_.file("config.json"); }
  std::string parameters() const { return folder_.file("model.safetensors"); }
  std::string read(const std::string& path) const { return text_of(read_file(path, 1 << 20)); }
  void write(const std::string& path, const std::string& text) const { write_file_atomically(path, bytes_of(text)); }

  // The file again, after `change` has been at its tensors.
  void rewrite(auto&& change) const {
    const io::SafetensorsFile file(parameters());
    std::vector<io::TensorEntry> tensors(file.tensors().begin(), file.tensors().end());
    change(tensors);
    io::write_safetensors(parameters(), std::move(tensors), file.metadata());
  }

  TemporaryFolder folder_;
  std::unique_ptr<Model> model_ = make_model(small_options(TransformerKind::encoder_decoder), seeded(1));
};

TEST_F(SavedModel, GivesBackTheSameBits) {
  for (const TransformerKind kind : {TransformerKind::encoder_decoder, TransformerKind::decoder}) {
    const auto saved = make_model(small_options(kind), seeded(7));
    const TemporaryFolder folder;
    save(folder.file("a/b"), *saved);
    const auto loaded = open_model(folder.file("a/b"));
    EXPECT_EQ(loaded->options().as<TransformerOptions>().kind, kind);
    EXPECT_EQ(loaded->options().as<TransformerOptions>().inner, 12);
    const Tensor &a = saved->parameters().values(), &b = loaded->parameters().values();
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_TRUE(std::equal(a.raw(), a.raw() + a.bytes(), b.raw()));
  }
}

TEST_F(SavedModel, IsLoadedWithoutGradientsUnlessTheyAreWanted) {
  EXPECT_FALSE(open_model(folder_.path())->parameters().gradients());
  const auto trainable = open_model(folder_.path(), DType::f64, true);
  EXPECT_EQ(trainable->parameters().gradients().size(), trainable->parameters().values().size());
  EXPECT_EQ(trainable->parameters().values().to_doubles(), model_->parameters().values().to_doubles());
}

TEST_F(SavedModel, ASeedGivesTheSameModel) {
  const auto again = make_model(small_options(TransformerKind::encoder_decoder), seeded(1)),
             other = make_model(small_options(TransformerKind::encoder_decoder), seeded(2));
  EXPECT_EQ(model_->parameters().values().to_doubles(), again->parameters().values().to_doubles());
  EXPECT_NE(model_->parameters().values().to_doubles(), other->parameters().values().to_doubles());
}

TEST_F(SavedModel, SaysWhatIsMissing) {
  EXPECT_EQ(error_of([&] { open_model(folder_.file("nowhere")); }),
            "model folder '" + folder_.file("nowhere") +
                "' is not there, expected one with config.json and model.safetensors");
  std::filesystem::remove(parameters());
  EXPECT_NE(load_error().find(parameters() + ": cannot open"), std::string::npos) << load_error();
  std::filesystem::remove(folder_.file("config.json"));
  EXPECT_NE(load_error().find(folder_.file("config.json") + ": cannot open"), std::string::npos) << load_error();
}

TEST_F(SavedModel, SaysWhichTensorDoesNotFit) {
  const std::string all = read(parameters());
  rewrite([](auto& tensors) { std::erase_if(tensors, [](auto& t) { return t.name == "embedding.weight"; }); });
  EXPECT_EQ(load_error(),
            parameters() + ": has no tensor for 1 parameter that " + config() + " asks for ('embedding.weight')");

  write(parameters(), all);
  rewrite([](auto& tensors) { tensors.push_back({"extra", io::ElementType::f32, {0}, {}}); });
  EXPECT_EQ(load_error(), parameters() + ": has 1 tensor that no parameter of this model has the name of ('extra')");

  write(parameters(), all);
  rewrite([](auto& tensors) {
    for (auto& t : tensors) {
      if (t.name == "embedding.weight") t.shape = {8, 9};
    }
  });
  EXPECT_EQ(load_error(), parameters() + ": tensor 'embedding.weight' is F32 [8, 9], expected [9, 8] by " + config());

  write(parameters(), all);
  rewrite([](auto& tensors) {
    for (auto& t : tensors) {
      if (t.name == "embedding.weight") t.type = io::ElementType::i32;
    }
  });
  EXPECT_EQ(
      load_error(),
      parameters() + ": tensor 'embedding.weight' is I32 [9, 8], expected F16, BF16, F32 or F64 [9, 8] by " + config());
}

TEST_F(SavedModel, RejectsAFileThatWasCutShortAnywhere) {
  const std::string all = read(parameters());
  for (size_t kept : {size_t{0}, size_t{4}, size_t{8}, size_t{100}, all.size() / 2, all.size() - 1}) {
    write(parameters(), all.substr(0, kept));
    EXPECT_TRUE(load_error().starts_with(parameters() + ": ")) << kept << ": " << load_error();
  }
}

TEST_F(SavedModel, RejectsABrokenConfig) {
  const std::string config = folder_.file("config.json"), all = read(config);
  const auto with = [&](const std::string& from, const std::string& to) {
    const size_t at = all.find(from);
    EXPECT_NE(at, all.npos) << from;
    write(config, std::string(all).replace(at, from.size(), to));
    return load_error();
  };
  write(config, all.substr(0, all.size() / 2));
  EXPECT_TRUE(load_error().starts_with(config + ": ")) << load_error();
  write(config, "");
  EXPECT_TRUE(load_error().starts_with(config + ": ")) << load_error();
  EXPECT_NE(with("\"heads\": 2", "\"heads\": 0").find("config.json: transformer.heads is 0"), std::string::npos);
  EXPECT_NE(with("\"heads\": 2", "\"haeds\": 2").find("did you mean"), std::string::npos);
  EXPECT_EQ(with("\"heads\": 2", "\"heads\": 3"),
            config + ": transformer: width is 8, expected a multiple of heads (3)");
  EXPECT_EQ(with("\"width\": 8", "\"width\": 16"),
            parameters() + ": tensor 'embedding.weight' is F32 [9, 8], expected [9, 16] by " + config);
}

// Sizes are compared with the tensors before memory is taken for them, and have bounds where there are none.
TEST_F(SavedModel, DoesNotBelieveSizes) {
  const std::string all = read(config());
  const auto with = [&](const std::string& from, const std::string& to) {
    const size_t at = all.find(from);
    EXPECT_NE(at, all.npos) << from;
    write(config(), std::string(all).replace(at, from.size(), to));
    counted_heap::reset_peak();
    const int64_t before = counted_heap::alive_bytes();
    const std::string error = load_error();
    EXPECT_LT(counted_heap::peak_bytes() - before, 20 << 20) << to;
    return error;
  };
  EXPECT_EQ(with("\"inner\": 12", "\"inner\": 2000000"),
            parameters() + ": tensor 'encoder.0.feed_forward.first.weight' is F32 [12, 8], expected [2000000, 8] by " +
                config());
  EXPECT_EQ(with("\"vocabulary\": 9", "\"vocabulary\": 1000000000"),
            parameters() + ": tensor 'embedding.weight' is F32 [9, 8], expected [1000000000, 8] by " + config());
  EXPECT_EQ(with("\"width\": 8", "\"width\": 1048576"),
            parameters() + ": tensor 'embedding.weight' is F32 [9, 8], expected [9, 1048576] by " + config());
  EXPECT_EQ(with("\"decoder_layers\": 1", "\"decoder_layers\": 4611686018427387904"),
            config() + ": transformer.decoder_layers is 4611686018427387904, expected an integer in [0, 1000]");
  EXPECT_EQ(with("\"decoder_layers\": 1", "\"decoder_layers\": 1000"),
            parameters() + ": has no tensor for 25974 parameters that " + config() +
                " asks for ('decoder.1.self.q.weight', 'decoder.1.self.q.bias', 'decoder.1.self.k.weight', "
                "'decoder.1.self.k.bias', 'decoder.1.self.v.weight' and 25969 more)");
  EXPECT_EQ(with("\"head_width\": 0", "\"head_width\": 1048576"),
            parameters() + ": tensor 'encoder.0.self.q.weight' is F32 [8, 8], expected [2097152, 8] by " + config());
  EXPECT_EQ(with("\"max_length\": 20", "\"max_length\": 1000000000000"),
            config() + ": transformer.max_length is 1000000000000, expected an integer in [1, 16777216]");
}

// No tensor tells how many positions there are: a large number is taken, without a table for all of them.
TEST_F(SavedModel, HasPositionsThatTakeNoMemory) {
  const std::string all = read(config());
  Parallel parallel(1);
  Workspace workspace;
  for (const std::string positions : {"sinusoid", "rotary"}) {
    std::string text = all;
    text.replace(text.find("\"sinusoid\""), 10, "\"" + positions + "\"");
    text.replace(text.find("\"max_length\": 20"), 16, "\"max_length\": 16777216");
    write(config(), text);
    counted_heap::reset_peak();
    const int64_t before = counted_heap::alive_bytes();
    const auto model = open_model(folder_.path());
    EXPECT_LT(counted_heap::peak_bytes() - before, 40 << 20) << positions;
    nn::Pass pass{{parallel, workspace}};
    const Tokens source{Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6})};
    EXPECT_EQ(model->logits(pass, source, source).shape(), Shape({1, 3, 9}));
  }
}

TEST_F(SavedModel, RejectsNumbersThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::vector<float>> storage;
  rewrite([&](auto& tensors) {
    for (auto& t : tensors) {
      storage.emplace_back(t.bytes.size() / sizeof(float), nan);
      t.bytes = std::as_bytes(std::span(storage.back()));
    }
  });
  EXPECT_EQ(load_error(), parameters() + ": tensor 'embedding.weight' holds nan at [0, 0], expected finite numbers");
}

TEST_F(SavedModel, HasRegularFiles) {
  for (const std::string& path : {config(), parameters(), folder_.file("tokenizer"), folder_.file("train.json")}) {
    const bool was_there = std::filesystem::exists(path);
    if (was_there) std::filesystem::rename(path, path + ".kept");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    TransformerOptions any;
    EXPECT_EQ(error_of([&] { open(folder_.path()), read_training(folder_.path(), any); }),
              path + ": is a pipe, expected a regular file");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_EQ(error_of([&] { open(folder_.path()), read_training(folder_.path(), any); }),
              path + ": is a folder, expected a regular file");
    std::filesystem::remove(path);
    std::filesystem::create_symlink(path, path);
    EXPECT_EQ(error_of([&] { open(folder_.path()), read_training(folder_.path(), any); }),
              path + ": cannot open: Too many levels of symbolic links");
    std::filesystem::remove(path);
    if (was_there) std::filesystem::rename(path + ".kept", path);
  }
}

// For translators of any family.
TEST(Int8Folder, IsTheModelThatOpeningInInt8Gives) {
  const RnnSeq2SeqOptions rnn{.vocabulary = 9, .width = 8};
  for (const ModelOptions& options : {small_options(TransformerKind::encoder_decoder), ModelOptions(rnn)}) {
    const TemporaryFolder before, after;
    save(before.path(), *make_model(options, seeded(3)));
    save_int8(before.path(), after.path());
    const auto logits = [](const data::TextModel& opened) {
      Parallel parallel(1);
      Workspace workspace;
      nn::Pass pass{{parallel, workspace}};
      const Tokens source{Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6})};
      return opened.model().logits(pass, source, source).value().to_doubles();
    };
    const std::vector<double> rounded = logits(open(after.path()));
    EXPECT_EQ(rounded, logits(open(before.path(), {.weights = DType::i8})));
    EXPECT_NE(rounded, logits(open(before.path())));
    const TemporaryFolder again;  // rounding once is rounding twice
    save_int8(after.path(), again.path());
    EXPECT_EQ(read_file(again.file("model.safetensors"), 1 << 20), read_file(after.file("model.safetensors"), 1 << 20));
    EXPECT_LT(std::filesystem::file_size(after.file("model.safetensors")),
              std::filesystem::file_size(before.file("model.safetensors")));
  }
}

TEST_F(SavedModel, InInt8IsForInferenceAlone) {
  const TemporaryFolder to;
  save_int8(folder_.path(), to.path());
  const std::string expected =
      to.file("config.json") + ": weights are int8, for inference alone; expected f32 to train";
  EXPECT_EQ(error_of([&] { checked_model_options(to.path()); }), expected);
  EXPECT_EQ(error_of([&] { open_model(to.path(), DType::f32, true); }), expected);
  EXPECT_EQ(error_of([&] { save_int8(to.path(), to.path()); }),
            "folder '" + to.path() + "' is the model's own, expected another one");
}

TEST_F(SavedModel, InInt8SaysWhatIsWrong) {
  const TemporaryFolder from;
  save(from.path(), *model_);
  const std::string matrix = "encoder.0.self.q.weight";
  const auto error_after = [&](const std::string& name, auto&& change) {
    save_int8(from.path(), folder_.path());
    std::vector<std::byte> bytes;
    rewrite([&](auto& tensors) {
      for (auto& t : tensors) {
        if (t.name != name) continue;
        bytes.assign(t.bytes.begin(), t.bytes.end());
        t.bytes = bytes;
        change(t, bytes);
      }
    });
    return load_error();
  };
  EXPECT_EQ(error_after(matrix, [](auto&, auto& bytes) { bytes[9] = std::byte{0x80}; }),
            parameters() + ": tensor '" + matrix + "' holds -128 at [1, 1], expected -127 to 127");
  EXPECT_EQ(error_after(matrix + ".scale",
                        [](auto&, auto& bytes) { bytes[2] = std::byte{0xC0}, bytes[3] = std::byte{0x7F}; }),
            parameters() + ": tensor '" + matrix + ".scale' holds nan at [0], expected finite numbers");
  EXPECT_EQ(error_after(matrix + ".scale", [](auto& t, auto&) { t.name = "other"; }),
            parameters() + ": has 1 tensor that no parameter of this model has the name of ('other')");
}

// Of each family: states are what comes before the last projection.
TEST(Model, HasStatesVocabulariesAndOutputs) {
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const Tokens text{Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6})};
  struct Expected {
    ModelOptions options;
    int64_t width, vocabulary, source_vocabulary, outputs;
  };
  ModelOptions own_source = small_options(TransformerKind::encoder_decoder);
  own_source.as<TransformerOptions>().source_vocabulary = 7;
  ModelOptions tagger = small_options(TransformerKind::encoder);
  tagger.as<TransformerOptions>().outputs = 3;
  const RnnSeq2SeqOptions recurrent{.vocabulary = 9, .source_vocabulary = 8, .width = 6};
  const SelfAttentiveOptions attentive{.vocabulary = 9, .outputs = 4, .width = 6};
  for (const Expected& e :
       {Expected{small_options(TransformerKind::encoder_decoder), 8, 9, 9, 9}, Expected{own_source, 8, 9, 7, 9},
        Expected{tagger, 8, 9, 9, 3}, Expected{small_options(TransformerKind::encoder), 8, 9, 9, 0},
        Expected{small_options(TransformerKind::decoder), 8, 9, 9, 9}, Expected{recurrent, 6, 9, 8, 9},
        Expected{attentive, 12, 9, 9, 4}}) {
    const auto model = make_model(e.options, seeded(3));
    EXPECT_EQ(model->states(pass, text).shape(), (Shape{1, 3, e.width}));
    EXPECT_EQ(model->vocabulary(), e.vocabulary);
    EXPECT_EQ(model->source_vocabulary(), e.source_vocabulary);
    EXPECT_EQ(model->outputs(), e.outputs);
    if (e.outputs == 0) {
      EXPECT_EQ(error_of([&] { model->logits(pass, text, {}); }),
                "transformer: logits was called, expected a model with outputs");
    } else {
      EXPECT_EQ(model->logits(pass, text, text).shape(-1), e.outputs);
    }
  }
}

// The output layer of these states gives the logits.
TEST(Model, MakesItsLogitsOfItsStates) {
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const Tokens text{Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6})};
  for (const TransformerKind kind : {TransformerKind::encoder, TransformerKind::decoder}) {
    ModelOptions options = small_options(kind);
    options.as<TransformerOptions>().tied = false;
    if (kind == TransformerKind::encoder) options.as<TransformerOptions>().outputs = 3;
    const auto model = make_model(options, seeded(3));
    const auto value = [&](const char* name) { return Var(model->parameters().find(name)->value); };
    const Var logits = ops::linear(pass, model->states(pass, text), value("output.weight"), value("output.bias"));
    EXPECT_EQ(logits.value().to_doubles(), model->logits(pass, text, text).value().to_doubles());
  }
}

TEST(Model, UnfilledHasZerosAndTheNamesOfAnyOther) {
  const ModelOptions options = RnnSeq2SeqOptions{.vocabulary = 9, .cell = nn::Cell::lstm, .width = 4};
  const auto drawn = make_model(options, seeded(1)), unfilled = make_unfilled_model(options);
  ASSERT_EQ(drawn->parameters().entries().size(), unfilled->parameters().entries().size());
  for (size_t i = 0; i < drawn->parameters().entries().size(); ++i) {
    const auto &a = drawn->parameters().entries()[i], &b = unfilled->parameters().entries()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.value.shape(), b.value.shape());
    EXPECT_EQ(a.decay, b.decay);
  }
  for (const double x : unfilled->parameters().values().to_doubles()) EXPECT_EQ(x, 0);
  EXPECT_FALSE(unfilled->parameters().gradients());
}

}  // namespace
}  // namespace heed::folder
