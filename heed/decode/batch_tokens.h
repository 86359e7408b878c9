#pragma once
// A batch of text as a model takes it. The lengths are borrowed from the batch.
#include "heed/models/model.h"
#include "heed/text/batching.h"

namespace heed::decode {

// Nothing, for a language model.
inline models::Tokens source_of(const text::Batch& batch) {
  if (batch.source_length == 0) return {};
  return {Tensor::of({batch.rows, batch.source_length}, std::span<const int32_t>(batch.source)), batch.source_lengths};
}

// Nothing, for a model that tags: its labels are those of the source's tokens, the end included.
inline models::Tokens target_of(const text::Batch& batch, models::Task task = models::Task::translate) {
  if (task == models::Task::tag) return {};
  return {Tensor::of({batch.rows, batch.target_length}, std::span<const int32_t>(batch.target_in)),
          batch.target_lengths};
}

inline Tensor labels_of(const text::Batch& batch) {
  return Tensor::of({batch.rows, batch.target_length}, std::span<const int32_t>(batch.target_out));
}

}  // namespace heed::decode
