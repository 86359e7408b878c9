#include "cli/model_folder.h"

#include <fmt/format.h>

#include <filesystem>

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

bool ModelFolder::is_language_model() const {
  return model->options().transformer.kind == models::TransformerKind::decoder;
}

ModelFolder open_model(const std::string& folder, const std::string& flag) {
  if (folder.empty()) throw Error(flag + " is missing, expected a folder that heed train made");
  ModelFolder opened{models::load_model(folder), nullptr, {}};
  const std::string options = (std::filesystem::path(folder) / "train.json").string();
  if (std::filesystem::exists(options)) io::read_config(options, opened.trained);
  const std::string path = (std::filesystem::path(folder) / "tokenizer").string();
  opened.tokenizer = text::load_tokenizer(path);
  if (opened.tokenizer->size() != opened.model->vocabulary()) {
    throw Error(fmt::format("{}: has {} tokens, expected {} as the model has", path, opened.tokenizer->size(),
                            opened.model->vocabulary()));
  }
  return opened;
}

}  // namespace heed::cli
