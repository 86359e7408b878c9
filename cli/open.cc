#include "cli/open.h"

#include <fmt/format.h>

#include "cli/action.h"
#include "heed/base/error.h"

namespace heed::cli {
namespace {

const char* command_for(models::Task task) {
  switch (task) {
    case models::Task::translate:
      return "heed translate";
    case models::Task::language:
      return "heed generate";
    case models::Task::tag:
      return "heed tag";
    case models::Task::classify:
      return "a program of your own";
    case models::Task::encode:
      return "heed embed";
  }
  return "heed info";
}

}  // namespace

decode::Engine open_engine(const std::string& folder, int threads, const std::string& flag) {
  if (folder.empty()) throw UsageError("heed: " + flag + " is missing, expected a folder that heed train made");
  return decode::Engine(folder, threads);
}

decode::Engine open_engine(const std::string& folder, int threads, models::Task task) {
  decode::Engine engine = open_engine(folder, threads);
  try {
    engine.text_model().expect(task);
  } catch (const Error& error) {
    throw Error(fmt::format("{}; see {}", error.what(), command_for(engine.text_model().task())));
  }
  return engine;
}

}  // namespace heed::cli
