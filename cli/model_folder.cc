#include "cli/model_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/action.h"
#include "heed/base/error.h"
#include "heed/io/config.h"

namespace heed::cli {

std::vector<int32_t> ModelFolder::encode(const std::string& text, const std::string& place) const {
  std::vector<int32_t> ids;
  try {
    ids = tokenizer->encode(text);
  } catch (const Error& error) {  // no UTF-8
    throw Error(fmt::format("{}: {}", place, error.what()));
  }
  const int64_t most = model->max_length() - 1;  // and one for the end
  if (std::ssize(ids) > most) {
    throw Error(fmt::format("{}: {} tokens came, expected at most {}", place, ids.size(), most));
  }
  return ids;
}

void ModelFolder::expect(models::Task task) const {
  struct Words {
    const char *what, *command;
  };
  constexpr Words kWords[] = {{"a model that translates", "heed translate"},
                              {"a language model", "heed generate"},
                              {"a tagger", "heed tag"},
                              {"a classifier", "a program of your own"},
                              {"an encoder", "a program of your own"}};
  const auto words = [&](models::Task each) { return kWords[static_cast<size_t>(each)]; };
  if (model->task() == task) return;
  throw Error(fmt::format("{}: is {}, expected {}; see {}", folder, words(model->task()).what, words(task).what,
                          words(model->task()).command));
}

ModelFolder open_model(const std::string& folder, const std::string& flag) {
  if (folder.empty()) throw UsageError("heed: " + flag + " is missing, expected a folder that heed train made");
  ModelFolder opened{folder, models::load_model(folder), nullptr, nullptr, {}};
  const std::string options = (std::filesystem::path(folder) / "train.json").string();
  if (std::filesystem::exists(options)) io::read_config(options, opened.trained);
  const std::string path = (std::filesystem::path(folder) / "tokenizer").string();
  opened.tokenizer = text::load_tokenizer(path);
  if (opened.tokenizer->size() != opened.model->vocabulary()) {
    throw Error(fmt::format("{}: has {} tokens, expected {} as the model has", path, opened.tokenizer->size(),
                            opened.model->vocabulary()));
  }
  if (opened.model->task() == models::Task::tag) {
    opened.tags = text::load_tokenizer((std::filesystem::path(folder) / "tags").string());
  }
  return opened;
}

}  // namespace heed::cli
