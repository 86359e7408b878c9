// SPDX-License-Identifier: Apache-2.0
#include "heed/models/options.h"

namespace heed::models {
namespace {

Task task_of_family(const TransformerOptions& o) {
  if (o.kind == TransformerKind::encoder_decoder) return Task::translate;
  if (o.kind == TransformerKind::decoder) return Task::language;
  return o.outputs > 0 ? Task::tag : Task::encode;
}
Task task_of_family(const RnnSeq2SeqOptions&) { return Task::translate; }
Task task_of_family(const SelfAttentiveOptions& o) {
  return o.head == SelfAttentiveHead::tags ? Task::tag : Task::classify;
}

}  // namespace

Task task_of(const ModelOptions& options) {
  return std::visit([](const auto& own) { return task_of_family(own); }, options.family);
}

}  // namespace heed::models
